"""Synthetic tables as they are asked for: in a sentence, in Python, on the command line."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

from tidegate.web.snippets.answer import connecting

PLAIN: dict[str, Any] = {
    "tables": 1,
    "rows": None,
    "model": "auto",
    "target": "",
    "split": {},
    "seed": None,
    "columns": [],
}
DECIMAL = re.compile(r"(0|[1-9]\d*)(\.\d+)?")
STAGES = {
    "beginning": "reading the table",
    "size": "counting the rows, with noise",
    "spikes": "looking for frequent single values",
    "margins": "counting every column, with noise",
    "pairs": "choosing pairs of columns and counting them, with noise",
    "correlations": "measuring correlations, with noise",
    "blocks": "fitting regressions, with noise",
    "statistics": "counting, with noise",
    "rows": "drawing rows",
    "done": "done",
}


def spelled_synthesis(
    wanted: Mapping[str, Any], *, address: str, dataset: str, preview: bool = False
) -> dict[str, str]:
    """A request for synthetic tables as code; `preview`: only what it would cost."""
    given = changed(wanted)
    verb = "preview_synthesis" if preview else "synthesize"
    arguments = _arguments(given)
    lines = [connecting(address, dataset)]
    if preview:
        lines += [f"remote.{verb}({arguments})"]
    else:
        lines += [f"tables = remote.{verb}({arguments})", "tables[0].to_pandas()"]
    words = ["tidegate", "synthesize", f"{dataset}.toml", *_options(given), *_destination(preview=preview)]
    return {"Python": "\n".join(lines), "Command line": shlex.join(words)}


def spelled_download(*, address: str, dataset: str, job: str, number: int = 1) -> dict[str, str]:
    """A table that is there already, fetched by its id."""
    place = f"{address}/data/{dataset}/syntheses/{job}/tables/{number}"
    fetched = f'remote.synthesis("{job}").tables()[{number - 1}].to_pandas()'
    python = [connecting(address, dataset), f"table = {fetched}  # made before: at no cost"]
    command = f"curl -H 'Authorization: Bearer tg_...' -o {dataset}-{number}.parquet \\\n  {place}"
    return {"Python": "\n".join(python), "Command line": command}


def spelled_quality(wanted: Mapping[str, Any], *, dataset: str) -> dict[str, str]:
    """The comparison with the original, where the data is."""
    given = changed(wanted)
    python = [
        "import tidegate as tg",
        "",
        f"with tg.open({_literal(f'{dataset}.toml')}) as session:",
        f"    tables = session.synthesize({_arguments(given)})  # asked before: the same tables, at no cost",
        '    tables.quality().save("quality.html")',
    ]
    made = ["tidegate", "synthesize", f"{dataset}.toml", *_options(given), *_destination(preview=False)]
    compared = ["tidegate", "quality", f"{dataset}.toml", "synthetic", "--out", "quality.html"]
    return {"Python": "\n".join(python), "Command line": f"{shlex.join(made)}\n{shlex.join(compared)}"}


def changed(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """What of a request is not as it would be anyway, the budget first."""
    spend = {name: _short(wanted[name]) for name in ("epsilon", "rho") if wanted.get(name) is not None}
    return spend | {
        name: wanted[name] for name, usual in PLAIN.items() if name in wanted and wanted[name] not in (usual, None)
    }


def in_words(wanted: Mapping[str, Any]) -> str:
    """A request in a sentence: 2 tables of 500 rows, epsilon 0.4 each."""
    many, rows = wanted.get("tables", 1), wanted.get("rows")
    tables = "1 table" if many == 1 else f"{many:,} tables"
    parts = [tables + (f" of {rows:,} rows" if rows else "")]
    if wanted.get("epsilon") is not None:
        parts.append(f"epsilon {_short(wanted['epsilon'])}" + (" each" if many > 1 else ""))
    else:
        parts.append(f"identification by {'it' if many == 1 else 'them'} alone at most {_short(wanted.get('rho'))}")
    if wanted.get("model", "auto") != "auto":
        parts.append(f"by {wanted['model']}")
    if wanted.get("columns"):
        parts.append(f"columns {', '.join(wanted['columns'])}")
    if wanted.get("target"):
        parts.append(f"with most care for {wanted['target']}")
    if wanted.get("seed") is not None:
        parts.append(f"seed {wanted['seed']}")
    return ", ".join(parts)


def stage_in_words(stage: str) -> str:
    """What a run is doing: "table 2 of 3: counting every column, with noise"."""
    table, _, name = stage.rpartition(", ")
    said = STAGES.get(name, name)
    return f"{table}: {said}" if table else said


def _short(number: Any) -> str:
    """1.0 is 1."""
    return str(number).removesuffix(".0")


def _arguments(given: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_literal(value)}" for name, value in given.items())


def _literal(value: Any) -> str:
    """A value as Python writes it: a decimal as it is, thirds and names as text."""
    if isinstance(value, str) and DECIMAL.fullmatch(value):
        return value
    return json.dumps(value, ensure_ascii=False)


def _options(given: Mapping[str, Any]) -> list[str]:
    words: list[str] = []
    for name, value in given.items():
        if name == "columns":
            words += [word for column in value for word in ("--column", column)]
        elif name == "split":
            words += [word for stage, share in value.items() for word in ("--split", f"{stage}={share}")]
        else:
            words += [f"--{name}", str(value)]
    return words


def _destination(*, preview: bool) -> list[str]:
    return ["--preview"] if preview else ["--out", "synthetic"]
