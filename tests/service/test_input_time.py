"""No input costs more than linear time: the CPU time of a fuzzed request is bounded by its size, whatever it contains."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Iterator

import pytest
from pyarrow import csv
from starlette.testclient import TestClient
from support.service import SECRET, RunningService, quiet_settings, run_service, table

from tidegate.ledger.tokens import Tokens
from tidegate.policy.toml import write_policy
from tidegate.service import middleware
from tidegate.service.access.tokens import make_token
from tidegate.service.app import create_app
from tidegate.service.datasets import ServedDatasets

BASE, PER_BYTE = 0.25, 25e-6  # seconds of CPU for a request, and for each of its bytes
FIXED_LOOP = 0.016  # seconds of CPU of a loop of 300,000 squares, where these bounds were measured
LARGEST = 60_000  # bytes: a little less than a body can have
ANSWERS = "/v1/data/people/answers"
JSON = {"content-type": "application/json"}
FuzzedRequest = tuple[str, str, dict[str, str], bytes]  # method, path, headers, body
KINDS: dict[str, Callable[[random.Random, int], FuzzedRequest]] = {}


def kind(make: Callable[[random.Random, int], FuzzedRequest]) -> Callable[[random.Random, int], FuzzedRequest]:
    KINDS[make.__name__] = make
    return make


def repeat(chance: random.Random, pieces: list[str], size: int) -> str:
    """Return a few pieces that are drawn once and repeated up to a size: what regular expressions and parsers backtrack on."""
    part = "".join(chance.choices(pieces, k=chance.randint(1, 4)))
    return (part * (size // max(1, len(part)) + 1))[:size]


def post(path: str, body: str | bytes, headers: dict[str, str] = JSON) -> FuzzedRequest:
    return "POST", path, headers, body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body


@kind
def nesting(chance: random.Random, size: int) -> FuzzedRequest:
    pieces = ["[", "]", "{", "}", '"', "\\", '\\"', '"a"', '{"a":', "a", " ", "\n"]
    return post(chance.choice([ANSWERS, "/v1/sign-in", "/nowhere"]), "[]" * 33 + repeat(chance, pieces, size))


@kind
def long_numbers(chance: random.Random, size: int) -> FuzzedRequest:
    digits = repeat(chance, ["9", "0", "1", ".", "e", "-", "/", "_"], size)
    field = chance.choice(["epsilon", "rho", "window", "confidence"])
    value = digits if chance.random() < 0.5 else json.dumps(digits)
    return post(ANSWERS, f'{{"sql": "SELECT COUNT(*) FROM people", "{field}": {value}}}')


@kind
def keys(chance: random.Random, size: int) -> FuzzedRequest:
    name = repeat(chance, ["a", "sql", "é", "\\u0041", " "], chance.choice([1, 5, size]))
    pairs = ", ".join(
        f'"{name}{n if chance.random() < 0.5 else ""}": {n}' for n in range(max(1, size // (len(name) + 9)))
    )
    return post(ANSWERS, f"{{{pairs}}}")


@kind
def surrogates(chance: random.Random, size: int) -> FuzzedRequest:
    text = repeat(chance, ["\\ud800", "\\udc00", "\\u0000", "\\ud83d\\ude00", "\\", '\\"'], size)
    return post(ANSWERS, f'{{"questions": [{{"ask": "mean", "column": "{text}"}}], "epsilon": 1}}')


@kind
def conditions(chance: random.Random, size: int) -> FuzzedRequest:
    leaf = chance.choice(['{"compare": ["age", ">=", 30]}', '{"in": ["town", ["Aby"]]}', '{"all": []}', "{}", "1"])
    leaves = ", ".join([leaf] * max(1, size // (len(leaf) + 2)))
    where = f'{{"{chance.choice(["all", "any", "not"])}": [{leaves}]}}'
    return post(ANSWERS, f'{{"questions": [{{"ask": "count", "where": {where}}}], "epsilon": 1}}')


@kind
def sql(chance: random.Random, size: int) -> FuzzedRequest:
    pieces = [
        "(",
        ")",
        "age",
        ">",
        "1",
        " AND ",
        " OR ",
        " NOT ",
        "'",
        '"',
        "--",
        "/*",
        "*/",
        ",",
        ";",
        "CASE WHEN ",
        "-",
        "||",
    ]
    pieces += [
        "SELECT ",
        " FROM people ",
        "COUNT(*)",
        " UNION ",
        " JOIN people ",
        "$$",
        "::",
        "[",
        "@",
        "\\",
        " IN (",
        " BETWEEN ",
    ]
    text = f"SELECT COUNT(*) FROM people WHERE {repeat(chance, pieces, min(size, 3_900))}"
    return post(chance.choice([ANSWERS, "/v1/data/people/previews"]), json.dumps({"sql": text, "epsilon": 1}))


@kind
def policy_text(chance: random.Random, size: int) -> FuzzedRequest:
    pieces = [
        "[",
        "]",
        "=",
        '"',
        "'",
        '"""',
        "\n",
        "a",
        ".",
        "{",
        "}",
        ",",
        "1",
        "#",
        "[[a]]\n",
        "[a.a]\n",
        "a.a = 1\n",
        "\\",
        "e",
        "_",
    ]
    text = '[dataset]\nname = "people"\n' + repeat(chance, pieces, size)
    return post("/v1/data/people/policy/previews", json.dumps({"toml": text}))


