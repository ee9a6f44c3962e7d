"""Settings by flag, environment variable and file. All are derived from the fields of `Settings`, so that a new one is covered.

A value comes from the first of: a flag, the variable `TIDEGATE_NAME`, the key `name` of the file, the default. With `_FILE` or
`_file` after its name, a value is the content of another file, so that a password need not be in the environment.
"""

from __future__ import annotations

import difflib
import inspect
import io
import itertools
import math
import textwrap
import tokenize
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tidegate.errors import Unsupported
from tidegate.service.settings import Settings, public_url

PREFIX, FILE = "TIDEGATE_", "_file"
CONFIG = f"{PREFIX}CONFIG"
OTHERS = {  # variables that are not settings of a service
    f"{PREFIX}{name}"
    for name in ("CONFIG", "SERVICE", "ORIGINS", "TOKEN", "CACHE", "DATA", "SEED", "REGISTRY", "WITNESS", "OIDC_SECRET")
}
SEPARATOR = ";"  # between the parts of a list in a variable or a flag
PATHS = {"policies", "folder", "polls"}  # in a file, relative to its folder
ADDRESSES = {"ledger", "databases"}  # can contain a password
PRIVATE = ("secret", "password")  # parts of names whose values are never shown
RANGES = {"port": (1, 65535), "workers": (1, 64), "threads": (1, 1024)}
LEAST = {  # with less, the service would answer nobody, end every session, or never pause
    **dict.fromkeys(("idle_minutes", "oidc_minutes", "patience", "sign_in_burst", "caller_burst", "address_burst"), 1),
    **dict.fromkeys(("job_attempts", "deepest_json", "most_headers", "largest_headers", "largest_body"), 1),
    "sign_in_hours": 0.1,
    "job_beat": 0.01,
}
YES, NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
KINDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "tuple[str, ...]": "a list of texts",
}


@dataclass(frozen=True)
class Configuration:
    """The settings of a service, and where each value came from."""

    settings: Settings
    origins: Mapping[str, str]  # a setting that is not named was set by the program

    def rows(self) -> list[tuple[str, str, str]]:
        """Return name, value and origin of every setting. Passwords and secrets are hidden."""
        defaults = {field.name: field.default for field in fields(Settings)}
        values = {name: getattr(self.settings, name) for name in kinds()}
        origins = {name: "default" if value == defaults[name] else "program" for name, value in values.items()}
        origins |= self.origins
        return [(name, shown(name, value), origins[name]) for name, value in values.items()]


def read_settings(flags: Mapping[str, Any], environment: Mapping[str, str], file: str = "") -> Configuration:
    """Return the settings from flags (by name), environment variables and a TOML file.

    Raises:
        Unsupported: A name is unknown, a value is malformed, or a file cannot be read.
    """
    path = file or environment.get(CONFIG, "")
    layers = [_from_file(Path(path)) if path else {}, _from_environment(environment), _from_flags(flags)]
    origins = dict.fromkeys(kinds(), "default")
    values: dict[str, Any] = {}
    for layer in layers:
        for name, (value, origin) in layer.items():
            values[name], origins[name] = _parse(name, value, origin), origin
    if values.get("public_url"):
        values["public_url"] = public_url(values["public_url"])
    return Configuration(Settings(**values), origins)


@cache
def kinds() -> dict[str, str]:
    """Return the type of every setting by name, as it is written in the class."""
    return {field.name: str(field.type) for field in fields(Settings)}


@cache
def descriptions() -> dict[str, str]:
    """Return the comment behind every setting; empty if it has none."""
    texts, current = dict.fromkeys(kinds(), ""), ""
    tokens = tokenize.generate_tokens(io.StringIO(_source()).readline)
    for token, following in itertools.pairwise(tokens):
        if token.type == tokenize.NAME and following.string == ":" and token.string in texts:
            current = token.string
        elif token.type == tokenize.COMMENT and current:
            texts[current] = token.string.lstrip("# ")
        elif token.type == tokenize.NEWLINE:
            current = ""
    return texts


def _source() -> str:
    """Return the source of the class and of those that it extends."""
    classes = [kind for kind in reversed(Settings.__mro__) if kind is not object]
    return "".join(textwrap.dedent(inspect.getsource(kind)) for kind in classes)


def as_text() -> str:
    """Return the table of all settings as Markdown for the documentation."""
    lines = ["| key in the file | variable | default | |", "|---|---|---|---|"]
    for field in fields(Settings):
        default = field.default if field.default is not MISSING else ""
        text = descriptions()[field.name]
        lines.append(f"| `{field.name}` | `{PREFIX}{field.name.upper()}` | {_cell(default)} | {text} |")
    return "\n".join(lines)


def shown(name: str, value: Any) -> str:
    """Return a value as text, without passwords and secrets."""
    if value and any(part in name for part in PRIVATE):
        return "(hidden)"
    if isinstance(value, tuple):
        return f"{SEPARATOR} ".join(shown(name, part) for part in value)
    if isinstance(value, bool):
        return str(value).lower()
    return _without_password(value) if name in ADDRESSES else str(value)


def _cell(value: Any) -> str:
    return f"`{shown('', value)}`" if value not in ("", ()) else ""


