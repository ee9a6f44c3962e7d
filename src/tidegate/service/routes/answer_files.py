"""Stored answers by their permanent address, as JSON and as files. No row is read, and nothing is charged.

An answer is named by the hash of its question and noise. A user who does not know the question cannot guess the address; a
user who knows it gets the same answer at no cost from `POST .../answers`.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import Path, Query
from fastapi.responses import Response

from tidegate.answer.charts import Order, page_chart
from tidegate.answer.repeat import asked_again, stored_answers
from tidegate.answer.result import Answers
from tidegate.charts import Chart
from tidegate.errors import NotThere
from tidegate.service.datasets import ServedDataset
from tidegate.service.models.answers import AnswerReply, AnswersReply
from tidegate.service.routes.answers import answer_charts
from tidegate.service.routes.dependencies import Charts, Described, Served, router, with_charts
from tidegate.service.spreadsheets import safe_table

if TYPE_CHECKING:
    import pyarrow as pa

routes = router()
Kind = Literal["json", "csv", "parquet", "svg", "png"]
Name = Annotated[
    str, Path(pattern=r"^[0-9a-f]{64}$", description="The hash in the `link` of a quote or of the history.")
]
Ordered = Annotated[Order, Query(description="The order of the groups; `policy` is the order of the policy.")]
KINDS = {
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "svg": "image/svg+xml",
    "png": "image/png",
}
FILES: Any = {200: {"content": {kind: {"schema": {"type": "string", "format": "binary"}} for kind in KINDS.values()}}}


@routes.get("/data/{name}/stored-answers/{answer}", response_model=AnswerReply | AnswersReply, responses=FILES)
def linked_answer(
    served: Served,
    answer: Name,
    kind: Annotated[Kind, Query(alias="format", description="`json`, or a file to download.")] = "json",
    order: Ordered = "policy",
    charts: Charts = False,
) -> Any:
    answers = find_answers(served, answer)
    if kind != "json":
        return file_of(answers, kind, order, f"{served.name}-{answer[:12]}")
    content = content_of(answers)
    return with_charts(content, answer_charts(content.get("answers", [content]), order)) if charts else content


def find_answers(served: ServedDataset, answer: str) -> Answers:
    """Return stored answers by the hash of their question, or raise NotThere."""
    receipt = served.session.ledger.find_answer(served.name, answer)
    again = asked_again(receipt.entry.content(), served.policy) if receipt else None
    if receipt is None or again is None:
        raise NotThere(
            "There is no stored answer at this address under the current policy.",
            "Ask the question again to get a price.",
        )
    return stored_answers(receipt, again, served.policy)


def content_of(answers: Answers) -> Described:
    """Return answers as JSON values; a single one has its own format."""
    return answers[0].to_dict() if len(answers) == 1 and not answers.tables else answers.to_dict()


def file_of(answers: Answers, kind: Kind, order: Order, name: str) -> Response:
    """Return answers as a file to download; text in CSV is safe to open in a spreadsheet."""
    if kind in ("svg", "png"):
        chart = chart_of(answers, order)
        content = chart.png() if kind == "png" else chart.svg(standalone=True).encode()
    else:
        table = answers[0].to_arrow() if len(answers) == 1 and not answers.tables else answers.to_arrow()
        content = _table_file(table, kind)
    headers = {"content-disposition": f'attachment; filename="{name}.{kind}"'}
    return Response(content, media_type=KINDS[kind], headers=headers)


def _table_file(table: pa.Table, kind: Kind) -> bytes:
    from pyarrow import csv, parquet

    file = io.BytesIO()
    if kind == "csv":
        csv.write_csv(safe_table(table), file)
    else:
        parquet.write_table(table, file)
    return file.getvalue()


def chart_of(answers: Answers, order: Order) -> Chart:
    """Return the chart of all answers: one panel each, and a single number as a dot with its interval."""
    panels = tuple(page_chart(answer.to_dict(), order=order) for answer in answers)
    if not panels:
        raise NotThere("Public numbers have no chart.", "Download them as CSV.")
    return panels[0] if len(panels) == 1 else Chart("Answers with their 95% intervals", panels=panels)
