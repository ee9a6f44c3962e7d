"""The command line. Every command has --json; errors exit with 2."""

from __future__ import annotations

from tidegate.cli.output import guarded


def main() -> None:
    """Run the command line: the entry point of `tidegate`."""
    from tidegate.cli.app import app

    guarded(lambda: app(standalone_mode=True))
