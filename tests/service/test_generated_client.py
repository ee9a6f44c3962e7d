"""A client that a tool generates from /openapi.json works against the real service, and its results are typed."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.console_service import on_loopback
from support.service import RunningService

PACKAGE = "generated_tidegate_client"
ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.long  # it installs the tool


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of an environment with the tool alone: it needs another version of a library than the project."""
    environment = tmp_path_factory.mktemp("tool") / "env"
    uv = str(Path(sys.executable).with_name("uv"))
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(environment)], check=True)
    python = environment / "bin" / "python"
    locked = ["--require-hashes", "-r", str(ROOT / "locks" / "generator.txt")]
    subprocess.run([uv, "pip", "install", "--quiet", "--python", str(python), *locked], check=True)
    return python


@pytest.fixture(scope="module")
def address(shared_service: RunningService) -> Iterator[str]:
    with on_loopback(shared_service.app) as url:
        yield url


@pytest.fixture(scope="module")
def generated(address: str, tool: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return a function that imports a part of the generated client."""
    folder: Path = tmp_path_factory.mktemp("generated")
    described = httpx.get(f"{address}/openapi.json", timeout=60).raise_for_status()
    (folder / "openapi.json").write_text(json.dumps(described.json()), "utf-8")
    (folder / "settings.yml").write_text("post_hooks: []\n", "utf-8")
    command = [str(tool), "-m", "openapi_python_client", "generate", "--meta", "none"]
    files = ["--path", "openapi.json", "--config", "settings.yml", "--output-path", PACKAGE]
    run = subprocess.run([*command, *files], cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr
    unparsed = set(re.findall(r"content_type\s+([\w./+-]+)", run.stdout + run.stderr))
    assert "application/toml" in unparsed, "files for download have no model, and the tool says so"
    assert not {"application/json", "application/problem+json"} & unparsed
    sys.path.insert(0, str(folder))
    yield lambda name: importlib.import_module(f"{PACKAGE}.{name}")
    sys.path.remove(str(folder))
    for name in [name for name in sys.modules if name.startswith(PACKAGE)]:
        del sys.modules[name]


@pytest.fixture
def client(address: str, generated: Any, shared_service: RunningService) -> Any:
    return generated("client").AuthenticatedClient(base_url=address, token=shared_service.tokens["owner"], timeout=60)


def test_generated_client_previews_answers_and_reads_pages(client: Any, generated: Any) -> None:
    models = generated("models")
    query = "SELECT town, COUNT(*) FROM people GROUP BY town"
    before = generated("api.answer.preview").sync(
        "people", client=client, body=models.PreviewRequest(sql=query, epsilon="0.1")
    )
    assert isinstance(before, models.PreviewReply)
    assert (before.cost, before.fits, before.unit) == ("0.1", True, "epsilon")
    bought = generated("api.answer.answer").sync(
        "people",
        client=client,
        body=models.Purchase(sql=query, epsilon="0.1", anyway=True),
        idempotency_key="generated",
    )
    assert isinstance(bought, models.AnswerReply)
    assert (bought.cost, len(bought.rows), bought.spent_by_unit.pure) == ("0.1", 3, bought.spent)
    several = [
        models.Question(ask=models.QuestionAsk.COUNT, by=["town"]),
        models.Question(ask=models.QuestionAsk.MEAN, column="age"),
    ]
    both = generated("api.answer.answer").sync(
        "people", client=client, body=models.Purchase(questions=several, epsilon="0.2", anyway=True)
    )
    assert isinstance(both, models.AnswersReply)
    assert [part.statistic for part in both.answers] == ["count", "mean"]
    first = generated("api.ledger.entries").sync(client=client, limit=1, newest=True)
    assert isinstance(first, models.LedgerPage)
    assert isinstance(first.next_, str)
    second = generated("api.ledger.entries").sync(client=client, limit=1, newest=True, cursor=first.next_)
    assert second.entries[0].number == first.entries[0].number - 1
    history = generated("api.answer.history").sync("people", client=client)
    stored = generated("api.answer.stored_answer").sync("people", history.questions[0].number, client=client)
    assert (stored.cost, stored.entry) == ("0", bought.entry)


def test_generated_client_returns_problems(client: Any, generated: Any) -> None:
    models = generated("models")
    body = models.Purchase(sql="SELECT COUNT(*) FROM people WHERE age > 33", epsilon="100000")
    refused = generated("api.answer.answer").sync_detailed("people", client=client, body=body)
    assert (int(refused.status_code), type(refused.parsed)) == (409, models.Problem)
    assert (refused.parsed.code, refused.parsed.status) == ("budget-exceeded", 409)
    assert refused.parsed.facts.to_dict()["asked"] == "100000"
    missing = generated("api.data_sets.describe_data").sync("nowhere", client=client)
    assert (type(missing), missing.code) == (models.Problem, "not-there")
