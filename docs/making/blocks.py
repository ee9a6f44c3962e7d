"""Fenced blocks of a page. The first line says the language and how the block is run:

    ```python                           run, after the blocks before it; a block "output" below it is what it prints
    ```console                          lines with "$ " are run, the lines below each are what it prints
    ```sh                               commands that print nothing worth showing
    ```toml file="people.toml"          written into the folder that the page runs in
    ```python no-run="needs a server"   not run, and why
    ```python needs="spark"             run where Spark and Java 17 are
    ... noisy                           numbers differ from run to run: they are compared as "a number"

In what is printed "..." stands for anything. Blocks in other languages, or without one, are for reading only.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field

from markdown_it import MarkdownIt

RUN = ("python", "console", "sh")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, what else its first line says, its text, the line of the page that it starts on."""

    language: str
    text: str
    line: int
    says: dict[str, str] = field(default_factory=dict)

    @property
    def runs(self) -> bool:
        return self.language in RUN and "no-run" not in self.says

    @property
    def noisy(self) -> bool:
        return "noisy" in self.says


def said(info: str) -> tuple[str, dict[str, str]]:
    """The language, and `key="value"` or bare words behind it."""
    words = shlex.split(info)
    pairs = (word.partition("=") for word in words[1:])
    return (words[0] if words else ""), {key: value for key, _, value in pairs}


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found = []
    for token in MarkdownIt("commonmark").parse(page):
        if token.type == "fence":
            language, says = said(token.info)
            found.append(Block(language, token.content, (token.map or [0])[0] + 1, says))
    return found


def commands(block: Block) -> Iterator[tuple[str, str]]:
    """Commands of a block "console" or "sh", each with what is printed below it. A backslash goes on in the next line."""
    command, shown = "", list[str]()
    for line in block.text.splitlines():
        starts = line.startswith("$ ") if block.language == "console" else bool(line.strip())
        if command.endswith("\\"):
            command = command[:-1] + line.strip()
        elif starts:
            if command:
                yield command, "\n".join(shown)
            command, shown = line.removeprefix("$ ").strip(), []
        else:
            shown.append(line)
    if command:
        yield command, "\n".join(shown)
