"""Code snippets of a page, run as if a user had copied them."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page


def shown_code(tab: Page, kind: str) -> str:
    """Return a code snippet of a page: Python or the command line."""
    return tab.locator(f'#code .snippet[data-kind="{kind}"] code').inner_text()


def run_python(code: str, token: str) -> Any:
    """Return the value of the last line; if it is an assignment, all names."""
    parsed, names = ast.parse(code.replace("tg_...", token)), {}
    last = parsed.body.pop() if isinstance(parsed.body[-1], ast.Expr) else None
    exec(compile(parsed, "copied", "exec"), names)
    return eval(compile(ast.Expression(last.value), "copied", "eval"), names) if last else names


def run_command(code: str, folder: Path, *options: str, status: int = 0) -> str:
    """Return what a shell prints for the command in the folder of the policies; `options` are appended."""
    there = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    ran = subprocess.run(
        " ".join([code, *options]),
        shell=True,
        cwd=folder,
        env=there,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert ran.returncode == status, ran.stdout + ran.stderr
    return ran.stdout
