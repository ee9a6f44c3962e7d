"""The notebook runs all queries again through the service at no cost and shows the stored answers."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from support.console_service import Console

from tidegate.service.access.permissions import ANALYST, OWNER

if TYPE_CHECKING:
    from playwright.sync_api import Page

ASKED: list[dict[str, Any]] = [
    {"questions": [{"ask": "count"}], "rho": 0.00004},
    {"questions": [{"ask": "mean", "column": "age"}], "error": 9.5},
    {
        "sql": "SELECT town, COUNT(*), AVG(age) FROM people WHERE age >= 20.5 OR sex = 'male' GROUP BY town",
        "epsilon": "1/7",
    },
    {
        "questions": [{"ask": "quantile", "column": "age", "share": "1/3"}, {"ask": "max", "column": "age"}],
        "epsilon": 0.1,
    },
    {"questions": [{"ask": "count", "where": {"compare": ["age", ">", {"number": "64/3"}]}}], "epsilon": "0.01"},
]


def bearer(console: Console, role: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {console.tokens[role]}"}


def download_notebook(console: Console, role: str) -> dict[str, Any]:
    response = httpx.get(f"{console.address}/v1/data/people/notebook", headers=bearer(console, role))
    assert response.status_code == 200, response.text
    assert response.headers["content-disposition"] == 'attachment; filename="people.ipynb"'
    return dict(response.json())


def execute(notebook: dict[str, Any]) -> Iterator[tuple[dict[str, Any], Any]]:
    """Run the code cells in order, as a kernel does: the last line is the cell's output."""
    names: dict[str, Any] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            parsed = ast.parse("".join(cell["source"]))
            last = parsed.body.pop() if isinstance(parsed.body[-1], ast.Expr) else None
            exec(compile(parsed, "cell", "exec"), names)
            yield cell, eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last else None


@pytest.fixture(scope="module")
def queried_console(console: Console) -> Console:
    for number, body in enumerate(ASKED):
        role = ANALYST if number in (1, 3) else OWNER
        response = httpx.post(
            f"{console.address}/v1/data/people/answers",
            json={**body, "anyway": True},
            headers=bearer(console, role),
            timeout=60,
        )
        assert response.status_code == 200, response.text
    return console


@pytest.mark.parametrize(("role", "count"), [(OWNER, 5), (ANALYST, 2)])
def test_notebook_runs_with_stored_answers_and_charges_nothing(
    queried_console: Console, monkeypatch: pytest.MonkeyPatch, role: str, count: int
) -> None:
    monkeypatch.setenv("TIDEGATE_TOKEN", queried_console.tokens[role])
    before = queried_console.datasets.ledger.head()
    results = list(execute(download_notebook(queried_console, role)))
    answers = [(cell, result) for cell, result in results if cell["outputs"]]
    assert len(answers) == count
    for cell, result in answers:
        assert repr(result) == "".join(cell["outputs"][0]["data"]["text/plain"])
    assert queried_console.datasets.ledger.head() == before, "not an entry was added"
    assert results[-1][1]["spent"] == str(queried_console.datasets["people"].session.account.spent)


def test_notebook_has_the_jupyter_format(queried_console: Console) -> None:
    notebook = download_notebook(queried_console, OWNER)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    for cell in notebook["cells"]:
        needed = {"id", "cell_type", "metadata", "source"}
        assert set(cell) == needed | ({"outputs", "execution_count"} if cell["cell_type"] == "code" else set())
        for output in cell.get("outputs", []):
            assert set(output) == {"output_type", "execution_count", "metadata", "data"}


def test_notebook_contains_no_token_and_can_be_read_without_one(queried_console: Console) -> None:
    text = json.dumps(download_notebook(queried_console, OWNER))
    assert "tg_" not in text
    assert 'os.environ[\\"TIDEGATE_TOKEN\\"]' in text


def test_empty_notebook_shows_the_remaining_budget(fresh_console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEGATE_TOKEN", fresh_console.tokens[OWNER])
    result = list(execute(download_notebook(fresh_console, OWNER)))
    assert result[-1][1]["spent"] == "0"


def test_notebook_can_be_downloaded_from_the_page(
    queried_console: Console, sign_in: Callable[..., Page], tmp_path: Any
) -> None:
    tab = sign_in(queried_console, ANALYST, "/console/data/people/ask")
    with tab.expect_download() as download:
        tab.get_by_role("link", name="Download all as a notebook").click()
    assert download.value.suggested_filename == "people.ipynb"
    download.value.save_as(tmp_path / "people.ipynb")
    assert json.loads((tmp_path / "people.ipynb").read_text("utf-8"))["nbformat"] == 4
