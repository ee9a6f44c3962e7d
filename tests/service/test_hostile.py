"""Hostile input is refused with an error in the usual shape, and no log line or error contains a private value."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import random
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.service import SECRET, RunningService, quiet_settings, run_service

from tidegate.cli.output import listen, stop_listening
from tidegate.errors import SecondAccount, SourceUnreadable
from tidegate.service import logs
from tidegate.service.datasets import ServedDataset
from tidegate.service.middleware import CONTENT, is_deeper

ASKED = {"sql": "SELECT COUNT(*) FROM people", "epsilon": 0.1}
TYPED = "TYPED-9c44"  # sent by mistake: it must not be returned or stored


def in_shape(response: Any, status: int, code: str) -> None:
    assert (response.status_code, response.json()["code"]) == (status, code), response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert TYPED not in response.text
    assert SECRET not in response.text


def raw(
    service: RunningService, body: bytes, path: str = "/v1/data/people/answers", kind: str = "application/json"
) -> Any:
    return service.post(path, content=body, headers={"Content-Type": kind})


def test_too_large_body_is_refused_before_it_is_read(shared_service: RunningService) -> None:
    in_shape(raw(shared_service, b"[" + b" " * 70_000 + b"]"), 413, "too-large")
    announced = {"Content-Length": str(10**12)}
    in_shape(shared_service.post("/v1/data/people/answers", content=b"{}", headers=announced), 413, "too-large")


def test_too_large_body_without_a_length_is_refused(shared_service: RunningService) -> None:
    def parts() -> Any:
        for _ in range(100):
            yield b" " * 10_000

    in_shape(shared_service.post("/v1/data/people/answers", content=parts()), 413, "too-large")


@pytest.mark.parametrize("opens", ["[", '{"a":', '[{"a":'])
def test_deep_json_is_refused(shared_service: RunningService, opens: str) -> None:
    for item in (33, 5_000):
        in_shape(raw(shared_service, (opens * item).encode()), 422, "unsupported")
    deep = (opens * 20_000).encode()
    in_shape(raw(shared_service, deep, "/v1/data/people/collections/shoppers/reports"), 422, "unsupported")


def test_brackets_in_text_are_not_depth() -> None:
    assert not is_deeper(json.dumps({"sql": "[" * 500 + '\\"{{{'}).encode(), 32)
    assert is_deeper(b'{"a":' * 40, 32)
    assert not is_deeper(b"[]" * 500, 32)


# Time


PIECES = [b"[", b"]", b"{", b"}", b'"', b"\\", b'\\"', b'"a"', b"[]", b"a", b" ", b'{"a":', b"\xff", b"\n"]
SIZE, TIMES = 16 * 1024, 4  # bytes, and how many times more in the larger body
GROWTH = 2.5 * TIMES  # linear work takes 4 times as long, quadratic work 16 times
ATTACK = b"[]" * 33 + b'\\"' * 8_000


def scan_seconds(body: bytes) -> float:
    """Return the smallest processor time of five scans, to reduce the influence of other processes."""
    times = []
    for _ in range(5):
        began = time.process_time()
        is_deeper(body, 32)
        times.append(time.process_time() - began)
    return min(times)


def hostile_patterns() -> list[tuple[bytes, bytes, bytes]]:
    """Return a start with many closed brackets (bodies with few brackets are not scanned), a repeated part, and an end."""
    chance = random.Random(15)
    named = [
        (b"[]" * 33, b'\\"', b""),
        (b"[]" * 33, b'"\\', b""),
        (b"[]" * 33, b"\\", b'"'),
        (b'["', b"\\\\", b"[]" * 33),
    ]
    drawn = [
        (b"[]" * 33, b"".join(chance.choices(PIECES, k=chance.randint(1, 4))), chance.choice(PIECES)) for _ in range(60)
    ]
    return [*named, *drawn]


def test_nesting_check_takes_linear_time() -> None:
    for start, part, end in hostile_patterns():
        small = start + part * (SIZE // len(part)) + end
        large = start + part * (TIMES * SIZE // len(part)) + end
        seconds = scan_seconds(large)
        if seconds < 0.002:  # too short to compare
            continue
        assert seconds < GROWTH * max(scan_seconds(small), 0.0005), (part, end)


def test_nesting_check_agrees_with_a_character_by_character_scan() -> None:
    chance = random.Random(21)
    for _ in range(3_000):
        body = b"".join(chance.choices(PIECES, k=chance.randint(0, 40)))
        most = chance.randint(0, 5)
        assert is_deeper(body, most) == (reference_depth(body) > most), body


def reference_depth(body: bytes) -> int:
    """Return the deepest nesting outside of strings, by a scan that reads one byte at a time."""
    depth = deepest = 0
    in_string = escaped = False
    for byte in body:
        if in_string:
            closes = byte == 0x22 and not escaped
            escaped = byte == 0x5C and not escaped
            in_string = not closes
        elif byte == 0x22:
            in_string, escaped = True, False
        elif byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"]}":
            depth -= 1
    return deepest


def test_anonymous_body_does_not_block_the_service(shared_service: RunningService) -> None:
    began = time.process_time()
    for path in ("/health", "/nowhere", "/v1/sign-in", "/v1/data/people/collections/shoppers/reports"):
        raw(shared_service, ATTACK, path)
    usual = time.process_time() - began
    began = time.process_time()
    for path in ("/health", "/nowhere", "/v1/sign-in", "/v1/data/people/collections/shoppers/reports"):
        raw(shared_service, b'"' + b"a" * len(ATTACK) + b'"', path)
    assert usual < 20 * max(time.process_time() - began, 0.02), "a body of brackets costs what a body of letters costs"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xfe",
        b"{",
        b"null",
        b"[]",
        b'"' + TYPED.encode() + b'"',
        b'{"sql": "' + TYPED.encode() + b'"}',
        b'{"sql": 5, "epsilon": 1}',
        b'{"sql": "SELECT COUNT(*) FROM people", "epsilon": NaN}',
        b'{"sql": "SELECT COUNT(*) FROM people", "epsilon": -1}',
        b'{"sql": "SELECT COUNT(*) FROM people", "epsilon": 1e999}',
        b'{"sql": "SELECT COUNT(*) FROM people", "epsilon": "1e999999999"}',
        b'{"sql": "SELECT COUNT(*) FROM people", "epsilon": "' + b"9" * 5_000 + b'"}',
        b'{"sql": "SELECT COUNT(*) FROM people", "epsilon": ' + b"9" * 5_000 + b"}",
        b'{"sql": "SELECT COUNT(*) FROM people", "epsilon": true}',
        b'{"sql": "SELECT COUNT(*) FROM people", "epsilon": 1, "' + TYPED.encode() + b'": 1}',
        b'{"questions": [{"ask": "count", "where": {"' + TYPED.encode() + b'": 1}}], "epsilon": 1}',
        b'{"questions": [], "epsilon": 1}',
        b'{"questions": [{"ask": "mean", "column": "\\ud800"}], "epsilon": 1}',
    ],
)
def test_malformed_input_is_refused_without_being_quoted(shared_service: RunningService, body: bytes) -> None:
    result = raw(shared_service, body)
    assert result.status_code == 422, result.text
    assert TYPED not in result.text
    assert result.json()["do"]


@pytest.mark.parametrize(
    "path",
    [
        "/v1/data/../../etc/passwd",
        "/v1/data/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/v1/data/people/../others",
        "//data/people",
        "/v1/data//people",
        "/v1/data/people/",
        "/v1/data/people%00",
        "/v1/data/people%0d%0aSet-Cookie:%20x=1",
        "/v1/data/%F0%9F%92%A9",
        "/v1/data/people/collections/..%2f..%2fsecret",
        "/v1/data/people/desks/hq%2f..%2fhq/released",
        "/v1/tokens/..%2f..%2f",
        "/static/../../etc/passwd",
    ],
)
def test_path_traversal_is_refused(shared_service: RunningService, path: str) -> None:
    response = shared_service.client.get(path, headers=shared_service.as_role("analyst"))
    assert response.status_code in (403, 404, 405, 422), response.text
    assert "root:" not in response.text
    assert "set-cookie" not in response.headers


def test_unsupported_methods_return_an_error_in_the_usual_shape(shared_service: RunningService) -> None:
    for method in ("PUT", "PATCH", "TRACE", "HEAD", "OPTIONS", "BREW"):
        response = shared_service.call(method, "/v1/data/people", "owner")
        assert response.status_code == 405
        assert response.headers["allow"] == "GET"


def test_header_floods_are_refused(shared_service: RunningService) -> None:
    headers = {f"X-{n}": "1" for n in range(80)}
    in_shape(shared_service.get("/health", headers=headers), 413, "too-large")
    in_shape(shared_service.get("/health", headers={"X-Long": "a" * 20_000}), 413, "too-large")
    in_shape(shared_service.get("/health?" + "a" * 20_000), 413, "too-large")


def test_every_response_has_the_security_headers(shared_service: RunningService) -> None:
    for item in (
        shared_service.get("/health"),
        shared_service.get("/nowhere"),
        raw(shared_service, b"{"),
        shared_service.get("/v1/me", "public"),
    ):
        assert item.headers["content-security-policy"] == CONTENT
        assert item.headers["x-content-type-options"] == "nosniff"
        assert item.headers["cache-control"] == "no-store"
        assert len(item.headers["x-request-id"]) == 16
        assert "server" not in item.headers
        assert "access-control-allow-origin" not in item.headers
    assert "unsafe" not in CONTENT
    assert "http" not in CONTENT


def test_stored_script_is_returned_as_json_only(fresh_service: RunningService) -> None:
    name = "<script>alert(1)</script>"
    assert fresh_service.post("/v1/tokens", {"role": "analyst", "name": name}).status_code == 201
    listed = fresh_service.get("/v1/tokens")
    assert listed.headers["content-type"] == "application/json"
    assert name in [token["name"] for token in listed.json()["tokens"]]


def test_replayed_reports_count_once(fresh_service: RunningService) -> None:
    path = "/v1/data/people/collections/shoppers"
    survey = fresh_service.datasets["people"].survey("shoppers")
    report = survey.client().randomize({"age": 30, "town": "Aby"})
    first = fresh_service.post(f"{path}/reports", {"reports": [report]}, "public").json()
    again = fresh_service.post(f"{path}/reports", {"reports": [report]}, "public").json()
    mixed = fresh_service.post(
        f"{path}/reports", {"reports": [report, report, {**report, "id": "f" * 32}]}, "public"
    ).json()
    assert (first["accepted"], again["again"]) == (1, True)
    assert (mixed["accepted"], [index for index, _ in mixed["reasons"]]) == (1, [0, 1])
    survey.close()
    assert fresh_service.get(f"{path}/state").json()["reports"] == 2


def exchange(service: RunningService, receive: Any, path: str = "/v1/sign-in") -> list[Any]:
    """Return the messages that the application sends in response to a POST request whose body `receive` returns."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/x-www-form-urlencoded")]
    scope = {"type": "http", "method": "POST", "path": path, "headers": headers, "query_string": b"", "client": None}
    with ThreadPoolExecutor(1) as own:  # a browser's driver may run a loop in this thread
        own.submit(asyncio.run, service.app(scope, receive, send)).result()
    return sent


