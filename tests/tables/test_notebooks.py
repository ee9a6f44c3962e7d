"""Notebooks on a bare Jupyter kernel: no ipywidgets, no warnings, and every result has a table and a page."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

OPENS_TABLES = """
import pyarrow as pa
import numpy as np
from tidegate.policy import Dataset, Integer, Policy
from tidegate.tables import open_table
from tidegate.tables.segments import Column, Segments

table = open_table(Policy(Dataset("people"), {"age": Integer(0, 9)}), pa.table({"age": [1, 2, 3]}))
segments = Segments(FOLDER, {"answer": Column("code", 2)})
written = segments.write({"answer": np.array([0, 1, 1], np.int32)}, batch="first")
print(table.count().item(), segments.count([written.name])["answer"].tolist())
"""


@pytest.mark.long  # the next test opens a table as well
def test_tables_open_on_a_kernel_without_ipywidgets(tmp_path: Path) -> None:
    assert find_spec("ipywidgets") is None, "with ipywidgets installed this test shows nothing"
    cell = nbformat.v4.new_code_cell(OPENS_TABLES.replace("FOLDER", repr(str(tmp_path))))
    notebook = nbformat.v4.new_notebook(cells=[cell])
    NotebookClient(notebook, kernel_name="python3", timeout=300).execute()
    printed = "".join(output.get("text", "") for output in notebook.cells[0].outputs if output.get("name") == "stdout")
    assert printed.strip() == "3 [1, 2]"


SHOWS_RESULTS = """
import tidegate as tg
import pyarrow as pa
policy = tg.Policy(tg.Dataset("people", rows=200), {"age": tg.Integer(0, 9), "sex": tg.Category(("f", "m"))}, loss=tg.Loss(10))
session = tg.open(policy, table=pa.table({"age": list(range(10)) * 20, "sex": ["f", "m"] * 100}), ledger=LEDGER)
queries = [tg.count().by("sex"), tg.mean("age")]
"""
CELLS = {
    "session.preview(queries, epsilon=1)": "Preview: nothing was charged",
    "answers = session.answer(queries, epsilon=1); answers": "The mean of age",
    "answers[0]": "The number of rows by sex",
    'session.derive(tg.count().where(tg.col("sex") == "f"))': "The number of rows",
    "session.account": "Budget of people",
    'session.answer("SELECT sex, AVG(age) * 2 AS double_age FROM people GROUP BY sex ORDER BY 2", epsilon=1)': "double age",
    'session.answer(tg.count().by("age // 5").where("age >= 2"), epsilon=1)': "<td>0</td>",
    "session.policy": "Policy of people",
    "answers[0].to_pandas()": "<td>m</td>",
    "answers.to_polars()": "<td>&quot;the mean of age&quot;</td>",
}


def test_results_show_on_a_kernel_without_ipywidgets(tmp_path: Path) -> None:
    assert find_spec("ipywidgets") is None, "with ipywidgets installed this test shows nothing"
    setup = SHOWS_RESULTS.replace("LEDGER", repr(str(tmp_path / "people.ledger")))
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in (setup, *CELLS)])
    NotebookClient(notebook, kernel_name="python3", timeout=300).execute()
    assert notebook.cells[0].outputs == []
    for cell, expected in zip(notebook.cells[1:], CELLS.values(), strict=True):
        assert [output.output_type for output in cell.outputs] == ["execute_result"], cell.source  # nothing on stderr
        assert expected in cell.outputs[0].data["text/html"], cell.source
