"""Drafts over the API: from an upload to a served data set, what is refused, and who is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from support.service import PROBLEM, quiet_settings

from tidegate.ledger.tokens import Tokens
from tidegate.service.access.permissions import ANALYST, OWNER
from tidegate.service.access.tokens import make_token
from tidegate.service.app import create_app
from tidegate.service.drafts.notation import unique_names

SECRET = "MARKER-51c9-"
CSV = "person,age,town,paid\n" + "".join(
    f"{SECRET}{n},{20 + n % 50},{'Aby' if n % 3 else 'Berg'},{n % 7}.5\n" for n in range(300)
)
PEOPLE = {"name": ["people"], "unit": ["row"], "rows": ["300"]}
COLUMNS = {
    "kind-0": ["key"],
    "kind-1": ["integer"],
    "from-1": ["0"],
    "to-1": ["120"],
    "kind-2": ["category"],
    "values-2": ["Aby\nBerg"],
    "kind-3": ["number"],
    "from-3": ["0"],
    "to-3": ["100"],
    "step-3": ["0.5"],
}
PROMISE = {"promise": ["guess"], "protect": ["age"], "one_in": ["20"], "guarantee": ["average"]}


@dataclass
class Gate:
    """A service with an empty folder."""

    client: TestClient
    app: Any
    folder: Path
    tokens: dict[str, str]

    def call(self, method: str, path: str, role: str = OWNER, **more: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.tokens[role]}", **more.pop("headers", {})}
        return self.client.request(method, path, headers=headers, **more)

    def post(self, path: str, body: Any = None) -> Any:
        return self.call("POST", path, json=body if body is not None else {})

    def start(self) -> str:
        return str(self.post("/v1/drafts").json()["id"])

    def upload(self, draft: str, content: bytes | str, name: str = "people.csv", **query: Any) -> Any:
        query = {"name": name, **query}
        return self.call("PUT", f"/v1/drafts/{draft}/file", content=content, params=query)

    def fill(self, draft: str, **steps: dict[str, list[str]]) -> Any:
        results = [self.post(f"/v1/drafts/{draft}/steps/{step}", {"fields": fields}) for step, fields in steps.items()]
        return results[-1].json()

    def page(self, address: str, form: dict[str, str] | None = None) -> str:
        """Return the text of a page of the console, or of the page that a form leads to."""
        csrf = self.client.post("/v1/sign-in", json={"token": self.tokens[OWNER]}).json()["csrf"]
        method, data = ("GET", None) if form is None else ("POST", {"csrf": csrf, **form})
        text = self.client.request(method, address, data=data, headers={"Accept": "text/html"}).text
        self.client.cookies.clear()
        return unescape(text)


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick_hashes: None) -> Iterator[Gate]:
    monkeypatch.setenv("TIDEGATE_REGISTRY", "")
    settings = quiet_settings(folder=str(tmp_path / "gate"), largest_upload=1024 * 1024)
    app = create_app(settings)
    store = Tokens(app.state.datasets.ledger.store)
    tokens = {role: make_token(store, role=role, name=role)[0] for role in (OWNER, ANALYST)}
    tokens["part"] = make_token(store, role=OWNER, name="part", dataset="people")[0]
    with TestClient(app, base_url="http://127.0.0.1") as client:
        yield Gate(client, app, tmp_path / "gate", tokens)


def problems_of(content: Any, step: str) -> Any:
    return next(part["problems"] for part in content["steps"] if part["step"] == step)


def filled(gate: Gate) -> str:
    draft = gate.start()
    assert gate.upload(draft, CSV).status_code == 200
    content = gate.fill(draft, people=PEOPLE, columns=COLUMNS, promise=PROMISE)
    assert content["complete"], content
    return draft


def test_upload_is_served_after_six_steps_and_an_analyst_gets_an_answer(gate: Gate) -> None:
    draft = filled(gate)
    simulated = gate.call("GET", f"/v1/drafts/{draft}/simulation?queries=10").json()
    assert {"The mean of age", "The number of rows by town"} <= {line["query"] for line in simulated["lines"]}
    gate.fill(draft, publication={"analyst": ["ana"], "percent": ["10"], "days": ["30"]})
    published = gate.post(f"/v1/drafts/{draft}/publication")
    assert published.status_code == 201, published.text
    gate.tokens["ana"] = published.json()["token"]
    me = gate.call("GET", "/v1/me", "ana").json()
    assert (me["dataset"], me["role"]) == ("people", "analyst")
    described = gate.call("GET", "/v1/data/people", "ana").json()
    assert float(described["account"]["own"]["share"]) == pytest.approx(float(described["account"]["ceiling"]) / 10)
    question = {"sql": "SELECT AVG(age) FROM people", "share": 0.05}
    answer = gate.call("POST", "/v1/data/people/answers", "ana", json=question)
    assert answer.status_code == 200, answer.text
    policy = gate.folder / "people.toml"
    assert oct(policy.stat().st_mode)[-3:] == "600"
    again = gate.post(f"/v1/drafts/{draft}/publication")
    assert (again.status_code, "published before" in again.text) == (422, True)
    assert gate.fill(draft, people=PEOPLE)["code"] == "unsupported"


def test_draft_keeps_what_was_typed_and_names_the_problem_at_its_field(gate: Gate) -> None:
    draft = gate.start()
    gate.upload(draft, CSV)
    content = gate.fill(draft, people={"name": ["9 lives"], "unit": ["person"], "key": ["nobody"], "at_most": ["0"]})
    assert set(problems_of(content, "people")) == {"name", "key", "at_most"}
    content = gate.fill(draft, columns={**COLUMNS, "from-1": ["low"], "to-3": ["1,500"], "values-2": [""]})
    assert set(problems_of(content, "columns")) == {"from-1", "to-3", "values-2"}
    assert 'values = "?"' in content["toml"]
    content = gate.fill(draft, columns={**COLUMNS, "from-1": ["130"]}, people=PEOPLE)
    assert set(problems_of(content, "columns")) == {"to-1"}
    content = gate.fill(draft, columns=COLUMNS, promise={**PROMISE, "one_in": ["500"]})
    assert "random guess" in problems_of(content, "promise")["one_in"]
    assert content["complete"] is False
    assert gate.call("GET", f"/v1/drafts/{draft}/simulation").status_code == 422
    assert gate.post(f"/v1/drafts/{draft}/publication").status_code == 422
    assert not list(gate.folder.glob("*.toml"))


def test_preview_changes_nothing(gate: Gate) -> None:
    draft = filled(gate)
    before = gate.call("GET", f"/v1/drafts/{draft}").json()
    stricter = {"fields": {**PROMISE, "one_in": ["15"], "guarantee": ["worst-case"]}, "store": False}
    preview = gate.post(f"/v1/drafts/{draft}/steps/promise", stricter).json()
    assert preview["promise"]["says"] == "Nobody's age can be guessed with more than 1 chance in 15."
    assert set(preview["promise"]["readings"]) == {"worst-case", "average"}
    assert gate.call("GET", f"/v1/drafts/{draft}").json() == before


def test_pages_ask_for_persons_where_persons_are_protected(gate: Gate) -> None:
    draft = filled(gate)
    assert gate.call("GET", f"/v1/drafts/{draft}/simulation").json()["counted"] == "rows"
    gate.fill(draft, people={**PEOPLE, "unit": ["person"], "key": ["person"], "at_most": ["3"], "rows": [""]})
    assert gate.call("GET", f"/v1/drafts/{draft}/simulation").json()["counted"] == "persons"
    page = gate.page(f"/console/drafts/{draft}/simulation?rows=900")
    assert "Persons, roughly" in page
    assert "all 900 persons with as many rows as are counted" in page
    assert "Rows, roughly" not in page
    assert gate.post(f"/v1/drafts/{draft}/publication").status_code == 201
    page = gate.page("/console/data/people/policy")
    assert "Public number of persons" in page
    assert "<td>whole number</td>" in page


def test_records_are_for_persons_with_several_rows(gate: Gate) -> None:
    draft = filled(gate)
    person = {**PEOPLE, "unit": ["person"], "key": ["person"], "at_most": ["3"], "rows": ["100"]}
    assert "records" not in gate.fill(draft, people={**PEOPLE, "records": ["250"]})["toml"]
    content = gate.fill(draft, people={**person, "records": ["many"]})
    assert set(problems_of(content, "people")) == {"records"}
    content = gate.fill(draft, people={**person, "records": ["1,250"]})
    assert "records = 1250" in content["toml"]
    assert not problems_of(content, "people")
    assert "About how many rows are there?" in gate.page(f"/console/drafts/{draft}/people")


def test_promise_is_never_weaker_than_its_text(gate: Gate) -> None:
    from tidegate.service.drafts.policy import most_one_in, rho_of

    for number in range(2, 1000):
        assert rho_of(str(number)) * number <= 1
    for worlds in range(3, 200):
        assert float(rho_of(str(int(most_one_in(1 / worlds))))) > 1 / worlds


def test_check_reports_exact_numbers_to_the_owner_and_stores_none(gate: Gate) -> None:
    draft = gate.start()
    messy = CSV + "x,999,Abby,\ny,,Berg,oops\n"
    gate.upload(draft, messy)
    gate.fill(draft, people=PEOPLE, columns=COLUMNS)
    report = gate.post(f"/v1/drafts/{draft}/check").json()
    by_name = {column["column"]: column for column in report["columns"]}
    assert report["rows"] == 302
    assert by_name["age"]["outside"]["above"] == 1
    assert by_name["age"]["missing"] == 1
    assert by_name["paid"]["outside"]["unreadable"] == 1
    assert [(label["value"], label["nearest"]) for label in by_name["town"]["unlisted"]] == [("Abby", "Aby")]
    stored = "".join(path.read_text() for path in (gate.folder / "drafts").glob("*.json"))
    assert "Abby" not in stored
    assert SECRET not in stored


def test_check_separates_values_outside_the_bounds_from_those_that_cannot_be_read(gate: Gate) -> None:
    draft = gate.start()
    gate.upload(draft, "age\n30\n200\nx\ny\n")
    fields = {"kind-0": ["integer"], "from-0": ["0"], "to-0": ["120"]}
    gate.fill(draft, people={"name": ["people"], "unit": ["row"]}, columns=fields)
    assert gate.post(f"/v1/drafts/{draft}/check").json()["problems"] == [
        'Column "age": 25.0% of the rows are outside the values that the policy declares.',
        'Column "age": 50.0% of the rows have a value that cannot be read. It counts as missing. '
        "Numbers are read as 1234.5, dates as 2024-12-31, times as 18:30.",
    ]
    page = gate.page(
        f"/console/drafts/{draft}/columns", {**{name: text[0] for name, text in fields.items()}, "action": "check"}
    )
    assert "1 above, 2 unreadable" in page


@pytest.mark.parametrize("role", [ANALYST, "part"])
def test_drafts_are_for_owners_of_all_data_sets(gate: Gate, role: str) -> None:
    draft = filled(gate)
    for method, path in (
        ("GET", "/v1/drafts"),
        ("POST", "/v1/drafts"),
        ("GET", f"/v1/drafts/{draft}"),
        ("POST", f"/v1/drafts/{draft}/check"),
        ("POST", f"/v1/drafts/{draft}/publication"),
        ("PUT", f"/v1/drafts/{draft}/file?name=a.csv"),
        ("DELETE", f"/v1/drafts/{draft}"),
        ("GET", f"/console/drafts/{draft}/columns"),
    ):
        assert gate.call(method, path, role).status_code == 403, path


HOSTILE: dict[str, tuple[str, bytes]] = {
    "empty": ("a.csv", b""),
    "only line ends": ("a.csv", b"\n\n\n"),
    "binary": ("a.csv", bytes(range(256)) * 100),
    "zip": ("a.csv", b"PK\x03\x04" + b"\0" * 5000),
    "gzip": ("a.csv.gz", b"\x1f\x8b" + b"\0" * 100),
    "UTF-16": ("a.csv", "age,town\n3,Aby\n".encode("utf-16")),
    "Latin-1 header": ("a.csv", "größe,town\n3,Aby\n".encode("latin-1")),
    "duplicate headers": ("a.csv", b"age,age\n1,2\n"),
    "empty header": ("a.csv", b"age,,town\n1,2,3\n"),
    "a million columns": ("a.csv", b",".join(b"c%d" % n for n in range(100_000)) + b"\n"),
    "one long line": ("a.csv", b"x" * 1024 * 1024),
    "too large": ("a.csv", b"age\n" + b"1\n" * 600_000),
    "not Parquet": ("a.parquet", b"age\n1\n"),
    "Parquet without a footer": ("a.parquet", b"PAR1" + b"\xff" * 100 + b"\xff\xff\xff\x7fPAR1"),
    "Parquet with a bad footer": ("a.parquet", b"PAR1" + b"\x15" * 100 + (90).to_bytes(4, "little") + b"PAR1"),
    "another type": ("a.xlsx", b"PK"),
    "a script": ("a.html", b"<script>"),
    "control characters": ("a.csv", b"age,to\x07wn\n1,2\n"),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_upload_is_refused_and_leaves_nothing(gate: Gate, name: str, caplog: Any) -> None:
    draft = gate.start()
    file, content = HOSTILE[name]
    result = gate.upload(draft, content, file)
    assert result.status_code in (413, 422), result.text
    assert set(result.json()) == PROBLEM
    assert result.json()["do"]
    assert list((gate.folder / "data").iterdir()) == []
    assert gate.call("GET", f"/v1/drafts/{draft}").json()["source"] is None


@pytest.mark.parametrize(
    "name",
    ["../../people.csv", "..\\..\\people.csv", "/etc/people.csv", "data/../../people.csv", ".people.csv", "people.CSV"],
)
def test_upload_stays_in_the_data_folder(gate: Gate, name: str) -> None:
    result = gate.upload(gate.start(), CSV, name)
    assert result.status_code == 200, result.text
    assert [path.name for path in (gate.folder / "data").iterdir()] == ["people.csv"]
    assert oct((gate.folder / "data" / "people.csv").stat().st_mode)[-3:] == "600"
    assert {path.name for path in gate.folder.parent.iterdir()} == {"gate"}


def test_upload_replaces_no_file_and_is_deleted_with_its_draft(gate: Gate) -> None:
    first, second = gate.start(), gate.start()
    gate.upload(first, CSV)
    assert gate.upload(second, CSV.replace("age", "years")).json()["source"]["path"] == "data/people-2.csv"
    assert gate.call("DELETE", f"/v1/drafts/{second}").status_code == 200
    assert [path.name for path in (gate.folder / "data").iterdir()] == ["people.csv"]
    assert gate.call("GET", f"/v1/drafts/{second}").status_code == 404


def test_file_in_the_data_folder_is_chosen_by_name_only(gate: Gate) -> None:
    draft = gate.start()
    (gate.folder / "data" / "shop.csv").write_text(CSV)
    for path in ("../people.toml", "/etc/passwd", "nowhere.csv", ""):
        refused = gate.fill(draft, source={"source": ["path"], "path": [path]})
        assert refused["code"] == "not-there"
    content = gate.fill(draft, source={"source": ["path"], "path": ["shop.csv"]})
    assert (content["source"]["path"], content["name"]) == ("data/shop.csv", "shop")
    gate.call("DELETE", f"/v1/drafts/{draft}")
    assert (gate.folder / "data" / "shop.csv").exists(), "only uploads are deleted"


def test_other_encodings_are_converted(gate: Gate) -> None:
    draft = gate.start()
    content = gate.upload(draft, "größe;stadt\n1;Köln\n".encode("cp1252"), encoding="cp1252").json()
    assert list(content["types"]) == ["größe", "stadt"]
    assert (gate.folder / "data" / "people.csv").read_text("utf-8") == "größe;stadt\n1;Köln\n"
    assert list(gate.upload(draft, "a,b\n1,2\n".encode("utf-16"), encoding="utf-16").json()["types"]) == ["a", "b"]
    assert gate.upload(draft, b"a\n", encoding="rot13").status_code == 422


def test_file_that_is_not_utf_8_is_refused_instead_of_losing_letters(gate: Gate) -> None:
    draft = gate.start()
    broken = b"age,town\n1,K\xf6ln\n"
    assert "Windows-1252" in gate.upload(draft, broken).json()["do"]
    assert gate.upload(draft, broken, encoding="utf-8-any").status_code == 200
    assert gate.upload(draft, b"age,town\n1,K\xc3", encoding="utf-8").status_code == 422, "cut off inside a letter"


def test_notation_of_numbers_and_dates_is_rewritten_on_request(gate: Gate) -> None:
    draft = gate.start()
    text = 'paid;born;town\n1.234,50 €;31.12.1980; Köln\n"-3,5";1.2.1990;"Bonn; Süd"\n7;;v1.2\n'
    gate.upload(draft, text)
    content = gate.upload(draft, text, comma=True, trim=True).json()
    assert content["types"] == {"paid": "decimal", "born": "date", "town": "text"}
    stored = (gate.folder / "data" / "people.csv").read_text("utf-8")
    assert stored == 'paid;born;town\n1234.50;1980-12-31;Köln\n-3.5;1990-02-01;"Bonn; Süd"\n7;;v1.2\n'
    assert [path.name for path in (gate.folder / "data").iterdir()] == ["people.csv"], "the first upload was replaced"
    assert oct((gate.folder / "data" / "people.csv").stat().st_mode)[-3:] == "600"


def test_repeated_names_and_capital_letters_are_rewritten_on_request(gate: Gate) -> None:
    draft = gate.start()
    text = "\ufeffNr;Betrag;Ort;Betrag ;\r\n1;2,5;BONN ;3;x\r\n2;1,5;Köln;4;\r\n"
    refused = gate.upload(draft, text.replace("Betrag ", "Betrag")).json()
    assert "a name is missing or repeated" in refused["detail"]
    assert "Betrag" not in refused["detail"] + refused["do"], "without a header line, the first line is a private row"
    content = gate.upload(draft, text, comma=True, trim=True, lower=True, rename=True).json()
    assert list(content["types"]) == ["Nr", "Betrag", "Ort", "Betrag_2", "column_5"]
    stored = (gate.folder / "data" / "people.csv").read_text("utf-8")
    assert stored.splitlines()[1:] == ["1;2.5;bonn;3;x", "2;1.5;köln;4;"]


def test_words_for_missing_values_and_units_are_rewritten_on_request(gate: Gate) -> None:
    draft = gate.start()
    rows = ("72 kg;-;na;-3,5;3 m", "n/a;NA;Nancy;?;B", "-5kg;12;a-b;NULL;4 cm", "150 lb;7;.;–;5,5 m")
    content = gate.upload(draft, "\n".join(["weight;days;town;cost;ward", *rows])).json()
    assert set(content["types"].values()) == {"text"}
    content = gate.upload(
        draft, "\n".join(["weight;days;town;cost;ward", *rows]), comma=True, missing=True, units=True
    ).json()
    assert content["types"] == {"weight": "text", "days": "whole", "town": "text", "cost": "decimal", "ward": "text"}
    stored = (gate.folder / "data" / "people.csv").read_text("utf-8").splitlines()[1:]
    assert stored == ["72;;;-3.5;3", ";;Nancy;;B", "-5;12;a-b;;4 cm", "150 lb;7;;;5.5"], "another unit is not removed"


def test_lists_of_a_file_in_lower_case_are_read_in_lower_case(gate: Gate) -> None:
    draft = gate.start()
    gate.upload(draft, CSV, lower=True)
    content = gate.fill(draft, people=PEOPLE, columns={**COLUMNS, "values-2": ["Aby\nBERG\naby"]})
    assert 'values = ["aby", "berg"]' in content["toml"]
    gate.upload(draft, CSV)
    content = gate.fill(draft, columns=COLUMNS)
    assert 'values = ["Aby", "Berg"]' in content["toml"]


def test_numbered_name_never_equals_another_name() -> None:
    assert unique_names(["a", "a_2", "a", "", "a"]) == ["a", "a_2", "a_3", "column_4", "a_4"]


def test_bound_that_can_be_read_in_two_ways_is_refused(gate: Gate) -> None:
    draft = gate.start()
    gate.upload(draft, CSV)
    content = gate.fill(draft, people=PEOPLE, columns={**COLUMNS, "to-3": ["2.000"]})
    assert "without separators of thousands" in problems_of(content, "columns")["to-3"]
    content = gate.fill(draft, columns={**COLUMNS, "to-3": ["0.125"], "step-3": ["0.125"]})
    assert problems_of(content, "columns") == {}


def test_decimal_comma_is_accepted_in_a_bound_that_can_be_read_in_one_way(gate: Gate) -> None:
    draft = gate.start()
    gate.upload(draft, CSV)
    content = gate.fill(
        draft, people=PEOPLE, columns={**COLUMNS, "from-3": ["-0,5"], "to-3": ["12,5"], "step-3": ["0,5"]}
    )
    assert "from = -0.5, to = 12.5, step = 0.5" in content["toml"]
    content = gate.fill(draft, columns={**COLUMNS, "to-3": ["2,000"]})
    assert "without separators of thousands" in problems_of(content, "columns")["to-3"]


def test_bounds_of_timestamps_are_written_as_in_the_file_and_include_the_last_day(gate: Gate) -> None:
    draft = gate.start()
    gate.upload(draft, "seen\n2024-12-31 23:00\n")
    fields = {"kind-0": ["timestamp"], "from-0": ["1.1.2024"], "to-0": ["31.12.2024"], "grid-0": ["hour"]}
    content = gate.fill(draft, people={"name": ["people"], "unit": ["row"]}, columns=fields)
    assert "from = 2024-01-01 00:00:00, to = 2024-12-31 23:59:00" in content["toml"]
    content = gate.fill(draft, columns={**fields, "from-0": ["01.01.2024 06:30"], "to-0": ["2024-12-31T12:00"]})
    assert "from = 2024-01-01 06:30:00, to = 2024-12-31 12:00:00" in content["toml"]


def test_problems_of_columns_name_the_field_and_typed_bounds_are_not_called_proposed(gate: Gate) -> None:
    draft = gate.start()
    gate.upload(draft, "age,weight\n30,70.5\n")
    address = f"/console/drafts/{draft}/columns"
    page = gate.page(address)
    assert page.count("Proposed from the column") == 2
    assert 'inputmode="decimal"' in page
    assert 'placeholder="Europe/Berlin"' in page
    columns = {
        "kind-0": "integer",
        "from-0": "18",
        "to-0": "",
        "kind-1": "number",
        "from-1": "",
        "to-1": "",
        "step-1": "",
    }
    page = gate.page(address, columns)
    assert "age, To: Fill in a public bound." in page
    assert "weight, In steps of: Fill in the step" in page
    assert "Proposed from the column" not in page


def test_date_with_points_is_a_bound(gate: Gate) -> None:
    draft = gate.start()
    gate.upload(draft, "born\n1980-12-31\n")
    fields = {"kind-0": ["date"], "from-0": ["1.1.1950"], "to-0": ["31.12.1999"], "grid-0": ["day"]}
    content = gate.fill(draft, people={"name": ["people"], "unit": ["row"]}, columns=fields)
    assert "from = 1950-01-01, to = 1999-12-31" in content["toml"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1.234,50", "1234.50"),
        ("12,5 %", "12.5"),
        ("1.234", "1234"),
        ("12", "12"),
        ("1.2.3", "1.2.3"),
        ("12.5", "12.5"),
        ("31.12.2024 23:10", "2024-12-31 23:10"),
        ("+49 221", "+49 221"),
        ("2024-12-31", "2024-12-31"),
    ],
)
def test_only_numbers_and_dates_are_rewritten(text: str, expected: str) -> None:
    from tidegate.service.drafts.notation import point_notation

    assert point_notation(text) == expected


def test_new_source_keeps_the_fields_of_columns_that_stay(gate: Gate) -> None:
    draft = filled(gate)
    gate.upload(draft, "new,age,person,town\n1,30,a,Aby\n2,40,b,Berg\n")
    content = gate.call("GET", f"/v1/drafts/{draft}").json()
    assert 'age = { kind = "integer", from = 0, to = 120' in content["toml"]
    assert "Berg" in content["toml"]
    assert set(problems_of(content, "columns")) == {"from-0", "to-0"}


def test_nothing_of_an_upload_is_in_logs_or_errors(gate: Gate, caplog: Any) -> None:
    caplog.set_level("INFO")
    draft = gate.start()
    for content in (CSV + f'"{SECRET}', f"{SECRET},{SECRET}\n1,2\n", f"{SECRET}\0"):
        assert SECRET not in json.dumps(gate.upload(draft, content).json().get("error", {}))
    gate.fill(draft, people=PEOPLE, columns=COLUMNS)
    gate.post(f"/v1/drafts/{draft}/check")
    assert SECRET not in caplog.text
    assert all(SECRET not in str(getattr(record, "facts", "")) for record in caplog.records)


def test_second_account_of_a_source_needs_a_reason(gate: Gate) -> None:
    draft = filled(gate)
    gate.post(f"/v1/drafts/{draft}/publication")
    gate.post("/v1/data/people/answers", {"sql": "SELECT AVG(age) FROM people", "share": 0.05})
    second = gate.start()
    gate.fill(second, source={"source": ["path"], "path": ["people.csv"]})
    gate.fill(second, people={**PEOPLE, "name": ["again"]}, columns=COLUMNS, promise=PROMISE)
    refused = gate.post(f"/v1/drafts/{second}/publication").json()
    assert 'has the account "people"' in refused["detail"]
    assert not (gate.folder / "again.toml").exists()
    gate.fill(second, publication={"reason": ["The first one was for a test."]})
    assert gate.post(f"/v1/drafts/{second}/publication").status_code == 201
    assert gate.post("/v1/data/again/previews", {"sql": "SELECT AVG(age) FROM again", "share": 0.05}).status_code == 200


def test_name_of_a_served_data_set_is_refused(gate: Gate) -> None:
    gate.post(f"/v1/drafts/{filled(gate)}/publication")
    other = gate.start()
    gate.upload(other, CSV.replace("Aby", "Ceder"))
    gate.fill(other, people=PEOPLE, columns={**COLUMNS, "values-2": ["Ceder\nBerg"]}, promise=PROMISE)
    assert "already has a data set" in gate.post(f"/v1/drafts/{other}/publication").json()["detail"]


def test_policy_page_shows_the_section_of_a_release_desk(gate: Gate) -> None:
    assert gate.post(f"/v1/drafts/{filled(gate)}/publication").status_code == 201
    page = gate.page("/console/data/people/policy")
    section = page[page.index("[promise.concealment.NAME]") : page.index("</code>", page.index("[promise.concealment"))]
    for column in ('"town"', '"age"', '"town", "age"'):
        section = section.replace('"COLUMN"', column, 1)
    toml = gate.call("GET", "/v1/data/people/policy").json()["toml"] + "\n" + section.replace("NAME", "towns")
    preview = gate.post("/v1/data/people/policy/previews", {"toml": toml}).json()
    assert preview["changes"], preview
    assert preview["refused"] is None, preview


def test_overview_explains_meters_only_where_there_are_some(gate: Gate) -> None:
    page = gate.page("/console")
    assert "No data sets yet" in page
    assert "The meter shows" not in page
    assert gate.post(f"/v1/drafts/{filled(gate)}/publication").status_code == 201
    assert "The meter shows" in gate.page("/console")


def test_form_without_the_page_s_token_is_refused(gate: Gate) -> None:
    signed_in = gate.client.post("/v1/sign-in", json={"token": gate.tokens[OWNER]}).json()
    form = {"csrf": signed_in["csrf"]}
    for fields in ({}, {"csrf": "wrong"}):
        assert gate.client.post("/console/drafts", data=fields).status_code == 403
    assert gate.client.post("/v1/drafts", json=form).status_code == 403, "the API needs the header"
    started = gate.client.post("/console/drafts", data=form, follow_redirects=False)
    assert started.status_code == 303
    page = gate.client.get(started.headers["location"], headers={"Accept": "text/html"})
    assert "Where is the table?" in page.text
    upload = started.headers["location"].removeprefix("/console").replace("/source", "/file?name=a.csv")
    assert gate.client.put(upload, content=CSV).status_code == 403


@pytest.mark.long  # starts a PostgreSQL server
def test_table_of_an_allowed_database_is_served_and_its_password_is_not_shown(gate: Gate, postgres_url: str) -> None:
    from urllib.parse import urlsplit

    import sqlalchemy

    from tidegate.service.drafts.sources import shown_address

    engine = sqlalchemy.create_engine(postgres_url.replace("postgresql://", "postgresql+psycopg://", 1))
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE people (person text, age int, town text, paid numeric)")
        connection.exec_driver_sql(
            "INSERT INTO people SELECT 'p' || n, 20 + mod(n, 50), 'Aby', 1 FROM generate_series(1, 300) n"
        )
    engine.dispose()
    user = urlsplit(postgres_url).username or "postgres"
    gate.app.state.settings = quiet_settings(folder=str(gate.folder), databases=(postgres_url,))
    draft, shown = gate.start(), shown_address(postgres_url)
    for fields in (
        {"database": ["postgresql://elsewhere/db"], "table": ["people"]},
        {"database": [shown], "table": ["a;b"]},
    ):
        assert "code" in gate.fill(draft, source={"source": ["database"], **fields})
    content = gate.fill(draft, source={"source": ["database"], "database": [shown], "table": ["people"]})
    assert content["types"] == {"person": "text", "age": "whole", "town": "text", "paid": "exact"}
    content = gate.fill(draft, people=PEOPLE, columns=COLUMNS, promise=PROMISE)
    assert f"{user}@" not in content["toml"]
    assert gate.post(f"/v1/drafts/{draft}/check").json()["rows"] == 300
    published = gate.post(f"/v1/drafts/{draft}/publication")
    assert published.status_code == 201, published.text
    question = {"sql": "SELECT AVG(age) FROM people", "share": 0.05}
    assert gate.post("/v1/data/people/answers", question).status_code == 200


def test_synthetic_preview_reads_no_row_and_spends_nothing(gate: Gate) -> None:
    draft = filled(gate)
    before = sorted(path.name for path in gate.folder.rglob("*"))
    next(gate.folder.rglob("*.csv")).unlink()  # the source cannot be read any more
    shown = gate.call("GET", f"/v1/drafts/{draft}/synthesis?rows=500")
    assert shown.status_code == 200, shown.text
    content = shown.json()
    assert len(content["sample"]) == 8
    assert all(len(row) == len(content["columns"]) for row in content["sample"])
    assert 0 <= content["single"] <= content["pairs"] <= 1
    assert 0 < content["single_by_chance"] < content["pairs_by_chance"] < content["pairs"]
    assert {path.name for path in gate.folder.rglob("*")} <= set(before)
    assert gate.call("GET", f"/v1/drafts/{draft}/synthesis", ANALYST).status_code == 403


def test_synthetic_preview_is_worse_with_less_budget(gate: Gate) -> None:
    draft = filled(gate)
    gate.fill(draft, promise={**PROMISE, "one_in": ["2"]})
    rich = gate.call("GET", f"/v1/drafts/{draft}/synthesis?rows=500").json()
    gate.fill(draft, promise={**PROMISE, "one_in": ["30"]})
    poor = gate.call("GET", f"/v1/drafts/{draft}/synthesis?rows=500").json()
    assert float(poor["cost"]) < float(rich["cost"])
    assert poor["pairs"] > rich["pairs"]
