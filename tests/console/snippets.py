"""Code snippets of a page, run as if a user had copied them."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.shortcuts import run_in_folder

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
    """Return what the command prints in the folder of the policies; `options` are appended.

    A shell reads the command and lists its words; the command itself runs in this process, which saves 2 s of start-up.
    """
    listed = subprocess.run(
        ["bash", "-c", f"tidegate() {{ printf '%s\\0' \"$@\"; }}\n{' '.join([code, *options])}"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=200,
        check=True,
    )
    assert listed.stderr == ""
    code, out, err = run_in_folder(folder, *listed.stdout.split("\0")[:-1])
    assert code == status, out + err
    return out