@kind
def forms(chance: random.Random, size: int) -> FuzzedRequest:
    body = repeat(chance, ["a=1&", "&", "=", "%", "%41", "+", ";", "token=", "%ff"], size)
    return post("/console/sign-in", body, {"content-type": "application/x-www-form-urlencoded"})


@kind
def multipart(chance: random.Random, size: int) -> FuzzedRequest:
    pieces = ["--x\r\n", "--x--", "\r\n", 'Content-Disposition: form-data; name="a"\r\n', "-", "a", ";", '"', "\n"]
    return post("/console/sign-in", repeat(chance, pieces, size), {"content-type": "multipart/form-data; boundary=x"})


@kind
def reports(chance: random.Random, size: int) -> FuzzedRequest:
    report = chance.choice(["{}", "1", "null", '{"id": "0"}', '{"answers": {"age": 1e9}}', "[]", '"a"'])
    body = f'{{"reports": [{", ".join([report] * max(1, size // (len(report) + 2)))}]}}'
    return post("/v1/data/people/collections/shoppers/reports", body)


@kind
def headers(chance: random.Random, size: int) -> FuzzedRequest:
    name = chance.choice(
        ["cookie", "accept", "x-a", "content-type", "host", "if-none-match", "idempotency-key", "authorization"]
    )
    value = repeat(chance, ["a", "=", ";", ",", '"', "q=0.1", " ", "tidegate=", "\\", "%"], min(size, 15_000))
    return (
        "GET",
        chance.choice(["/v1/me", "/console", "/openapi.json", "/static/ink.css"]),
        {name: value.strip() or "a"},
        b"",
    )


@kind
def query_strings(chance: random.Random, size: int) -> FuzzedRequest:
    query = repeat(chance, ["a=1&", "limit=", "&", "=", "%41", "+", "9", ";", "after=1&"], min(size, 15_000))
    return "GET", f"{chance.choice(['/v1/data/people/history', '/v1/ledger/entries', '/health'])}?{query}", {}, b""


@kind
def uploads(chance: random.Random, size: int) -> FuzzedRequest:
    body = repeat(chance, [",", '"', "\n", "a", '""', "1", ";", "\t", "\r\n", "é"], size)
    return "PUT", "/v1/drafts/DRAFT/file?name=a.csv", {"content-type": "text/csv"}, body.encode()


