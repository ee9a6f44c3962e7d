"""Fenced code blocks of a page: how they are run by the tests and how Sphinx shows them.

The info string of a fence names the language and how the block is run:

    ```python                           run, after the blocks before it; an "output" block below shows what it prints
    ```console                          lines with "$ " are run, the lines below each one show what it prints
    ```sh                               commands whose output is not shown
    ```toml file="people.toml"          written into the folder in which the page runs
    ```python no-run="needs a server"   not run, and the reason
    ```python needs="spark"             run only where Spark and Java 17 are installed
    ... ends-with-1                     the command reports problems in the data by its exit code
    ... noisy                           numbers differ between runs and are compared as "a number"

In shown output "..." matches anything. Blocks in other languages, or without a language, are not run.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from markdown_it import MarkdownIt

RUN = ("python", "console", "sh")
FENCE = re.compile(r"^```([a-z]+)([^\n{]*)$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, text, first line on the page, and the options of its info string."""

    language: str
    text: str
    line: int
    options: dict[str, str] = field(default_factory=dict)

    @property
    def is_run(self) -> bool:
        return self.language in RUN and "no-run" not in self.options

    @property
    def is_noisy(self) -> bool:
        return "noisy" in self.options


def parse_info(info: str) -> tuple[str, dict[str, str]]:
    """Split an info string into the language and its options (`key="value"` or bare words)."""
    words = shlex.split(info)
    pairs = (word.partition("=") for word in words[1:])
    return (words[0] if words else ""), {key: value for key, _, value in pairs}


def blocks(page: str) -> list[Block]:
    """Return the fenced blocks of a page in order."""
    fences = (token for token in MarkdownIt("commonmark").parse(page) if token.type == "fence")
    infos = ((token, *parse_info(token.info)) for token in fences)
    return [
        Block(language, token.content, (token.map or [0])[0] + 1, options=options) for token, language, options in infos
    ]


def commands(block: Block) -> Iterator[tuple[str, str]]:
    """Yield the commands of a "console" or "sh" block with the output shown below each; a final backslash continues a line."""
    command, output = "", list[str]()
    for line in block.text.splitlines():
        starts = line.startswith("$ ") if block.language == "console" else bool(line.strip())
        if command.endswith("\\"):
            command = command[:-1] + line.strip()
        elif starts:
            if command:
                yield command, "\n".join(output)
            command, output = line.removeprefix("$ ").strip(), []
        else:
            output.append(line)
    if command:
        yield command, "\n".join(output)


def to_myst(page: str) -> str:
    """Rewrite info strings for MyST: the file name becomes a caption, options that only the tests need are dropped."""
    return FENCE.sub(_fence, page)


def _fence(match: re.Match[str]) -> str:
    language, options = parse_info(match[1] + match[2])
    shown = "text" if language in ("output", "csv") else language
    return f"```{{code-block}} {shown}\n:caption: {options['file']}\n" if "file" in options else f"```{shown}"


def setup(app: Any) -> dict[str, bool]:
    """Register the rewriting of fences with Sphinx."""

    def read(app: Any, name: str, source: list[str]) -> None:
        source[0] = to_myst(source[0])

    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
