"""Large answers come in pages: together they are the whole answer, they are charged once, and memory does not grow with them."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.service import RunningService, quiet_settings, run_service

import tidegate as tg
from tidegate.answer.pages import PAGE, join_pages, to_page
from tidegate.errors import TooManyCells, Unsupported
from tidegate.policy import Dataset, Integer, Loss, Policy
from tidegate.service.settings import MOST_CELLS, Settings
from tidegate.tables import table as tables

SIDES = 400, 250  # 100,000 cells
ROWS = 1_000
GRID = Policy(
    Dataset("grid", rows=ROWS, source="grid.csv"),
    {"x": Integer(0, SIDES[0] - 1), "y": Integer(0, SIDES[1] - 1), "z": Integer(0, 9)},
    loss=Loss("1000"),
)
DATA = pa.table({name: [n * n * 7 % (top) for n in range(ROWS)] for name, top in (("x", 400), ("y", 250), ("z", 10))})
LARGE = {"questions": [{"ask": "count", "by": ["x", "y"]}], "epsilon": 1, "anyway": True}
URL = "/v1/data/grid/answers"


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    ledger = str(tmp_path_factory.mktemp("pages") / "all.ledger")
    with run_service(ledger, policies=(GRID,), data=DATA) as service:
        yield service


def read_pages(service: RunningService, body: Any, **params: Any) -> list[dict[str, Any]]:
    """Return all pages of an answer."""
    pages = [service.post(URL, body, params=params).json()]
    while cursor := pages[-1].get("next"):
        pages.append(service.post(URL, body, params={**params, "cursor": cursor}).json())
    return pages


def spent(service: RunningService) -> Fraction:
    return Fraction(service.get("/v1/data/grid").json()["account"]["spent"])


def connect(service: RunningService) -> tg.RemoteSession:
    """Return a remote session that sends its requests to the running service."""
    import httpx

    class Inside(httpx.BaseTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            headers = {name: value for name, value in request.headers.items() if name != "host"}
            response = service.client.request(
                request.method, str(request.url.raw_path, "ascii"), content=request.read(), headers=headers
            )
            return httpx.Response(response.status_code, content=response.content)

    return tg.connect("http://127.0.0.1", service.tokens["owner"], dataset="grid", transport=Inside())


def test_large_answer_comes_in_pages_of_ten_thousand_cells_and_is_charged_once(grid: RunningService) -> None:
    before = spent(grid)
    pages = read_pages(grid, LARGE)
    assert [len(page["rows"]) for page in pages] == [PAGE] * 10
    assert [(page["first"], page["cells"]) for page in pages] == [(n * PAGE, 100_000) for n in range(10)]
    assert [page["cost"] for page in pages] == ["1", *["0"] * 9]
    assert spent(grid) == before + 1
    whole = grid.datasets["grid"].session.answer(tg.count().by("x", "y"), epsilon=1, anyway=True)
    assert [row for page in pages for row in page["rows"]] == whole.rows()
    with connect(grid) as remote:
        read = remote.answer(tg.count().by("x", "y"), epsilon=1, anyway=True)
    assert (read.stored, read.entry) == (whole.stored, whole.entry)
    assert read.rows()[-1] == whole.rows()[-1]


def test_memory_of_a_page_does_not_grow_with_the_answer(grid: RunningService) -> None:
    first = grid.post(URL, LARGE).json()
    session = grid.datasets["grid"].session
    whole = peak_of(lambda: session.answer(tg.count().by("x", "y"), epsilon=1, anyway=True).to_dict())
    last = {"cursor": f"{first['entry']}.{9 * PAGE}"}
    page = peak_of(lambda: grid.post(URL, LARGE, params=last))
    assert page < whole / 3, (page, whole)


def peak_of(work: Any) -> int:
    """Return the most bytes that Python allocated during some work."""
    work()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "queries",
    [
        [tg.count().by("z"), tg.mean("x").by("z"), tg.count()],
        [tg.histogram("z"), tg.sum("x").by("z")],
        [tg.quantile("x", 0.5).by("z"), tg.variance("x").by("z")],
        [tg.count().by("z").where(tg.col("x") < 100)],
    ],
    ids=["counts and means", "histogram and sums", "quantiles and variances", "condition"],
)
@pytest.mark.parametrize("limit", [1, 3, 7, 1_000])
def test_pages_of_every_statistic_join_to_the_whole(grid: RunningService, queries: list[Any], limit: int) -> None:
    result = grid.datasets["grid"].session.answer(queries, epsilon=3, anyway=True)
    pages, first = [], 0
    while first is not None:
        pages.append(to_page(result, first, limit))
        first = pages[-1].get("next")
    if len(pages) == 1:
        assert pages[0] == result.to_dict()
        return
    assert all(sum(len(part["rows"]) for part in page["answers"]) <= limit for page in pages)
    joined = type(result).from_dict(join_pages(pages, GRID), GRID)
    assert [answer.stored for answer in joined] == [answer.stored for answer in result]
    with pytest.raises((ValueError, IndexError)):
        join_pages(pages[:-1] if limit > 1 else pages[1:], GRID)


def test_planned_counts_and_sql_are_paged_too(grid: RunningService) -> None:
    planned = {
        "questions": [{"ask": "count", "by": [name]} for name in "xz"],
        "epsilon": 2,
        "plan": "auto",
        "anyway": True,
    }
    pages = read_pages(grid, planned, limit=100)
    assert [sum(len(part["rows"]) for part in page["answers"]) for page in pages] == [100] * 4 + [10]
    sql = {"sql": "SELECT z, COUNT(*) FROM grid GROUP BY z", "epsilon": 1, "anyway": True}
    pages = read_pages(grid, sql, limit=4)
    rows = [row for page in pages for part in page.get("answers", [page]) for row in part["rows"]]
    assert rows == grid.post(URL, sql).json()["rows"]


def test_later_page_never_charges(grid: RunningService) -> None:
    body = {"questions": [{"ask": "count", "by": ["z"]}], "epsilon": "0.7", "anyway": True}
    first = grid.post(URL, body, params={"limit": 4}).json()
    before = spent(grid)
    other = {**body, "epsilon": "0.71"}
    refused = grid.post(URL, other, params={"limit": 4, "cursor": first["next"]})
    assert (refused.status_code, refused.json()["code"]) == (409, "stale-policy")
    assert grid.post(URL, body, params={"limit": 4, "cursor": f"{'0' * 64}.4"}).status_code == 409
    beyond = grid.post(URL, body, params={"limit": 4, "cursor": f"{first['entry']}.10"}).json()
    assert (beyond["rows"], beyond["next"]) == ([], None)
    assert grid.post(URL, body, params={"cursor": "x"}).status_code == 422
    assert grid.post(URL, body, params={"limit": PAGE + 1}).status_code == 422
    assert spent(grid) == before


def test_stored_answer_is_paged_too(grid: RunningService) -> None:
    body = {"questions": [{"ask": "count", "by": ["z"]}], "epsilon": "0.6", "anyway": True}
    first = grid.post(URL, body, params={"limit": 4}).json()
    number = grid.get("/v1/data/grid/history", params={"newest": True}).json()["questions"][0]["number"]
    later = grid.get(f"{URL}/{number}", params={"limit": 4, "cursor": first["next"]}).json()
    assert (later["first"], later["cells"], len(later["rows"])) == (4, 10, 4)
    assert later == {**grid.post(URL, body, params={"limit": 4, "cursor": first["next"]}).json()} | {
        "cost": later["cost"]
    }
    wrong = grid.get(f"{URL}/{number}", params={"cursor": f"{'0' * 64}.4"})
    assert (wrong.status_code, wrong.json()["code"]) == (409, "stale-policy")


def test_request_with_too_many_cells_is_refused_before_the_charge(tmp_path: Path) -> None:
    settings = quiet_settings(most_cells=99_999)
    with run_service(str(tmp_path / "l"), settings=settings, policies=(GRID,), data=DATA) as service:
        fits = {"questions": [{"ask": "count", "by": ["z"]}], "epsilon": 1, "anyway": True}
        assert service.post(URL, fits).status_code == 200
        for path in ("answers", "previews", "quotes"):
            refused = service.post(f"/v1/data/grid/{path}", LARGE)
            assert refused.status_code == 422, path
            assert refused.json()["code"] == "too-many-cells"
            assert "100,000 cells" in refused.text
            assert "99,999" in refused.text
        assert spent(service) == 1
        derived = service.post("/v1/data/grid/derivations", {"questions": LARGE["questions"]})
        assert derived.json()["code"] == "too-many-cells"
        with connect(service) as remote, pytest.raises(TooManyCells, match="at most 99,999"):
            remote.answer(tg.count().by("x", "y"), epsilon=1)


@pytest.mark.parametrize("cells", [0, -1, MOST_CELLS + 1])
def test_limit_of_cells_is_checked(cells: int) -> None:
    with pytest.raises(Unsupported, match="most_cells"):
        Settings(most_cells=cells)
    assert MOST_CELLS == tables.MOST_CELLS
