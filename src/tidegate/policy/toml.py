"""Policy <-> TOML without loss. Decimals stay decimals: rho = 0.05 is one twentieth, never a float."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from tidegate.errors import PolicyIncomplete, PolicyUnreadable, UnknownColumn, did_you_mean
from tidegate.operators import OPERATORS, parameters_of
from tidegate.policy.attributes import Attribute
from tidegate.policy.batches import read_batch
from tidegate.policy.collection import REPEATS, Collection, Question
from tidegate.policy.concealment import CHOICES, DEFAULT_TESTS, Concealment, Profile
from tidegate.policy.hiding import ANSWERS, AT_MOST, MARGIN, SMALLEST, Hiding
from tidegate.policy.kinds import read_attribute
from tidegate.policy.policy import VERSIONS, Dataset, EachPerson, EachRow, Policy, Unit
from tidegate.policy.poll_section import poll_dict, public_poll, read_poll
from tidegate.policy.promises import GUARANTEES, Identification, Loss
from tidegate.policy.section import OPEN, Section, list_of, number, one_of, text, whole, yes_or_no
from tidegate.policy.synthesis import Follows, read_shapes
from tidegate.policy.tables import LinkedTable, load_references, read_tables

BARE = re.compile(r"[A-Za-z0-9_-]+")
MOST_PARTS = 100  # of a key, such as a.b.c: the parser's time grows with the square of their number
# Strings of several lines, other strings, comments, and what else is between dots. Possessive: no character is read twice.
TOKENS = re.compile(
    r'''"""(?:[^"\\]++|\\.|"(?!""))*+(?:"{3,5}|\Z)|'{3}(?:[^']++|'(?!''))*+(?:'{3,5}|\Z)'''
    r"""|(?P<part>"(?:[^"\\\n]++|\\[^\n])*+"?|'[^'\n]*+'?|[\w \t-]++)|\#[^\n]*+|(?P<dot>\.)|.""",
    re.DOTALL,
)


def read_policy(path: str | Path) -> Policy:
    """Return the policy in a file."""
    problem = ""
    try:
        content = Path(path).read_text("utf-8")
    except FileNotFoundError:
        problem = "there is no such file"
    except UnicodeDecodeError:
        problem = "it is not UTF-8 text"
    except OSError as error:
        problem = error.strerror or type(error).__name__
    if problem:
        raise PolicyUnreadable(
            f'Cannot read the policy "{path}": {problem}.', "Run `tidegate init DATA.csv` to write a first policy."
        )
    return parse_policy(content, folder=Path(path).parent, name=Path(path).stem)


def parse_policy(content: str, *, folder: Path = Path(), name: str = "polls") -> Policy:
    """Return the policy in a TOML text. Open decisions (``"?"``) are reported together.

    A text that has only polls needs no [dataset]: the data set is then called `name`. Public lists of values (`values_from`) and reference tables are read from `folder`.
    """
    problem = ""
    try:
        parsed = load_toml(content)
    except tomllib.TOMLDecodeError as error:
        problem = str(error)
    if problem:
        raise PolicyUnreadable(f"The policy is not valid TOML: {problem}.")
    undecided: list[str] = []
    if "poll" in parsed:
        parsed.setdefault("dataset", {"name": account_name(name)})
    parts = _read(Section(parsed, "", undecided, folder), folder)
    if undecided:
        count = len(undecided)
        raise PolicyIncomplete(
            f'{count} decision{"s are" if count != 1 else " is"} still open ("?"): {", ".join(undecided)}.',
            "Nothing is taken from the data: edit the file, then run `tidegate check FILE`.",
            open=undecided,
        )
    return parts()  # type: ignore[no-any-return]


def load_toml(content: str) -> dict[str, Any]:
    """Return what a TOML text contains.

    Raises:
        tomllib.TOMLDecodeError: The text is not valid, or a key has too many parts.
    """
    if any(line.count(".") > MOST_PARTS for line in content.split("\n")):
        dots = 0
        for token in TOKENS.finditer(content):
            dots = dots + 1 if token["dot"] else dots if token["part"] else 0
            if dots >= MOST_PARTS:
                raise tomllib.TOMLDecodeError(f"A key has more than {MOST_PARTS} parts")
    return tomllib.loads(content, parse_float=Decimal)


def policy_from_dict(content: dict[str, Any]) -> Policy:
    """Return the policy of `Policy.public_dict()`, as stored in the ledger."""
    build: Callable[[], Policy] = _read(Section(content, "", []))
    return build()


def _read(file: Section, folder: Path | None = None) -> Any:
    """Read a policy. Reference tables are read from `folder`; without one, only their digests are known."""
    version = file.take("version", whole, 1)
    if version not in VERSIONS:
        raise PolicyUnreadable(
            f"The policy has version {version}, and this Tidegate reads versions 1 to {VERSIONS[-1]}.",
            "Install the version of Tidegate that wrote it.",
        )
    only_polls = "attributes" not in file.names() and "tables" not in file.names() and "promise" not in file.names()
    only_polls = only_polls and not file.content.get("dataset", {}).get("source")
    dataset = _dataset(file.section("dataset"), unit="row" if only_polls else "")
    section = file.section("attributes", {}) if only_polls else file.section("attributes")
    tables = _tables(file, section, folder) if "tables" in file.names() else None
    attributes = {name: read_attribute(section.section(name)) for name in section.names()}
    promise = file.section("promise", {})
    identification = _identification(promise.section("identification")) if "identification" in promise.names() else None
    loss = _loss(promise.section("loss")) if "loss" in promise.names() else None
    concealment = promise.section("concealment", {})
    concealments = {name: _concealment(concealment.section(name)) for name in concealment.names()}
    hiding = promise.section("hiding", {})
    hidings = {name: _hiding(hiding.section(name)) for name in hiding.names()}
    promise.done()
    collection = file.section("collection", {})
    collections = {name: _collection(name, collection.section(name)) for name in collection.names()}
    poll = file.section("poll", {})
    polls = {name: read_poll(name, poll.section(name)) for name in poll.names()}
    shapes = read_shapes(file.section("synthesis", {}))
    file.done()

    def build() -> Policy:
        linked, relations = tables() if tables else ({}, {})
        built = {name: make() for name, make in attributes.items()}
        promised = {name: make() for name, make in concealments.items()}
        hidden = {name: make() for name, make in hidings.items()}
        collected = {name: make(built) for name, make in collections.items()}
        twice = [name for name in polls if name in collected]
        if twice:
            raise PolicyUnreadable(f'"{twice[0]}" is a collection and a poll.', "Rename one of them.")
        collected |= {name: make() for name, make in polls.items()}
        parts = (identification and identification(), loss and loss(), promised, collected, shapes(built))
        return Policy(dataset(), built, *parts, version, linked, relations, hidings=hidden)

    return build


def _tables(file: Section, described: Section, folder: Path | None) -> Any:
    """Read [tables] and [relations], with one section of [attributes] per table."""
    settings, relation_section = read_tables(file), file.section("relations", {})
    relations = {name: relation_section.take(name, text) for name in relation_section.names()}
    columns = {}
    for name in settings:
        section = described.section(name)
        columns[name] = {column: read_attribute(section.section(column)) for column in section.names()}
    described.known += settings
    described.done()

    def build() -> tuple[dict[str, LinkedTable], dict[str, str]]:
        built = {
            name: LinkedTable(name, attributes={column: make() for column, make in columns[name].items()}, **of)
            for name, of in settings.items()
        }
        return (load_references(built, relations, folder) if folder is not None else built), relations

    return build


# Each reader reads all its keys (so that open decisions are collected) and returns a function that builds the value.


def _dataset(at: Section, *, unit: str) -> Any:
    if unit:
        at.content.setdefault("unit", unit)
    name, source, ledger = at.take("name", text), at.take("source", text, ""), at.take("ledger", text, "")
    rows, edition, protected = at.take("rows", whole, None), at.take("edition", text, ""), _unit(at)
    reports, witness = at.take("reports", text, ""), at.take("witness", list_of(text), ())
    partners = at.take("shares_persons_with", list_of(text), ())
    records = at.take("records", whole, None)
    at.done()
    return lambda: Dataset(name, source, protected(), rows, ledger, edition, reports, witness, partners, records)


def _unit(at: Section) -> Any:
    if not isinstance(at.content.get("unit"), dict):
        at.take("unit", one_of("row"))  # never a default: the protected unit is always stated
        return EachRow
    inner = at.section("unit")
    key, most, choice = (
        inner.take("person", text),
        inner.take("at_most", whole),
        inner.take("choice", text, ""),
    )
    inner.done()

    def build() -> Unit:
        return EachPerson(key, most, choice)

    return build


def _identification(at: Section) -> Any:
    rho, worlds = at.take("rho", number), at.take("worlds", one_of("values", "persons"))
    protect = at.take("protect", list_of(text), ())
    population, known = at.take("population", whole, None), at.take("known", whole, None)
    prior_section = at.section("prior", {})
    prior = {
        name: prior_section.take(name, lambda v: list_of(number)(v) if isinstance(v, list) else number(v))
        for name in prior_section.names()
    }
    guarantee = at.take("guarantee", one_of(*GUARANTEES), "worst-case")
    width_section = at.section("within", {})
    within = {name: width_section.take(name, number) for name in width_section.names()}
    at.done()
    return lambda: Identification(
        rho,
        worlds=worlds,
        protect=protect,
        population=population,
        known=known,
        prior=prior,
        guarantee=guarantee,
        within=within,
    )


def _loss(at: Section) -> Any:
    epsilon = at.take("epsilon", number)
    at.done()
    return lambda: Loss(epsilon)


def _concealment(at: Section) -> Any:
    settings: dict[str, Any] = {
        "reveals": at.take("reveals", list_of(text)),
        "about": at.take("about", list_of(text)),
        "releases": at.take("releases", list_of(text), ()),
        "tests": at.take("tests", list_of(text), DEFAULT_TESTS),
        "significance": at.take("significance", number, Decimal("0.2")),
        "baseline": at.take("baseline", list_of(number), ()),
        "baseline_from_table_on": at.take("baseline_from_table_on", text, ""),
        "shares": at.take("shares", list_of(number), ()),
        "rho": at.take("rho", number, None),
    }
    settings |= {name: at.take(name, one_of(*allowed), allowed[0]) for name, allowed in CHOICES.items()}
    profiles = at.section("profiles", {})
    shapes = {name: _profile(profiles.section(name)) for name in profiles.names()}
    at.done()
    return lambda: Concealment(**settings, profiles={name: make() for name, make in shapes.items()})


def _hiding(at: Section) -> Any:
    for name, reason in NOT_OF_HIDING.items():
        if name in at.names():
            raise PolicyUnreadable(f"`{name}` is not a setting of {at.path}: {reason}", f"Remove `{name}`.")
    settings: dict[str, Any] = {
        "reveals": at.take("reveals", list_of(text)),
        "about": at.take("about", list_of(text)),
        "releases": at.take("releases", list_of(text), ()),
        "mix": at.take("mix", lambda value: value if isinstance(value, str) else list_of(number)(value)),
        "at_most": at.take("at_most", number, AT_MOST),
        "among": at.take("among", lambda value: value if isinstance(value, str) else whole(value), "all"),
        "margin": at.take("margin", number, MARGIN),
        "smallest": at.take("smallest", whole, SMALLEST),
        "answers": at.take("answers", one_of(*ANSWERS), ANSWERS[0]),
    }
    at.done()
    return lambda: Hiding(**settings)


NOT_OF_HIDING = {
    "shows": "values are always released as bins, because inside a bin the composition of groups is not equal.",
    "rho": "it follows from `among` and the number of groups, and `tidegate check` prints it.",
    "tests": "hiding uses no test; the same share of every value is released.",
    "sensitive": "the names of sensitive groups are private, and a policy is public. Pass them to `tidegate release open`.",
}


def _profile(at: Section) -> Any:
    prior, values = at.take("prior", number), at.take("values", list_of(number))
    at.done()
    return lambda: Profile(prior=prior, values=values)


def _collection(name: str, at: Section) -> Any:
    section = at.section("questions")
    questions = {word: _question(section.section(word)) for word in section.names()}
    repeats, version = at.take("repeats", one_of(*REPEATS), "memoised"), at.take("version", whole, 1)
    closed, clients = at.take("closed", yes_or_no, False), at.take("clients", whole, None)
    holder, lifetime = at.take("holder", text, ""), at.take("lifetime", number, None)
    batch = at.take("batch", read_batch, None)
    drawn: dict[str, Any] = {"ask": at.take("ask", whole, None), "rounds": at.take("rounds", whole, None)}
    drawn["together"] = at.take("together", list_of(list_of(text)), ())
    at.done()

    def build(attributes: dict[str, Attribute]) -> Collection:
        built = {word: make(attributes) for word, make in questions.items()}
        return Collection(name, built, repeats, version, closed, clients, holder, lifetime, batch, **drawn)

    return build


def _question(at: Section) -> Any:
    attribute, operator = at.take("attribute", text), at.take("operator", text)
    own = parameters_of(operator) if operator in OPERATORS else {}
    known = tuple({**own, **parameters_of()})  # those of other operators are refused with their names
    parameters = {name: at.take(name, number) for name in known if name in at.names()}
    plans = at.take("plans", list_of(lambda plan: plan), ())
    at.known += known
    at.done()

    def build(attributes: dict[str, Attribute]) -> Question:
        if attribute not in attributes:
            raise UnknownColumn(
                f'{at.path} names an unknown column: "{attribute}".', did_you_mean(attribute, attributes)
            )
        return Question(attribute, attributes[attribute], operator, plans=plans, **parameters)

    return build


def collection_from_dict(content: dict[str, Any]) -> Collection:
    """Return the collection of `Collection.public_dict()`, as clients receive it. A wrong fingerprint is refused."""
    at = Section(content, "", [])
    name, fingerprint = at.take("collection", text), at.take("fingerprint", text)
    section = at.section("questions")
    universes: dict[str, Attribute] = {}
    for word in section.names():
        question = Section(section.content[word], section.where(word), [])
        universes[question.take("attribute", text)] = read_attribute(question.section("universe"))()
        section.content[word] = {key: value for key, value in section.content[word].items() if key != "universe"}
    poll = public_poll(at.section("poll")) if "poll" in at.names() else None
    collection: Collection = _collection(name, Section({**at.content, "questions": section.content}, "", []))(universes)
    collection = collection if poll is None else replace(collection, poll=poll)
    if collection.fingerprint != fingerprint:
        raise PolicyUnreadable(
            f'The description of "{name}" does not match its fingerprint, so it was changed in transit.',
            "Get it again from the data holder. Nothing was sent.",
        )
    return collection


def write_policy(policy: Policy) -> str:
    """Return the policy as a readable file: `parse_policy` returns the same policy."""
    content = policy.to_dict()
    lines = [f"version = {content['version']}", "", "[dataset]", *_lines(content["dataset"]), ""]
    if policy.tables:
        lines += ["[tables]", *_lines(content["tables"]), "", "[relations]", *_lines(content.get("relations", {}))]
        for name, columns in content["attributes"].items():
            lines += ["", f"[attributes.{key_text(name)}]", *_lines(columns)]
    else:
        lines += ["[attributes]", *_lines(content["attributes"])]
    promises = content.get("promise", {})
    for name, promise in promises.items():
        named = name in ("concealment", "hiding")
        for path, section in promise.items() if named else [("", promise)]:
            header = f"promise.{name}" + (f".{key_text(path)}" if named else "")
            lines += ["", f"[{header}]", *_lines(section)]
    for collection in policy.collections.values():
        lines += ["", *write_collection(collection).splitlines()]
    if shapes := content.get("synthesis"):
        parts = {part: shapes.pop(part, {}) for part in ("columns", "follows", "orders", "sums", "linked")}
        lines += ["", "[synthesis]", *_lines(shapes)]
        lines += [f"{part}.{line}" for part, table in parts.items() for line in _lines(table)]
    return "\n".join(lines) + "\n"


def write_draft(content: dict[str, Any]) -> str:
    """Return a policy that need not be complete, of one table: an open decision has the value "?"."""
    lines = [f"version = {content['version']}", "", "[dataset]", *_lines(content["dataset"]), ""]
    lines += ["[attributes]", *_lines(content["attributes"])]
    for name, promise in content["promise"].items():
        lines += ["", f"[promise.{name}]", *_lines(promise)]
    return "\n".join(lines) + "\n"


def write_collection(collection: Collection) -> str:
    """Return a collection or poll as its section of a policy file."""
    if collection.poll is not None:
        return _write_poll(collection)
    section = collection.to_dict()
    questions = [f"questions.{line}" for line in _lines(section.pop("questions"))]
    return "\n".join([f"[collection.{key_text(collection.name)}]", *questions, *_lines(section)]) + "\n"


def _write_poll(collection: Collection) -> str:
    section = poll_dict(collection)
    questions, closes, at = section.pop("questions"), section.pop("closes"), f"poll.{key_text(collection.name)}"
    lines = [f"[{at}]", *_lines(section), f"closes = {closes}"]
    for name, question in questions.items():
        lines += ["", f"[{at}.questions.{key_text(name)}]", *_lines(question)]
    return "\n".join(lines) + "\n"


def account_name(stem: str) -> str:
    """Return a name of a data set for a file that names none."""
    name = re.sub(r"[^A-Za-z0-9_.-]", "-", stem).lstrip("0123456789_.-")[:63]
    return name or "polls"


def write_follows(name: str, dependency: Follows) -> str:
    """Return the line of the section [synthesis] that declares a dependency."""
    return f"follows.{_lines({name: dependency.to_dict()})[0]}"


def _lines(table: dict[str, Any]) -> list[str]:
    return [f"{key_text(name)} = {value_text(value)}" for name, value in table.items()]


def key_text(name: str) -> str:
    return name if BARE.fullmatch(name) else value_text(name)


def value_text(value: Any) -> str:
    """Return a value as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return f"[{', '.join(value_text(item) for item in value)}]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key_text(name)} = {value_text(item)}" for name, item in value.items()) + " }"
    return str(value)


__all__ = [
    "OPEN",
    "Attribute",
    "collection_from_dict",
    "parse_policy",
    "policy_from_dict",
    "read_policy",
    "write_collection",
    "write_draft",
    "write_follows",
    "write_policy",
]