def test_endless_body_is_refused(tmp_path: Path) -> None:
    async def receive() -> Any:
        await asyncio.sleep(5)

    with run_service(str(tmp_path / "all.ledger"), settings=quiet_settings(patience=0.05)) as service:
        assert exchange(service, receive)[0]["status"] == 413


def test_body_of_a_client_that_left_is_not_used(
    shared_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part of a form can be a valid form, but it is not what the client sent."""
    messages = [{"type": "http.request", "body": b"token=tg_1", "more_body": True}, {"type": "http.disconnect"}]

    async def receive() -> Any:
        return messages.pop(0)

    reached: list[Any] = []
    monkeypatch.setattr(shared_service.app.state.guard, "check", lambda *arguments: reached.append(arguments))
    assert exchange(shared_service, receive, "/console/sign-in")[0]["status"] == 422
    assert not reached


# Nothing private is reported anywhere


def hostile_run(service: RunningService) -> list[str]:
    """Make everything go wrong at once, with markers as private values; return every text of the responses."""
    base, marked = "/v1/data/people", f"{SECRET}0007"
    texts = []
    for body in (TYPED, [TYPED], {"sql": TYPED, "epsilon": 1}, {"sql": f"SELECT {TYPED} FROM people", TYPED: 1}):
        texts.append(service.post(f"{base}/answers", body).text)
    texts.append(service.post(f"{base}/desks/hq/requests", {"keys": [marked]}, "analyst").text)
    texts.append(service.post(f"{base}/desks/hq/status", {"key": f"{SECRET}0011"}, "respondent").text)
    texts.append(service.post(f"{base}/desks/hq/withdrawals", {"key": f"{SECRET}0011"}).text)
    texts.append(service.post(f"{base}/collections/shoppers/reports", {"reports": [{"id": TYPED}]}, "public").text)
    texts.append(service.get(f"{base}/{TYPED}").text)
    texts.append(service.get(f"/v1/data/{TYPED}", "analyst").text)
    texts.append(service.client.get("/v1/me", headers={"Authorization": f"Bearer {TYPED}"}).text)
    texts.append(service.client.get("/v1/me", headers={"Cookie": f"tidegate={TYPED}"}).text)
    return texts


def test_logs_and_errors_contain_no_private_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    stream = io.StringIO()
    handlers, level = list(logging.root.handlers), logging.root.level
    logs.to_stream(stream)
    try:
        with run_service(str(tmp_path / "all.ledger")) as service:
            texts = hostile_run(service)
            monkeypatch.setattr(ServedDataset, "desk", broken)
            for role in ("owner", "respondent"):
                response = service.post("/v1/data/people/desks/hq/status", {"key": f"{SECRET}0007"}, role)
                in_shape(response, 500, "defect")
                texts.append(response.text)
            monkeypatch.setattr(ServedDataset, "desk", unreadable)
            in_shape(
                service.post("/v1/data/people/desks/hq/status", {"key": f"{SECRET}0007"}, "respondent"),
                503,
                "source-unreadable",
            )
            metrics = service.get("/metrics").text
    finally:
        logging.root.handlers = handlers
        logging.root.setLevel(level)
    said = capfd.readouterr()
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert sum(line["event"] == "request" for line in lines) >= 15
    unnamed = [line for line in lines if 400 <= line.get("status", 0) < 500 and not line["refused"]]
    assert not unnamed, "every refusal is logged and counted with its code"
    defects = [line for line in lines if line["event"] == "defect"]
    assert [line["place"].partition(" at ")[0] for line in defects] == ["ValueError", "ValueError"]
    for text in (*texts, stream.getvalue(), said.out, said.err, metrics):
        assert SECRET not in text
        assert TYPED not in text
    assert all(token not in stream.getvalue() for token in service.tokens.values())


def broken(self: Any, promise: str) -> Any:
    raise ValueError(f"a row says {SECRET}0007")


def unreadable(self: Any, promise: str) -> Any:
    raise SourceUnreadable(f"there is no file /private/{SECRET}place.csv.")


def test_other_loggers_are_logged_without_their_messages() -> None:
    stream = io.StringIO()
    handlers, level = list(logging.root.handlers), logging.root.level
    logs.to_stream(stream)
    try:
        try:
            raise ValueError(TYPED)
        except ValueError:
            logging.getLogger("sqlalchemy").exception("statement %s", TYPED)
    finally:
        logging.root.handlers = handlers
        logging.root.setLevel(level)
    assert "ValueError" in stream.getvalue()
    assert TYPED not in stream.getvalue()
    assert TYPED in traceback.format_exception_only(ValueError(TYPED))[0], "the marker would be found"


def test_sentences_of_the_ledger_are_lines_of_the_log() -> None:
    stream = io.StringIO()
    handlers, level = list(logging.root.handlers), logging.root.level
    listen()  # as a command does before it serves
    logs.to_stream(stream)
    try:
        logging.getLogger("tidegate.ledger").debug("An entry is written.")
        logging.getLogger("tidegate.ledger").warning("The witness %s cannot be reached.", "/mnt/other/note")
        logs.log_event("flush-failed", place="here")
        logs.log_event("defect", place="here")
    finally:
        stop_listening()
        logging.root.handlers = handlers
        logging.root.setLevel(level)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(line["event"], line["level"]) for line in lines] == [
        ("notice", "warning"),
        ("flush-failed", "warning"),
        ("defect", "error"),
    ]
    assert lines[0]["text"] == "The witness /mnt/other/note cannot be reached."


def test_only_an_owner_sees_the_location_of_a_missing_source(
    shared_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ServedDataset, "desk", unreadable)
    body = {"key": f"{SECRET}0007"}
    assert "/private/" in shared_service.post("/v1/data/people/desks/hq/status", body, "owner").text
    assert "/private/" not in shared_service.post("/v1/data/people/desks/hq/status", body, "respondent").text


def test_only_an_owner_sees_the_ledger_of_another_account(
    shared_service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken(self: Any, promise: str) -> Any:
        raise SecondAccount('This source has the account "people".', 'Set ledger = "/private/people.ledger".')

    monkeypatch.setattr(ServedDataset, "desk", taken)
    path, body = "/v1/data/people/desks/hq/status", {"key": f"{SECRET}0007"}
    assert "/private/" in shared_service.post(path, body, "owner").text
    refused = shared_service.post(path, body, "respondent")
    in_shape(refused, 422, "second-account")
    assert "/private/" not in refused.text
    assert refused.json()["do"] == "Ask the data holder to decide about it."


def test_lone_surrogate_in_an_error_is_not_an_internal_error(shared_service: RunningService) -> None:
    response = shared_service.client.post(
        "/v1/data/people/desks/hq/status",
        content=b'{"key": "\\ud800"}',
        headers={**shared_service.as_role("owner"), "Content-Type": "application/json"},
    )
    assert response.status_code < 500


def test_telemetry_is_off(shared_service: RunningService) -> None:
    assert not any(shared_service.app._telemetry.values())
