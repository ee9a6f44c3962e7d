"""Descriptions and code snippets of requests for synthetic tables."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

from tidegate.web.snippets.answer import connection_code

LOSSES = ("epsilon", "delta", "rho", "z", "share")
PLAIN: dict[str, Any] = {
    "tables": 1,
    "rows": None,
    "model": "forest/2",
    "target": "",
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
    "maps": "searching for columns that another column determines, with noise",
    "done": "done",
}


def synthesis_code(request: Mapping[str, Any], *, address: str, dataset: str, preview: bool = False) -> dict[str, str]:
    """Return the snippets of a request for synthetic tables; with `preview`, of its cost only."""
    options = changed_options(request)
    verb = "preview_synthesis" if preview else "synthesize"
    arguments = _arguments(options)
    lines = [connection_code(address, dataset)]
    if preview:
        lines += [f"remote.{verb}({arguments})"]
    else:
        lines += [f"tables = remote.{verb}({arguments})", "tables[0].to_pandas()"]
    words = ["tidegate", "synthesize", f"{dataset}.toml", *_options(options), *_destination(preview=preview)]
    return {"Python": "\n".join(lines), "Command line": shlex.join(words)}


def download_code(*, address: str, dataset: str, job: str, number: int = 1) -> dict[str, str]:
    """Return the snippets that download an existing table by the id of its synthesis."""
    url = f"{address}/v1/data/{dataset}/syntheses/{job}/tables/{number}"
    download = f'remote.synthesis("{job}").tables()[{number - 1}].to_pandas()'
    python = [connection_code(address, dataset), f"table = {download}  # created earlier: free"]
    command = f"curl -H 'Authorization: Bearer tg_...' -o {dataset}-{number}.parquet \\\n  {url}"
    return {"Python": "\n".join(python), "Command line": command}


def quality_code(request: Mapping[str, Any], *, dataset: str) -> dict[str, str]:
    """Return the snippets that compare tables with the original on the data holder's machine."""
    options = changed_options(request)
    python = [
        "import tidegate as tg",
        "",
        f"with tg.open({_literal(f'{dataset}.toml')}) as session:",
        f"    tables = session.synthesize({_arguments(options)})  # requested earlier: the same tables, free",
        '    tables.quality().save("quality.html")',
    ]
    synthesize = ["tidegate", "synthesize", f"{dataset}.toml", *_options(options), *_destination(preview=False)]
    compare = ["tidegate", "quality", f"{dataset}.toml", "synthetic", "--out", "quality.html"]
    return {"Python": "\n".join(python), "Command line": f"{shlex.join(synthesize)}\n{shlex.join(compare)}"}


def changed_options(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a request that are not defaults, the budget first."""
    spend = {name: _short(request[name]) for name in LOSSES if request.get(name) is not None}
    return spend | {
        name: request[name] for name, usual in PLAIN.items() if name in request and request[name] not in (usual, None)
    }


def describe_request(request: Mapping[str, Any]) -> str:
    """Describe a request: 2 tables of 500 rows, epsilon 0.4 each."""
    count, rows = request.get("tables", 1), request.get("rows")
    tables = "1 table" if count == 1 else f"{count:,} tables"
    parts = [tables + (f" of {rows:,} rows" if rows else "")]
    if request.get("epsilon") is not None:
        delta = f" at delta {request['delta']}" if request.get("delta") is not None else ""
        parts.append(f"epsilon {_short(request['epsilon'])}{delta}" + (" each" if count > 1 else ""))
    elif request.get("z") is not None:
        parts.append(f"Z {_short(request['z'])}" + (" each" if count > 1 else ""))
    elif request.get("share") is not None:
        parts.append(f"{_short(request['share'])} of the total budget")
    else:
        parts.append(f"identification by {'it' if count == 1 else 'them'} alone at most {_short(request.get('rho'))}")
    if request.get("model", PLAIN["model"]) != PLAIN["model"]:
        parts.append(f"model {request['model']}")
    if request.get("columns"):
        parts.append(f"columns {', '.join(request['columns'])}")
    if request.get("target"):
        parts.append(f"target column {request['target']}")
    if request.get("seed") is not None:
        parts.append(f"seed {request['seed']}")
    return ", ".join(parts)


def describe_stage(stage: str) -> str:
    """Describe a stage: "table 2 of 3: counting every column with noise"."""
    table, _, name = stage.rpartition(", ")
    step = STAGES.get(name, name)
    return f"{table}: {step}" if table else step


def _short(number: Any) -> str:
    """Return 1.0 as 1."""
    return str(number).removesuffix(".0")


def _arguments(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_literal(value)}" for name, value in options.items())


def _literal(value: Any) -> str:
    """Return a value as a Python literal: decimals unchanged, fractions and names as text."""
    if isinstance(value, str) and DECIMAL.fullmatch(value):
        return value
    return json.dumps(value, ensure_ascii=False)


def _options(options: Mapping[str, Any]) -> list[str]:
    words: list[str] = []
    for name, value in options.items():
        if name == "columns":
            words += [word for column in value for word in ("--column", column)]
        else:
            words += [f"--{name}", str(value)]
    return words


def _destination(*, preview: bool) -> list[str]:
    return ["--preview"] if preview else ["--out", "synthetic"]
