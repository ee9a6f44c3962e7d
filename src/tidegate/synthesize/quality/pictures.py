"""The pictures of a quality report. Grey is the original, colour is the synthetic table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING

from tidegate.synthesize.quality.margins import Margin
from tidegate.synthesize.quality.pairs import Pair
from tidegate.synthesize.quality.result import percent
from tidegate.synthesize.quality.svg import bar, dot, line, picture, share, short, words

if TYPE_CHECKING:
    from tidegate.synthesize.quality.regression import Coefficient

MOST_COLUMNS = 18  # in a matrix of associations
MOST_BARS = 8
SPAN = 8.0  # standard errors to either side
TALL = 120.0


def steps(margin: Margin) -> str:
    """A column of numbers: the original's shares as grey bars, the synthetic ones as a line over them."""
    top = max(*margin.original, *margin.synthetic, 1e-12)
    wide = 1 / len(margin.labels)
    level = [TALL * (1 - part / top) + 4 for part in margin.synthetic]
    parts = [
        bar(
            share(place * wide),
            TALL * (1 - part / top) + 4,
            share(wide),
            TALL * part / top,
            "truth",
            says=_both(margin, place),
        )
        for place, part in enumerate(margin.original)
    ]
    parts += [line(share(i * wide), y, share((i + 1) * wide), y, "made") for i, y in enumerate(level)]
    joints = pairwise(level)
    parts += [line(share((i + 1) * wide), a, share((i + 1) * wide), b, "made") for i, (a, b) in enumerate(joints)]
    parts += [line("0%", TALL + 4, "100%", TALL + 4, "axis")]
    last = -2 if margin.labels[-1] == "missing" and len(margin.labels) > 1 else -1
    parts += [words("0%", TALL + 19, margin.labels[0].partition(" to ")[0])]
    parts += [words("100%", TALL + 19, margin.labels[last].rpartition(" to ")[2], anchor="end")]
    parts += [words("100%", 12, f"highest cell {percent(top)}", anchor="end")]
    return picture(parts, height=TALL + 24, says=f"Shares of the values of {margin.column} in both tables")


def bars(margin: Margin) -> str:
    """A category: its most frequent values with two bars each."""
    held = [max(a, b) for a, b in zip(margin.original, margin.synthetic, strict=True)]
    order = sorted((place for place, part in enumerate(held) if part), key=lambda place: -held[place])
    shown = order[:MOST_BARS]
    top = max(*margin.original, *margin.synthetic, 1e-12)
    parts = []
    for row, place in enumerate(shown):
        y, says = 18.0 * row, _both(margin, place)
        parts.append(words("37%", y + 13, short(margin.labels[place], 18), anchor="end"))
        parts.append(bar("39%", y + 2.5, share(0.61 * margin.original[place] / top), 6.5, "truth", says=says))
        parts.append(bar("39%", y + 9, share(0.61 * margin.synthetic[place] / top), 4, "fill", says=says))
    rest = len(order) - len(shown)
    if rest:
        parts.append(words("39%", 18.0 * len(shown) + 13, f"and {rest} more", kind="label quiet"))
    says = f"Shares of the values of {margin.column} in both tables"
    return picture(parts, height=18.0 * (len(shown) + bool(rest)) + 2, says=says)


