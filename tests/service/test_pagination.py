"""Lists in pages: every item once and in order, exact ends, links, and cursors that cannot be made up."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.service import SECRET, RunningService, quiet_settings, run_service

ITEMS = 5
LISTS = {  # path: the name of its items
    "/v1/ledger/entries?dataset=people&kind=charge": "entries",
    "/v1/ledger/entries?dataset=people&kind=charge&newest=true": "entries",
    "/v1/ledger/entries?dataset=people&text=queried": "entries",
    "/v1/data/people/history": "questions",
    "/v1/data/people/history?newest=true": "questions",
    "/v1/data/people/syntheses": "syntheses",
    "/v1/data/people/desks/hq/released": "records",
    "/v1/tokens": "tokens",
}


@pytest.fixture(scope="module")
def full_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    folder: Path = tmp_path_factory.mktemp("pages")
    with run_service(str(folder / "all.ledger"), settings=quiet_settings()) as service:
        for number in range(1, ITEMS + 1):
            body = {"sql": f"SELECT COUNT(*) FROM people WHERE age > {20 + number}", "epsilon": "0.1"}
            assert service.post("/v1/data/people/answers", body).status_code == 200
            assert service.post("/v1/data/people/syntheses", {"epsilon": number}).status_code == 202
        desk = "/v1/data/people/desks/hq"
        released = 0
        for number in range(100):
            outcomes = service.post(f"{desk}/requests", {"keys": [f"{SECRET}{number:04d}"]}).json()["outcomes"]
            released += outcomes[0]["outcome"] == "released"
            if released == ITEMS:
                break
        for name in ("a", "b"):
            service.post("/v1/tokens", {"role": "analyst", "name": name})
        yield service


def walk(service: RunningService, path: str, items: str, limit: int) -> list[list[Any]]:
    """Return the pages of a list; each is fetched by the link of the page before."""
    pages, url = [], f"{path}{'&' if '?' in path else '?'}limit={limit}"
    while url:
        response = service.get(url)
        content = response.json()
        pages.append([{name: value for name, value in item.items() if name != "seconds"} for item in content[items]])
        link = response.headers.get("link", "")
        assert (content["next"] is None) == (link == "")
        url = link.removeprefix("<").removesuffix('>; rel="next"')
        assert content["next"] is None or f"cursor={content['next']}" in url
    return pages


@pytest.mark.parametrize("path", LISTS)
def test_pages_hold_every_item_once_and_end_exactly(full_service: RunningService, path: str) -> None:
    [whole] = walk(full_service, path, LISTS[path], 1000)
    assert len(whole) == ITEMS
    for limit in (1, 2, ITEMS - 1, ITEMS, ITEMS + 1):
        pages = walk(full_service, path, LISTS[path], limit)
        assert [item for page in pages for item in page] == whole
        assert len(pages) == -(-ITEMS // limit), "no empty page at the end"


@pytest.mark.parametrize("path", LISTS)
def test_cursor_of_another_list_is_refused(full_service: RunningService, path: str) -> None:
    join = "&" if "?" in path else "?"
    other = next(name for name in LISTS if name.split("?")[0] != path.split("?")[0])
    foreign = full_service.get(f"{other}{'&' if '?' in other else '?'}limit=1").json()["next"]
    made_up = [
        urlsafe_b64encode(text).decode().rstrip("=") for text in (b"entries x", b"entries -1", b"\xff\xfe", b" ")
    ]
    huge = urlsafe_b64encode(b"entries " + b"9" * 70).decode().rstrip("=")
    for cursor in (foreign, *made_up, huge, "A", "!", "x" * 500):
        response = full_service.get(f"{path}{join}cursor={cursor}")
        assert (response.status_code, response.json()["code"]) == (422, "unsupported"), cursor
    assert full_service.get(f"{path}{join}limit=0").status_code == 422
    assert full_service.get(f"{path}{join}limit=1001").status_code == 422


def test_cursor_of_newest_first_does_not_fit_oldest_first(full_service: RunningService) -> None:
    cursor = full_service.get("/v1/ledger/entries?newest=true&limit=1").json()["next"]
    assert full_service.get(f"/v1/ledger/entries?newest=true&cursor={cursor}").status_code == 200
    assert full_service.get(f"/v1/ledger/entries?cursor={cursor}").status_code == 422


def test_items_that_are_added_later_come_at_the_end(fresh_service: RunningService) -> None:
    answer = {"sql": "SELECT COUNT(*) FROM people WHERE age > 30", "epsilon": "0.1"}
    fresh_service.post("/v1/data/people/answers", answer)
    fresh_service.post("/v1/data/people/answers", {**answer, "epsilon": "0.2"})
    first = fresh_service.get("/v1/data/people/history?limit=1").json()
    fresh_service.post("/v1/data/people/answers", {**answer, "epsilon": "0.3"})
    rest = fresh_service.get(f"/v1/data/people/history?cursor={first['next']}").json()["questions"]
    assert [item["cost"] for item in rest] == ["0.2", "0.3"]
