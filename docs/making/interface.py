"""The public names as a page: signature and docstring of each."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

HEAD = """# Python

Signatures and docstrings of the public names. Made by `make docs`. What stands under `tidegate` is imported as
`import tidegate as tg`; the rest by its own module.
"""
LONGEST_DEFAULT = 60
# chapter: its sentence, then "module: names"; a module without names gives all of its __all__
CHAPTERS: dict[str, tuple[str, list[str]]] = {
    "The front door": ("A policy, a table, a ledger, four verbs.", ["tidegate: open connect Session"]),
    "Questions": (
        "Values that say what is asked; nothing runs until a session is asked.",
        ["tidegate: count sum mean variance std median quantile min max histogram regression col Query"],
    ),
    "What comes back": ("", ["tidegate: Preview Answer Answers SyntheticTables"]),
    "The policy": (
        "The same vocabulary as [the policy file](../policy.md).",
        [
            "tidegate: Policy Dataset EachRow EachPerson",
            "tidegate: Integer Grid Category Items Key",
            "tidegate: Identification Loss Concealment Profile Shapes Shape Follows",
            "tidegate.policy: Collection Question read_policy parse_policy write_policy",
        ],
    ),
    "Releasing records": (
        "[In depth](../release.md).",
        ["tidegate.release.desk: Desk", "tidegate.release.result: Released Deferred Refused"],
    ),
    "Collecting": (
        "[In depth](../collect.md).",
        ["tidegate.collect", "tidegate.collect.baskets", "tidegate.collect.trees"],
    ),
    "Synthesizing": ("[In depth](../synthesize.md).", ["tidegate.synthesize.quality"]),
    "The ledger": ("[In depth](../ledger.md).", ["tidegate.ledger"]),
    "Measures": (
        "What an adversary concludes.",
        ["tidegate.risk", "tidegate.accounting: identification_after loss_for"],
    ),
    "Attacks": ("Attempts to break a promise, each with a bound.", ["tidegate.audit"]),
    "Checks for mechanisms of your own": ("", ["tidegate.testing"]),
}


def public() -> Iterator[tuple[str, str, str, Any]]:
    """Every public name: chapter, module, name, object."""
    for chapter, (_, lines) in CHAPTERS.items():
        for line in lines:
            module, _, names = line.partition(":")
            try:
                where = importlib.import_module(module)
            except ModuleNotFoundError:
                continue  # a part that is not there has no names
            for name in names.split() or getattr(where, "__all__", []):
                yield chapter, module, name, getattr(where, name)


def members(value: Any) -> Iterator[tuple[str, Any]]:
    """Methods and properties that a class itself defines and explains, in the order of the file."""
    for name, member in vars(value).items() if inspect.isclass(value) else ():
        plain = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if not name.startswith("_") and (inspect.isfunction(plain) or _is_property(plain)) and told(plain):
            yield name, plain


def told(value: Any) -> str:
    """The docstring of one's own; what `dataclass` writes by itself does not count."""
    text = inspect.cleandoc(value.__doc__ or "") if hasattr(value, "__doc__") else ""
    name = getattr(value, "__name__", "")
    return "" if inspect.isclass(value) and text.startswith(f"{name}(") else text


def api_page() -> str:
    """The whole page."""
    parts, last = [HEAD], ""
    for chapter, module, name, value in public():
        if chapter != last:
            parts.append(f"\n## {chapter}\n\n{CHAPTERS[chapter][0]}\n".replace("\n\n\n", "\n"))
        parts.append(_entry(module, name, value))
        last = chapter
    return "".join([*parts, _errors()])


def _entry(module: str, name: str, value: Any) -> str:
    shown = f"tg.{name}" if module == "tidegate" else f"{module}.{name}"
    if not callable(value):
        kind = "of " + ", ".join(f"`{one}`" for one in value) if isinstance(value, dict | tuple | list) else ""
        return f"\n### `{shown}`\n\n{type(value).__name__} {kind}\n"
    inner = "".join(_member(one, member) for one, member in members(value))
    return f"\n### `{shown}`\n\n```py\n{name}{_signature(value)}\n```\n{_prose(told(value))}{inner}"


def _member(name: str, member: Any) -> str:
    text = _prose(told(member)).strip()
    if _is_property(member):
        return f"\n**`.{name}`** {text}\n"
    return f"\n**`.{name}{_signature(member, skip=True)}`**\n\n{text}\n"


def _errors() -> str:
    """The tree of exceptions, as its docstring draws it."""
    import tidegate.errors

    tree = inspect.cleandoc(tidegate.errors.__doc__ or "")
    return f"\n## Errors\n\nEvery error has `what`, `do`, `facts` and a `code`.\n\n```text\n{tree}\n```\n"


def _signature(value: Any, *, skip: bool = False) -> str:
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)"
    parameters = [
        one.replace(annotation=_bare(one.annotation), default=_short(one.default)) for one in found.parameters.values()
    ]
    back = _bare(found.return_annotation) if inspect.isfunction(value) else inspect.Signature.empty
    text = str(found.replace(parameters=parameters[1 if skip else 0 :], return_annotation=back))
    return text.replace("<factory>", "...")


class _Bare(str):
    """An annotation that is shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _short(default: Any) -> Any:
    """A default as it is; tables and functions, which print as addresses, as dots."""
    plain = default is inspect.Parameter.empty or (
        " at 0x" not in repr(default) and len(repr(default)) <= LONGEST_DEFAULT
    )
    return default if plain else _Bare("...")


def _bare(annotation: Any) -> Any:
    return _Bare(annotation) if isinstance(annotation, str) else annotation


def _prose(text: str) -> str:
    """A docstring as Markdown: indented lines (Guarantee, Needs, Reference) keep their shape."""
    first, _, rest = text.partition("\n\n")
    shaped = any(line.startswith("  ") or re.match(r"(Guarantee|Needs|Reference) ", line) for line in rest.splitlines())
    shown = f"```text\n{rest.strip()}\n```\n" if shaped else _escaped(rest)
    return "\n".join(["", _escaped(first), "", shown]).rstrip() + "\n"


def _escaped(text: str) -> str:
    """Outside of code, signs that Markdown would take for its own."""
    parts = re.split(r"(``.*?``|`[^`]*`)", text)
    return "".join(part if number % 2 else re.sub(r"([*_<\[\]|])", r"\\\1", part) for number, part in enumerate(parts))


def _is_property(member: Any) -> bool:
    return isinstance(member, property) or type(member).__name__ == "cached_property"
