"""Every block of code on every page runs, and prints what the page shows."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from _ext.blocks import RUN, blocks, to_myst
from conftest import has_java_17
from docs.pages import all_pages, name_of
from docs.reader import PageMismatch, Reader, compare
from docs.samples import put, samples_of

TEXTS = {name_of(page): page.read_text("utf-8") for page in all_pages()}
RUNNING = [name for name, text in TEXTS.items() if any(block.is_run for block in blocks(text))]
POSTGRES = "postgresql://localhost/hospital"
NOT_RUN_AT_MOST = 8


def as_case(name: str) -> Any:
    """Return a page as a test case; pages with Spark run beside the other tests of Spark, which share one session."""
    uses_spark = 'needs="spark"' in TEXTS[name]
    return pytest.param(name, marks=[pytest.mark.spark] if uses_spark else [])


@pytest.mark.long_for(
    *("tutorials/answer", "tutorials/collect", "tutorials/release", "tutorials/synthesize", "guides/own-table"),
    *("guides/which-test", "guides/polls", "docs/synthesize", "docs/operations", "docs/collect"),
)  # 2 to 7 s each
@pytest.mark.parametrize("page", [as_case(name) for name in RUNNING])
def test_page_prints_what_it_shows(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setenv("LOGNAME", "ana")  # the user in the ledger
    monkeypatch.setenv("COLUMNS", "100")
    text = TEXTS[page]
    for sample in samples_of(text):
        put(sample, tmp_path)
    real = addresses(request.getfixturevalue("postgres_url")) if POSTGRES in text else {}
    without = frozenset() if has_java_17() and find_spec("pyspark") else frozenset({"spark"})
    assert Reader(tmp_path, real, without).follow(text)


def addresses(url: str) -> dict[str, str]:
    """Return the test server's address for each address of the page; the former has a question mark already."""
    return {f"{POSTGRES}?table=": f"{url}&table=", POSTGRES: url}


def test_blocks_that_are_not_run_are_few_and_state_the_reason() -> None:
    not_run = [
        (name, block.line, block.options["no-run"])
        for name, text in TEXTS.items()
        for block in blocks(text)
        if block.language in RUN and "no-run" in block.options
    ]
    assert all(len(reason) > 10 for *_, reason in not_run), not_run
    assert len(not_run) <= NOT_RUN_AT_MOST, not_run


def test_no_page_uses_a_language_that_is_never_run() -> None:
    for name, text in TEXTS.items():
        assert not [block.line for block in blocks(text) if block.language in ("py", "pycon", "bash", "shell")], name


@pytest.mark.parametrize(
    "page",
    [
        pytest.param("```python\n1 / 0\n```", id="an error"),
        pytest.param("```python\nprint(1)\n```\n```output\n2\n```", id="another output"),
        pytest.param("```console\n$ echo one\ntwo\n```", id="another line"),
        pytest.param("```console\n$ tidegate check nowhere.toml\n```", id="a refusal that is not shown"),
        pytest.param("```console noisy\n$ echo 12 people\n7 towns\n```", id="another word beside a number"),
        pytest.param("```sh\nfalse\n```", id="a command that fails"),
    ],
)
def test_wrong_page_is_detected(page: str, tmp_path: Path) -> None:
    with pytest.raises(PageMismatch):
        Reader(tmp_path).follow(page)


def test_noisy_numbers_match_any_number() -> None:
    compare(
        "cost 0.2,  1.13 remaining   entry 7f3a00aa\n──── about ...",
        "cost 0.107, 9 remaining   entry 00ff12ee\n── about 3",
        noisy=True,
    )
    with pytest.raises(PageMismatch):
        compare("cost 0.2", "cost 0.3", noisy=False)


def test_sphinx_gets_file_names_as_captions_and_no_test_options() -> None:
    page = (
        '```toml file="a.toml"\nx = 1\n```\n\n```console noisy\n$ ls\n```\n\n```output\n1\n```\n\n```{toctree}\n```\n'
    )
    assert to_myst(page) == (
        "```{code-block} toml\n:caption: a.toml\n\nx = 1\n```\n\n```console\n$ ls\n```\n\n```text\n1\n```\n\n```{toctree}\n```\n"
    )
