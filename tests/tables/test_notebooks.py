"""Notebooks on a bare Jupyter kernel: DuckDB cannot change its progress bar there without ipywidgets."""

from __future__ import annotations

from importlib.util import find_spec

import nbformat
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


def test_tables_open_on_a_kernel_without_ipywidgets(tmp_path: object) -> None:
    assert find_spec("ipywidgets") is None, "with ipywidgets installed this test shows nothing"
    cell = nbformat.v4.new_code_cell(OPENS_TABLES.replace("FOLDER", repr(str(tmp_path))))
    notebook = nbformat.v4.new_notebook(cells=[cell])
    NotebookClient(notebook, kernel_name="python3", timeout=300).execute()
    printed = "".join(output.get("text", "") for output in notebook.cells[0].outputs if output.get("name") == "stdout")
    assert printed.strip() == "3 [1, 2]"
