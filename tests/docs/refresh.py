"""Rewrites the output that pages show after a message of the product has changed.

    PYTHONPATH=src:papers/src:tests:docs python -m docs.refresh docs/tutorials/*.md

Each page runs from top to bottom. Output that still matches is not touched. In output that does not match, lines with
"..." alone stay, and every other line becomes the printed line that resembles it most; where none does, the line is
marked with "!!!!" for a person to decide. Read the difference before you commit it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from difflib import SequenceMatcher
from pathlib import Path

import pandas as pd  # noqa: F401  before a command of a page keeps Arrow from loading it
from _ext.blocks import blocks, commands
from docs.reader import PageMismatch, Reader, compare
from docs.samples import put, samples_of

LEAST_RESEMBLANCE = 0.35
UNKNOWN = "!!!! "


def refresh(page: Path) -> bool:
    """Rewrite the shown output of a page and return whether anything changed."""
    text = page.read_text("utf-8")
    with tempfile.TemporaryDirectory() as folder:
        for sample in samples_of(text):
            put(sample, Path(folder))
        changed = _refresh_text(text, Reader(Path(folder)))
    page.write_text(changed, "utf-8")
    return changed != text


def _refresh_text(text: str, reader: Reader) -> str:
    changed, printed = text, ""
    for block in blocks(text):
        shown = list[tuple[str, str]]()
        if "file" in block.options:
            reader.write(block)
        elif block.language == "output":
            shown = [(block.text, printed)]
        elif block.is_run and block.language == "python":
            printed = reader.run_python(block)
        elif block.is_run:
            shown = [(expected, reader.run_command(command)[1]) for command, expected in commands(block)]
        for expected, actual in shown:
            if expected.strip() and not _matches(expected, actual, noisy=block.is_noisy):
                changed = changed.replace(expected.rstrip("\n"), merge_output(expected, actual), 1)
    return changed


def merge_output(expected: str, actual: str) -> str:
    """Return the printed lines in the form of the shown ones: what the page leaves out stays left out."""
    lines = [line.rstrip() for line in actual.rstrip("\n").splitlines()]
    if "..." not in expected:
        return "\n".join(lines)
    result, start = list[str](), 0
    for shown in expected.rstrip("\n").splitlines():
        if shown.strip() == "...":
            result.append(shown)
            continue
        likeness = [SequenceMatcher(None, shown, line).ratio() for line in lines[start:]]
        best = max(likeness, default=0.0)
        if best < LEAST_RESEMBLANCE:
            result.append(UNKNOWN + shown)
            continue
        start += likeness.index(best) + 1
        line = lines[start - 1]
        result.append(shown if "..." in shown and _matches(shown, line, noisy=True) else line)
    return "\n".join(result)


def _matches(expected: str, actual: str, *, noisy: bool) -> bool:
    try:
        compare(expected, actual, noisy=noisy)
    except PageMismatch:
        return False
    return True


if __name__ == "__main__":
    os.environ["TIDEGATE_REGISTRY"] = ""  # pages are run again and again with the same data
    os.environ.update(LOGNAME="ana", COLUMNS="100")  # as in test_pages_run.py
    for argument in sys.argv[1:]:
        if refresh(Path(argument)):
            print(f"{argument}: rewritten; read the difference")