def _without_password(address: str) -> str:
    parts = urlsplit(address)
    is_quiet = parts.query == "" or "password" not in parts.query.lower()
    if "://" not in address or (parts.password is None and is_quiet):
        return address
    user, _, host = parts.netloc.rpartition("@")
    hidden = f"{user.partition(':')[0]}:(hidden)@{host}" if user else host
    return f"{parts.scheme}://{hidden}{parts.path}{'' if is_quiet else '?(hidden)'}"


def _from_flags(flags: Mapping[str, Any]) -> dict[str, tuple[Any, str]]:
    return {_known(name, "--set"): (value, "flag") for name, value in flags.items()}


def _from_environment(environment: Mapping[str, str]) -> dict[str, tuple[Any, str]]:
    """Return the values of variables. One that resembles a setting but is none is refused; others are not ours."""
    values: dict[str, tuple[Any, str]] = {}
    for variable in sorted(environment):
        if not variable.startswith(PREFIX) or variable.removesuffix("_FILE") in OTHERS:
            continue
        name = variable.removeprefix(PREFIX).lower()
        if name in kinds():
            values[name] = (environment[variable], variable)
        elif (target := name.removesuffix(FILE)) in kinds() and target != name:
            _refuse_both(target, values, variable)
            values[target] = (_content(Path(environment[variable]), variable), variable)
        elif near := difflib.get_close_matches(name, kinds(), 1, 0.85):
            raise Unsupported(
                f"The environment has {variable}, which is not a setting.",
                f"Did you mean {PREFIX}{near[0].upper()}? Otherwise remove it.",
            )
    return values


def _from_file(path: Path) -> dict[str, tuple[Any, str]]:
    """Return the values of a TOML file. Its relative paths start at its folder."""
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise Unsupported(
            f"Cannot read the settings file {path}: {error.strerror}.", "Check --config or TIDEGATE_CONFIG."
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        line = f" ({error})" if isinstance(error, tomllib.TOMLDecodeError) else ""
        raise Unsupported(
            f"The settings file {path} is not valid TOML{line}.", "Write one `name = value` per line."
        ) from None
    folder, values = path.absolute().parent, dict[str, tuple[Any, str]]()
    for key, value in content.items():
        target = key.removesuffix(FILE)
        if key not in kinds() and target in kinds():
            _refuse_both(target, content, f"{key} in {path}")
            values[target] = (_content(folder / str(value), f"{key} in {path}"), f"{path} ({key})")
        else:
            values[_known(key, str(path))] = (_below(folder, value) if key in PATHS else value, str(path))
    return values


def _refuse_both(name: str, values: Mapping[str, Any], origin: str) -> None:
    if name in values:
        raise Unsupported(f"The setting `{name}` is given twice, also as {origin}.", "Remove one of them.")


def _below(folder: Path, value: Any) -> Any:
    """Return paths of a file as absolute ones; a value of another type is refused later."""
    if isinstance(value, list):
        return [_below(folder, part) for part in value]
    return str(folder / Path(value).expanduser()) if isinstance(value, str) and value else value


def _content(path: Path, origin: str) -> str:
    """Return the content of a file that holds one value, without the line end."""
    try:
        return path.read_text("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError):
        raise Unsupported(f"Cannot read the file that {origin} names.", "Check its path and its permissions.") from None


def _known(name: str, origin: str) -> str:
    """Return the name of a setting; refuse an unknown one and name the nearest."""
    if name in kinds():
        return name
    near = difflib.get_close_matches(name, kinds(), 1, 0.6)
    raise Unsupported(
        f'"{name}" in {origin} is not a setting.',
        f"Did you mean `{near[0]}`?" if near else "List all with tidegate serve --show-settings.",
    )


def _parse(name: str, value: Any, origin: str) -> Any:
    """Return a value in the type of its setting."""
    kind = kinds()[name]
    parsed = _parse_text(kind, value) if isinstance(value, str) else _parse_value(kind, value)
    if parsed is None:
        seen = "" if name in ADDRESSES or any(part in name for part in PRIVATE) else f', but it is "{value}"'
        raise Unsupported(f"`{name}` ({origin}) must be {KINDS.get(kind, kind)}{seen}.", "Correct the value.")
    if isinstance(parsed, int | float) and not isinstance(parsed, bool):
        low, high = RANGES.get(name, (LEAST.get(name, 0), math.inf))
        if not low <= parsed <= high or math.isinf(parsed):
            limit = f"finite and at least {low}" if low else "finite and not negative"
            limit = f"between {low} and {high}" if name in RANGES else limit
            raise Unsupported(f"`{name}` ({origin}) is {parsed:g}; it must be {limit}.", "Correct the value.")
    return parsed


def _parse_text(kind: str, text: str) -> Any:
    if kind == "str":
        return text
    if kind == "tuple[str, ...]":
        return tuple(part.strip() for part in text.split(SEPARATOR) if part.strip())
    if kind == "bool":
        return True if text.lower() in YES else False if text.lower() in NO else None
    try:
        return int(text) if kind == "int" else float(text) if kind == "float" else None
    except ValueError:
        return None


def _parse_value(kind: str, value: Any) -> Any:
    """Return a value of TOML, or a list of flags, in the type of a setting; None if it has another."""
    if kind == "tuple[str, ...]" and isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):
        return tuple(value)
    if kind == "float" and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    is_same = (kind == "int" and isinstance(value, int) and not isinstance(value, bool)) or (
        kind == "bool" and isinstance(value, bool)
    )
    return value if is_same else None