def cpu_seconds(service: RunningService, request: FuzzedRequest) -> float:
    method, path, more, body = request
    draft = service.post("/v1/drafts", {}).json()["id"] if "DRAFT" in path else ""  # each table has its own
    began = time.process_time()
    sent = {**service.as_role("owner"), **more} if more.get("authorization") is None else more
    response = service.client.request(
        method, path.replace("DRAFT", draft), content=body, headers=sent, follow_redirects=False
    )
    seconds = time.process_time() - began
    assert response.status_code < 500, (path, response.status_code)
    if draft:
        service.call("DELETE", f"/v1/drafts/{draft}", "owner")
    return seconds


@pytest.fixture(scope="module")
def file_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service over policy files, with a folder, so that policies and uploads are really parsed."""
    folder = tmp_path_factory.mktemp("input")
    with run_service(str(folder / "seed.ledger")) as seed:
        toml = write_policy(seed.datasets["people"].policy).replace(f"{SECRET}place.csv", "people.csv")
    (folder / "people.toml").write_text(toml)
    csv.write_csv(table(), folder / "people.csv")
    datasets = ServedDatasets.from_files(
        [str(folder / "people.toml")], ledger=str(folder / "l"), folder=str(folder / "gate")
    )
    app = create_app(quiet_settings(folder=str(folder / "gate")), datasets)
    tokens = {"owner": make_token(Tokens(datasets.ledger.store), role="owner", name="olga")[0]}
    with TestClient(app, base_url="http://127.0.0.1") as client:
        yield RunningService(client, app, datasets, tokens)


def test_policies_and_tables_are_really_parsed(file_service: RunningService) -> None:
    refused = file_service.post("/v1/data/people/policy/previews", {"toml": "[dataset\n"})
    assert "policy" in refused.json()["code"], refused.text
    draft = file_service.post("/v1/drafts", {}).json()["id"]
    uploaded = file_service.call(
        "PUT", f"/v1/drafts/{draft}/file", "owner", content=b"a,b\n1,2\n", params={"name": "a.csv"}
    )
    assert uploaded.status_code < 300, uploaded.text
    preview = file_service.post(
        "/v1/data/people/previews", {"sql": "SELECT COUNT(*) FROM people WHERE age > 20", "epsilon": 1}
    )
    assert preview.status_code == 200, preview.text


def slowness() -> float:
    """Return how many times as long a fixed loop takes as on the machine of the bounds, at least 1: other work counts too."""
    times = []
    for _ in range(3):
        began = time.process_time()
        sum(number * number for number in range(300_000))
        times.append(time.process_time() - began)
    return max(1.0, min(times) / FIXED_LOOP)


def slow_requests(service: RunningService, seed: int, count: int) -> list[tuple[str, int, float]]:
    """Return the kind, the size and the CPU seconds of each request that takes more than linear time."""
    slow = []
    for number in range(count):
        chance = random.Random(f"{seed} {number}")
        name = list(KINDS)[number % len(KINDS)]
        request = KINDS[name](chance, chance.choice([100, 5_000, LARGEST]))
        size = len(request[1]) + sum(map(len, request[2].values())) + len(request[3])
        bound = BASE + PER_BYTE * size
        if cpu_seconds(service, request) > bound:  # again: the first request of a kind loads what it needs
            seconds = min(cpu_seconds(service, request) for _ in range(2))
            slow += [(name, size, seconds)] if seconds > bound * slowness() else []
    return slow


@pytest.mark.parametrize("count", [120, pytest.param(10_000, marks=pytest.mark.long)])
def test_no_request_takes_more_than_linear_time(file_service: RunningService, count: int) -> None:
    assert slow_requests(file_service, 22, count) == []


@pytest.mark.long  # it waits for a slow request: seconds of CPU
def test_quadratic_parser_is_detected(shared_service: RunningService, monkeypatch: pytest.MonkeyPatch) -> None:
    backtracking = re.compile(rb'"(?:[^"\\]|\\.)*"|([\[{])|([\]}])', re.DOTALL)  # reads the rest again for each quote
    monkeypatch.setattr(middleware, "BRACKETS", backtracking)
    attack = post("/v1/sign-in", b"[]" * 33 + b'\\"' * 25_000)  # seconds, on a fast machine too
    assert cpu_seconds(shared_service, attack) > BASE + PER_BYTE * len(attack[3])
