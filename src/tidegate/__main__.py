"""``python -m tidegate``: the command line."""

from tidegate.cli import main

main()
