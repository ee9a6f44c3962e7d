"""The ledger over HTTP: totals, entries with descriptions, verification, export."""

from __future__ import annotations

from pathlib import Path

from support.service import RunningService

from tidegate.ledger import verify_export


def ask(service: RunningService, *prices: str, data: str = "people") -> None:
    for price in prices:
        body = {"questions": [{"ask": "count"}], "epsilon": price, "anyway": True}
        assert service.post(f"/v1/data/{data}/answers", body).status_code == 200


def test_totals_match_the_entries_exactly(fresh_service: RunningService) -> None:
    ask(fresh_service, "0.1", "0.2")
    (content,) = [
        account for account in fresh_service.get("/v1/ledger").json()["accounts"] if account["account"] == "people"
    ]
    assert (content["spent"], content["left"], content["ceiling"]) == ("0.3", "999.7", "1000")


def test_entries_are_paged_and_described_independently_of_the_page(fresh_service: RunningService) -> None:
    ask(fresh_service, "0.1", "0.2", "0.3")
    ask(fresh_service, "0.1", data="others")
    whole = fresh_service.get("/v1/ledger/entries").json()
    assert whole["next"] is None
    pages, cursor = [], ""
    while cursor is not None:
        page = fresh_service.get(f"/v1/ledger/entries?limit=1&cursor={cursor}").json()
        pages, cursor = pages + page["entries"], page["next"]
    assert pages == whole["entries"]
    assert [item["number"] for item in pages] == list(range(1, len(pages) + 1))
    charged = [item["says"] for item in pages if item["kind"] == "charge" and item["account"] == "people"]
    assert charged[1] == "olga queried the number of rows: 0.2 charged, 0.3 of 1,000 spent."
    newest = fresh_service.get("/v1/ledger/entries?newest=true&limit=2").json()["entries"]
    assert [item["number"] for item in newest] == [len(pages), len(pages) - 1]
    only = fresh_service.get("/v1/ledger/entries?dataset=others").json()["entries"]
    assert {item["account"] for item in only} == {"others"}


def test_ledger_verifies_and_contains_a_noted_head(fresh_service: RunningService) -> None:
    ask(fresh_service, "0.1")
    head = fresh_service.get("/v1/ledger").json()["head"]
    ask(fresh_service, "0.2")
    content = fresh_service.get(f"/v1/ledger/verification?head={head}").json()
    assert (content["holds"], content["spent"]["people"], content["problems"]) == (True, "0.3", [])
    strange = fresh_service.get(f"/v1/ledger/verification?head={'0' * 63}1").json()
    assert not strange["holds"]


def test_export_of_one_data_set_verifies_and_changes_are_detected(
    fresh_service: RunningService, tmp_path: Path
) -> None:
    for number in range(2):
        assert fresh_service.post(
            "/v1/data/others/answers",
            {"sql": "SELECT town, COUNT(*) FROM others GROUP BY town", "epsilon": 0.01 + number / 100, "anyway": True},
        )
    fresh_service.tokens["olaf"] = fresh_service.post(
        "/v1/tokens", {"role": "owner", "name": "olaf", "dataset": "others"}
    ).json()["token"]
    content = fresh_service.get("/v1/ledger/export", "olaf").content
    file = tmp_path / "others.jsonl"
    file.write_bytes(content)
    verdict = verify_export(file)
    assert verdict.problems == []
    assert set(verdict.spent) == {"others"}
    assert any("Only the entries of others" in note for note in verdict.notes)
    lines = content.splitlines(keepends=True)
    for at, line in enumerate(lines):
        if b'"kind":"charge"' in line:
            file.write_bytes(b"".join(lines[:at] + lines[at + 1 :]))
            assert verify_export(file).problems
            file.write_bytes(content.replace(line, line.replace(b'"amount":"0', b'"amount":"1')))
            assert verify_export(file).problems


def test_export_verifies_elsewhere(fresh_service: RunningService, tmp_path: Path) -> None:
    ask(fresh_service, "0.1")
    fresh_service.get("/v1/data/people/collections/shoppers")
    file = tmp_path / "ledger.jsonl"
    file.write_bytes(fresh_service.get("/v1/ledger/export").content)
    verdict = verify_export(file)
    assert verdict.problems == []
    assert verdict.head == fresh_service.get("/v1/ledger").json()["head"]


def test_unusual_user_names_have_separate_histories(fresh_service: RunningService) -> None:
    strange = ['ana"', '","who":"ana', "%", "an_", "<script>alert(1)</script>"]
    for number, name in enumerate(strange, start=1):
        content = fresh_service.post("/v1/tokens", {"role": "analyst", "name": name, "dataset": "people"}).json()
        fresh_service.tokens[name] = content["token"]
        body = {"questions": [{"ask": "count"}], "epsilon": f"0.0{number}", "anyway": True}
        assert fresh_service.post("/v1/data/people/answers", body, name).status_code == 200
    for number, name in enumerate(strange, start=1):
        mine = fresh_service.get("/v1/data/people/history", name).json()["questions"]
        assert [item["cost"] for item in mine] == [f"0.0{number}"]
    assert fresh_service.get("/v1/data/people/history", "analyst").json()["questions"] == []
