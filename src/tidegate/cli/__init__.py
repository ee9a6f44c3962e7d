"""The command line. Every command has --json; refusals exit with 2."""

from __future__ import annotations

from tidegate.cli.output import guarded


def main() -> None:
    """The entry point of `tidegate`."""
    from tidegate.cli.app import app

    guarded(lambda: app(standalone_mode=True))
