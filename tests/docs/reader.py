"""Runs a page of the documentation from top to bottom in one folder, as a reader would."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from _ext.blocks import Block, blocks, commands

from tidegate.cli import main

NUMBER = re.compile(r"\b[0-9a-f]{8,64}\b|-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")
REFUSAL = re.compile(r"^[A-Z][A-Za-z]+: ", re.MULTILINE)
SHELL = re.compile(r"[|><;&*]")
VENV = str(Path(sys.executable).parent)


class PageMismatch(AssertionError):
    """A block does not do what the page shows."""


@dataclass
class Reader:
    """A reader who follows a page: the folder, real addresses by the shown ones, missing requirements, Python names so far."""

    folder: Path
    real: dict[str, str] = field(default_factory=dict)
    without: frozenset[str] = frozenset()
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "page"})

    def follow(self, text: str) -> int:
        """Run all blocks of a page and return how many were run."""
        ran, printed = 0, ""
        for block in blocks(text):
            if block.options.get("needs") in self.without:
                continue
            try:
                if "file" in block.options:
                    self.write(block)
                elif block.is_run:
                    ran += 1
                    printed = self._run(block)
                elif block.language == "output":
                    compare(block.text, printed, noisy=block.is_noisy)
            except (Exception, SystemExit) as error:
                raise PageMismatch(f"line {block.line}: {type(error).__name__}: {error}") from error
        return ran

    def write(self, block: Block) -> None:
        """Write the file that a block shows."""
        _write(self.folder / block.options["file"], self._meant(block.text))

    def _run(self, block: Block) -> str:
        if block.language == "python":
            return self._shown(self.run_python(block))
        for command, expected in commands(block):
            code, printed = self.run_command(self._meant(command))
            refused = bool(REFUSAL.search(expected)) or "refused" in block.options
            has_problems = "ends-with-1" in block.options and code == 1
            if code and not has_problems and not (refused and code == 2):
                raise PageMismatch(f"`{command}` ended with {code}:\n{printed}")
            if block.language == "console" and expected.strip():
                compare(expected, self._shown(printed), noisy=block.is_noisy, what=command)
        return ""

    def run_python(self, block: Block) -> str:
        """Run a block of Python after the ones before it and return what it prints."""
        code = compile("\n" * block.line + self._meant(block.text), "<page>", "exec")
        with contextlib.redirect_stdout(io.StringIO()) as output, contextlib.chdir(self.folder):
            exec(code, self.names)
        return output.getvalue()

    def run_command(self, command: str) -> tuple[int, str]:
        """Run a plain `tidegate` command in this process, where it is loaded and compiled; run anything else in a shell."""
        words = shlex.split(command, comments=True)
        if words[0] == "tidegate" and not SHELL.search(re.sub(r"\"[^\"]*\"|'[^']*'", "", command)):
            return self._tidegate(words)
        path = {"PATH": f"{VENV}:{os.environ['PATH']}"}
        done = subprocess.run(
            command,
            shell=True,
            cwd=self.folder,
            env={**os.environ, **path},
            capture_output=True,
            text=True,
            timeout=120,
        )
        return done.returncode, done.stdout + done.stderr

    def _tidegate(self, words: list[str]) -> tuple[int, str]:
        before, sys.argv = sys.argv, words
        with contextlib.redirect_stdout(io.StringIO()) as output, contextlib.redirect_stderr(output):
            try:
                with contextlib.chdir(self.folder):
                    main()
            except SystemExit as exit_request:
                code = int(exit_request.code or 0)
            finally:
                sys.argv = before
        return code, output.getvalue()

    def _meant(self, text: str) -> str:
        for shown, meant in self.real.items():
            text = text.replace(shown, meant)
        return text

    def _shown(self, text: str) -> str:
        for shown, meant in self.real.items():
            text = text.replace(meant, shown)
        return text


def compare(expected: str, printed: str, *, noisy: bool, what: str = "") -> None:
    """Fail unless the page shows what is printed; "..." matches anything, trailing spaces and empty lines are ignored."""
    pattern = _pattern(_lines(expected), noisy=noisy)
    if not re.fullmatch(pattern, _lines(printed), re.DOTALL):
        raise PageMismatch(f"{what}\n--- the page shows\n{_lines(expected)}\n--- but it prints\n{_lines(printed)}")


def _pattern(text: str, *, noisy: bool) -> str:
    parts = (_plain(part, noisy=noisy) for part in re.split(r"\.\.\.", text))
    return ".*?".join(parts)


def _plain(text: str, *, noisy: bool) -> str:
    """Match literally; noisy numbers match any number, and columns can have any width."""
    if not noisy:
        return re.escape(text)
    pattern = re.escape(NUMBER.sub("\0", text)).replace(re.escape("\0"), f"(?:{NUMBER.pattern})")
    return re.sub(r"(?:\\ )+", r" +", re.sub(r"(?:─)+", "─+", pattern))


def _lines(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip())


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