def matrix(pairs: Sequence[Pair], names: Sequence[str], what: str) -> str:
    """Associations of every two columns as shades: of the original, the synthetic table, or the difference."""
    side, left, below = 320.0, 92.0, 84.0
    cell = (side - left) / max(len(names), 1)
    where = {name: place for place, name in enumerate(names)}
    parts = []
    for pair in pairs:
        if pair.columns[0] in where and pair.columns[1] in where:
            j, i = sorted(where[name] for name in pair.columns)
            parts.append(_shade(pair, what, left + j * cell, i * cell, cell))
    size = min(9.0, 0.85 * cell)
    for place, name in enumerate(names):
        middle = (place + 0.5) * cell
        text = escape(short(name, 16))
        if place:
            parts.append(
                f'<text class="label" style="font-size:{size:.1f}px" x="{left - 4}" y="{middle + size / 3:.1f}" text-anchor="end">{text}</text>'
            )
        if place < len(names) - 1:
            x, y = left + middle + size / 3, side - left + 6
            parts.append(
                f'<text class="label" style="font-size:{size:.1f}px" text-anchor="end" transform="translate({x:.1f} {y:.1f}) rotate(-90)">{text}</text>'
            )
    return picture(
        parts, height=side, says=f"Cramér's V of every two columns: {what}", box=f"0 0 {side:g} {side - left + below:g}"
    )


def interval_row(one: Coefficient) -> str:
    """A coefficient's two intervals, in standard errors of the original, which lies at 0."""
    if one.original is None or one.synthetic is None or not one.original.error:
        return picture(
            [words("50%", 17, "cannot be told from one of the tables", anchor="middle", kind="label quiet")],
            height=26,
            says="none",
        )
    truth = [(end - one.original.value) / one.original.error for end in one.original.interval()]
    made = [(end - one.original.value) / one.original.error for end in one.synthetic.interval()]
    place = (one.synthetic.value - one.original.value) / one.original.error
    parts = [
        line("50%", 0, "50%", 26, "axis"),
        line(_at(truth[0]), 9, _at(truth[1]), 9, "thick truth"),
        dot("50%", 9, 3.4, "truth"),
    ]
    parts.append(line(_at(made[0]), 18, _at(made[1]), 18, "thick made"))
    parts.append(
        dot(_at(place), 18, 3.8, "fill")
        if abs(place) <= SPAN
        else words(_at(place), 22, "▶" if place > 0 else "◀", anchor="middle", kind="label far")
    )
    return picture(parts, height=26, says=f"{one.name}: synthetic minus original is {place:.1f} standard errors")


def interval_axis() -> str:
    parts = [line("0%", 1, "100%", 1, "axis")]
    for tick in (-8, -4, 0, 4, 8):
        anchor = {-8: "start", 8: "end"}.get(tick, "middle")
        parts.append(words(_at(tick), 15, f"{tick:+d}" if tick else "original", anchor=anchor))
    return picture(parts, height=20, says="standard errors of the original")


def strongest(pairs: Sequence[Pair], names: Sequence[str]) -> list[str]:
    """The columns to show where not all fit: those in which associations changed most, in their own order."""
    worst = {name: max((abs(pair.change) for pair in pairs if name in pair.columns), default=0.0) for name in names}
    kept = set(sorted(names, key=lambda name: -worst[name])[:MOST_COLUMNS])
    return [name for name in names if name in kept]


def _shade(pair: Pair, what: str, x: float, y: float, cell: float) -> str:
    value = {"original": pair.association[0], "synthetic": pair.association[1]}.get(what, pair.change)
    strength = min(1.0, abs(value) if what != "difference" else 2.5 * abs(value))
    kind = "less" if what == "difference" and value < 0 else "fill"
    says = (
        f"{' and '.join(pair.columns)}: {value:+.2f}"
        if what == "difference"
        else f"{' and '.join(pair.columns)}: {value:.2f}"
    )
    look = f"fill-opacity:{0.04 + 0.96 * math.sqrt(strength) if strength > 0.004 else 0.03:.3f}"
    return bar(f"{x:.1f}", y, f"{cell - 1:.1f}", cell - 1, kind, says=says, style=look)


def _at(errors: float) -> str:
    return share(0.5 + min(max(errors, -SPAN), SPAN) / SPAN * 0.48)


def _both(margin: Margin, place: int) -> str:
    return f"{margin.labels[place]}: original {percent(margin.original[place])}, synthetic {percent(margin.synthetic[place])}"
