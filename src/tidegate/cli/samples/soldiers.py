"""The soldiers of the release paper, rebuilt from its published counts (see `tidegate.reproduce.soldiers`)."""

from __future__ import annotations

from collections.abc import Iterator

SOLDIERS = 10_000
STRIDE, START = 6181, 17  # no common factor with 10,000: an order in which everybody comes once, and cells are mixed
WAITS = "soldier 09441"  # of the headquarters, and older than most: a record that has to wait


def as_csv() -> str:
    """The table."""
    from tidegate.reproduce.soldiers import records

    columns = records()
    lines = (",".join(map(str, row)) for row in zip(*columns.values(), strict=True))
    return "\n".join([",".join(columns), *lines]) + "\n"


def in_mixed_order() -> Iterator[str]:
    """The name of every soldier, once."""
    for number in range(SOLDIERS):
        yield f"soldier {(START + STRIDE * number) % SOLDIERS + 1:05d}"
