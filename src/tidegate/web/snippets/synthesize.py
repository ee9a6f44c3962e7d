"""Descriptions and code snippets of requests for synthetic tables."""

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
    "size": "counting the rows with noise",
    "spikes": "searching for frequent values with noise",
    "margins": "counting every column with noise",
    "pairs": "selecting pairs of columns and counting them with noise",
    "correlations": "measuring correlations with noise",
    "blocks": "fitting regressions with noise",
    "statistics": "counting with noise",
    "rows": "generating rows",
    "done": "done",
}


def spelled_synthesis(
    wanted: Mapping[str, Any], *, address: str, dataset: str, preview: bool = False
) -> dict[str, str]:
    """Return the snippets of a request for synthetic tables; with `preview`, of its cost only."""
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
    """Return the snippets that download an existing table by the id of its synthesis."""
    url = f"{address}/data/{dataset}/syntheses/{job}/tables/{number}"
    download = f'remote.synthesis("{job}").tables()[{number - 1}].to_pandas()'
    python = [connecting(address, dataset), f"table = {download}  # created earlier: free"]
    command = f"curl -H 'Authorization: Bearer tg_...' -o {dataset}-{number}.parquet \\\n  {url}"
    return {"Python": "\n".join(python), "Command line": command}


def spelled_quality(wanted: Mapping[str, Any], *, dataset: str) -> dict[str, str]:
    """Return the snippets that compare tables with the original on the data holder's machine."""
    given = changed(wanted)
    python = [
        "import tidegate as tg",
        "",
        f"with tg.open({_literal(f'{dataset}.toml')}) as session:",
        f"    tables = session.synthesize({_arguments(given)})  # requested earlier: the same tables, free",
        '    tables.quality().save("quality.html")',
    ]
    made = ["tidegate", "synthesize", f"{dataset}.toml", *_options(given), *_destination(preview=False)]
    compared = ["tidegate", "quality", f"{dataset}.toml", "synthetic", "--out", "quality.html"]
    return {"Python": "\n".join(python), "Command line": f"{shlex.join(made)}\n{shlex.join(compared)}"}


def changed(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a request that are not defaults, the budget first."""
    spend = {name: _short(wanted[name]) for name in ("epsilon", "rho") if wanted.get(name) is not None}
    return spend | {
        name: wanted[name] for name, usual in PLAIN.items() if name in wanted and wanted[name] not in (usual, None)
    }


def in_words(wanted: Mapping[str, Any]) -> str:
    """Describe a request: 2 tables of 500 rows, epsilon 0.4 each."""
    count, rows = wanted.get("tables", 1), wanted.get("rows")
    tables = "1 table" if count == 1 else f"{count:,} tables"
    parts = [tables + (f" of {rows:,} rows" if rows else "")]
    if wanted.get("epsilon") is not None:
        parts.append(f"epsilon {_short(wanted['epsilon'])}" + (" each" if count > 1 else ""))
    else:
        parts.append(f"identification by {'it' if count == 1 else 'them'} alone at most {_short(wanted.get('rho'))}")
    if wanted.get("model", "auto") != "auto":
        parts.append(f"model {wanted['model']}")
    if wanted.get("columns"):
        parts.append(f"columns {', '.join(wanted['columns'])}")
    if wanted.get("target"):
        parts.append(f"target column {wanted['target']}")
    if wanted.get("seed") is not None:
        parts.append(f"seed {wanted['seed']}")
    return ", ".join(parts)


def stage_in_words(stage: str) -> str:
    """Describe a stage: "table 2 of 3: counting every column with noise"."""
    table, _, name = stage.rpartition(", ")
    step = STAGES.get(name, name)
    return f"{table}: {step}" if table else step


def _short(number: Any) -> str:
    """Return 1.0 as 1."""
    return str(number).removesuffix(".0")


def _arguments(given: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_literal(value)}" for name, value in given.items())


def _literal(value: Any) -> str:
    """Return a value as a Python literal: decimals unchanged, fractions and names as text."""
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
