"""Every block of code on every page runs, and prints what the page shows."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from conftest import java_17
from docs.running import PageWrong, Reader, compare
from docs.samples import put, samples_of
from making.blocks import RUN, blocks
from making.pages import ROOT, Page, all_pages, page_of


def name_of(page: Page) -> str:
    return page.source.relative_to(ROOT).as_posix()


PAGES = [*all_pages(), page_of(ROOT / "README.md")]
RUNNING = [page for page in PAGES if any(block.runs for block in blocks(page.text))]
POSTGRES = "postgresql://localhost/hospital"
NOT_RUN_AT_MOST = 8


def as_case(page: Page) -> Any:
    """A page as a named row; those with Spark run beside the other tests of it, which share one session."""
    spark = 'needs="spark"' in page.text
    return pytest.param(page, id=name_of(page), marks=[pytest.mark.xdist_group("spark")] if spark else [])


@pytest.mark.parametrize("page", [as_case(page) for page in RUNNING])
def test_a_page_does_what_it_shows(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setenv("LOGNAME", "ana")  # who asks, in the ledger
    monkeypatch.setenv("COLUMNS", "100")
    for sample in samples_of(page.text):
        put(sample, tmp_path)
    real = addresses(request.getfixturevalue("postgres_url")) if POSTGRES in page.text else {}
    without = frozenset() if java_17() and find_spec("pyspark") else frozenset({"spark"})
    assert Reader(tmp_path, real, without).follow(page.text)


def addresses(url: str) -> dict[str, str]:
    """A server of the tests instead of the page's; its address has a question mark already."""
    return {f"{POSTGRES}?table=": f"{url}&table=", POSTGRES: url}


def test_blocks_that_do_not_run_say_why_and_are_few() -> None:
    not_run = [
        (name_of(page), block.line, block.says["no-run"])
        for page in PAGES
        for block in blocks(page.text)
        if block.language in RUN and "no-run" in block.says
    ]
    assert all(len(reason) > 10 for *_, reason in not_run), not_run
    assert len(not_run) <= NOT_RUN_AT_MOST, not_run


def test_only_the_reference_shows_python_that_is_no_program() -> None:
    for page in PAGES:
        if "reference" not in page.place:
            assert not [block.line for block in blocks(page.text) if block.language in ("py", "pycon", "bash", "shell")]


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
def test_a_page_that_lies_is_found(page: str, tmp_path: Path) -> None:
    with pytest.raises(PageWrong):
        Reader(tmp_path).follow(page)


def test_numbers_that_are_noisy_may_be_others() -> None:
    compare(
        "cost 0.2,  left 1.13   entry 7f3a00aa\n──── about ...",
        "cost 0.107, left 9   entry 00ff12ee\n── about 3",
        noisy=True,
    )
    with pytest.raises(PageWrong):
        compare("cost 0.2", "cost 0.3", noisy=False)
