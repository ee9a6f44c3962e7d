"""A memory in a file, shared: processes and threads that answer at once give one answer, and lose none."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import nullcontext
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest

from tidegate.collect.client import Client
from tidegate.collect.memory import FileMemory
from tidegate.errors import SourceUnreadable, Unsupported
from tidegate.policy import Category, Collection, Integer, Question

TOGETHER, ROUNDS = 4, 5
MANY = Category(tuple(f"town {number}" for number in range(40)))
ASKED = Collection(
    "asked",
    {
        "town": Question("town", MANY, "unary", epsilon=1),
        "age": Question("age", Integer(0, 999), "laplace-noise", epsilon=1),
    },
)
LAYERS = Collection("layers", {"town": Question("town", MANY, "unary", epsilon=2, each=1)}, repeats="two-layers")
TRUE = {"town": "town 7", "age": 333}


class Unlocked(FileMemory):
    """The planted fault: no process waits for another, and the content read at the start is never read again."""

    def held(self) -> Any:
        return nullcontext()

    def _save(self, content: dict[str, Any]) -> None:
        self._path.write_text(json.dumps(content))
        self._content = content


class Waiting:
    """A source of bytes that keeps others waiting: between the look into the memory and the answer there is time."""

    def take(self, count: int) -> bytes:
        threading.Event().wait(0.01)
        return os.urandom(count)


_start: Barrier


def _ready(start: Barrier) -> None:
    global _start
    _start = start


def answer(collection: Collection, true: dict[str, Any], kind: type[FileMemory], file: Path) -> dict[str, Any]:
    """One process: it opens the memory, waits for the others, and answers."""
    client = Client(collection, memory=kind(file), source=Waiting())
    _start.wait(60)
    return client.randomize(true)


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    context = get_context("spawn")
    start = context.Barrier(TOGETHER)
    with ProcessPoolExecutor(TOGETHER, mp_context=context, initializer=_ready, initargs=(start,)) as pool:
        yield pool


def at_once(
    pool: ProcessPoolExecutor, collection: Collection, true: Any, file: Path, *, kind: Any = FileMemory
) -> list[Any]:
    """The reports that TOGETHER processes made with one memory, all of them at once."""
    tasks = [pool.submit(answer, collection, true, kind, file) for _ in range(TOGETHER)]
    return [task.result(120) for task in tasks]


def test_concurrent_processes_give_one_answer(processes: ProcessPoolExecutor, tmp_path: Path) -> None:
    for number in range(ROUNDS):
        reports = at_once(processes, ASKED, TRUE, tmp_path / f"{number}.json")
        assert all(report == reports[0] for report in reports)
        assert len(FileMemory(tmp_path / f"{number}.json")) == 4  # seal, about, and two answers


def test_concurrent_processes_without_a_lock_give_different_answers(
    processes: ProcessPoolExecutor, tmp_path: Path
) -> None:
    reports = at_once(processes, ASKED, TRUE, tmp_path / "one.json", kind=Unlocked)
    assert any(report["answers"] != reports[0]["answers"] for report in reports)


@pytest.mark.long  # test_concurrent_processes_give_one_answer keeps the processes
def test_fresh_reports_of_concurrent_processes_are_all_counted(processes: ProcessPoolExecutor, tmp_path: Path) -> None:
    reports = at_once(processes, LAYERS, {"town": "town 7"}, tmp_path / "one.json")
    assert len({report["id"] for report in reports}) == TOGETHER
    assert FileMemory(tmp_path / "one.json")[f"{LAYERS.fingerprint}/reports"] == TOGETHER


def in_threads(work: Callable[[int], Any], workers: int = 8) -> list[Any]:
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, range(workers)))


def test_threads_give_one_answer_with_one_or_several_clients(tmp_path: Path) -> None:
    shared = Client(ASKED, memory=tmp_path / "shared.json", source=Waiting())
    reports = in_threads(lambda _: shared.randomize(TRUE))
    assert all(report == reports[0] for report in reports)
    reports = in_threads(lambda _: Client(ASKED, memory=tmp_path / "own.json", source=Waiting()).randomize(TRUE))
    assert all(report == reports[0] for report in reports)


def test_changes_of_other_processes_are_not_overwritten(tmp_path: Path) -> None:
    memories = [FileMemory(tmp_path / "one.json") for _ in range(8)]
    in_threads(lambda number: memories[number].update({f"{number}/{key}": key for key in range(10)}))
    assert len(FileMemory(tmp_path / "one.json")) == 80


def test_once_allows_one_report_for_all_processes_together(tmp_path: Path) -> None:
    """Each opened the memory before any had answered."""
    once = Collection(ASKED.name, ASKED.questions, repeats="once")
    first, second = (Client(once, memory=tmp_path / "one.json") for _ in range(2))
    first.randomize(TRUE)
    with pytest.raises(Unsupported, match="accepts one report"):
        second.randomize({**TRUE, "age": 334})
    assert second.given()[0].answered == 1


def test_link_to_a_memory_uses_the_same_memory(tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to(tmp_path / "one.json")
    linked, direct = Client(ASKED, memory=tmp_path / "link.json"), Client(ASKED, memory=tmp_path / "one.json")
    assert linked.randomize(TRUE) == direct.randomize(TRUE)
    assert (tmp_path / "link.json").is_symlink()


def test_deleted_memory_is_refused_and_not_replaced(tmp_path: Path) -> None:
    client = Client(ASKED, memory=tmp_path / "one.json")
    client.randomize(TRUE)
    (tmp_path / "one.json").unlink()
    with pytest.raises(SourceUnreadable, match=r"no longer exists\. Nothing was randomized"):
        client.randomize(TRUE)


@pytest.mark.parametrize("blocked", ["before", "after the first answer"])
def test_answer_that_cannot_be_stored_is_not_returned(tmp_path: Path, blocked: str) -> None:
    """A folder is in the path of the file's next version, or of the lock."""
    client = Client(ASKED, memory=tmp_path / "one.json")
    if blocked == "after the first answer":
        client.randomize({**TRUE, "age": 1})
        (tmp_path / "one.json.new").mkdir()
    else:
        (tmp_path / "one.json.lock").mkdir()
    for _ in range(2):  # the second time finds nothing of the first
        with pytest.raises(SourceUnreadable, match=r"cannot be written \(.*\)\. Nothing was randomized"):
            client.randomize(TRUE)


def test_change_that_was_not_saved_is_not_remembered(tmp_path: Path) -> None:
    memory = FileMemory(tmp_path / "one.json")
    memory["kept"] = 1
    (tmp_path / "one.json.new").mkdir()
    with pytest.raises(SourceUnreadable):
        memory["lost"] = 2
    with pytest.raises(SourceUnreadable):
        del memory["kept"]
    assert dict(memory) == {"kept": 1}
    with pytest.raises(KeyError):
        del memory["never there"]
