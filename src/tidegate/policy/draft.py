"""A first policy from a header and its types. Every decision that a person must make stays open, marked with "?"."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Literal

from tidegate.policy.toml import key_text

ColumnType = Literal["whole", "decimal", "text", "yes-no", "other"]
KEYLIKE = re.compile(r"(^|[_\W])(id|key|uuid|guid|ssn|email|name)$|^(id|key|uuid|name)([_\W]|$)|_?id$", re.IGNORECASE)


def draft_policy(name: str, source: str, columns: Mapping[str, ColumnType]) -> str:
    """Return the text of a policy file. Bounds, lists, unit, worlds and promises are never taken from the data."""
    keys = [column for column in columns if KEYLIKE.search(column)]
    lines = [
        f'# A policy for {name}. Replace every "?": these are your decisions, and nothing was taken from the data.',
        "# Then: tidegate check FILE",
        "version = 2",
        "",
        "[dataset]",
        f"name   = {json.dumps(name)}",
        f"source = {json.dumps(source)}",
        'unit   = "?"          # DECIDE who is protected: "row" (one row per person), or',
        f'                      # {{ person = "{keys[0] if keys else "KEY COLUMN"}", at_most = 5 }} if a person can have several rows',
        "# rows = 10_000       # the public number of rows (or persons), if it can be public",
        "",
        "[attributes]          # the public description of each column; remove the columns that no one needs",
        *(_attribute(column, kind) for column, kind in columns.items()),
        "",
        "[promise.identification]",
        'rho     = "?"         # DECIDE: no person is identified with a probability above this, e.g. 0.05',
        'worlds  = "?"         # DECIDE: "values" (an adversary guesses a value) or "persons" (then add population = 180_000)',
        'guarantee = "worst-case"   # holds for every response; "average" allows many more answers: docs/guides/which-guarantee.md',
        'protect = "?"         # DECIDE: the columns to protect, e.g. ["age"]; remove this line for worlds = "persons"',
        "",
        "# [promise.loss]      # instead or in addition: the total epsilon of all answers and synthetic tables",
        "# epsilon = 1.0",
    ]
    return "\n".join(lines) + "\n"


def _attribute(column: str, kind: ColumnType) -> str:
    name = key_text(column)
    if KEYLIKE.search(column):
        return f'{name} = {{ kind = "key" }}   # guessed from its name: it names the person or the record'
    known = {
        "whole": '{ kind = "integer", from = "?", to = "?", missing = "dropped" }   # DECIDE: public bounds',
        "decimal": '{ kind = "grid", from = "?", to = "?", step = "?", missing = "dropped" }   # DECIDE: public bounds and grid',
        "yes-no": '{ kind = "category", values = [false, true], missing = "dropped" }',
        "text": '{ kind = "category", values = "?", missing = "dropped" }   # DECIDE: the public list of values, or kind = "key"',
    }
    if kind == "other":
        return f"# {name}: Tidegate does not support its type; leave it out"
    return f"{name} = {known[kind]}"
