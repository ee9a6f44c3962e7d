"""6,000 stays in a clinic, one for each patient, with dates: for many answers under the average guarantee."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

from tidegate.demo.deterministic import pick, spread

STAYS = 6_000
COLUMNS = ("patient", "age", "sex", "ward", "admitted", "nights", "readmitted")
FIRST, DAYS = date(2025, 1, 1), 365
WARDS = {"surgery": 4.0, "medicine": 5.0, "maternity": 1.5, "children": 1.5, "intensive care": 1.0}
NIGHTS = {"surgery": 5, "medicine": 8, "maternity": 3, "children": 3, "intensive care": 12}  # on average


def as_csv() -> str:
    """Return the table as CSV."""
    return "\n".join([",".join(COLUMNS), *(",".join(map(str, row)) for row in rows())]) + "\n"


def rows() -> Iterator[tuple[str | int, ...]]:
    """Yield one stay after the other. More people are admitted in winter."""
    for number in range(STAYS):
        ward = pick(spread(number, 0), WARDS)
        age = _age(ward, spread(number, 1))
        sex = "female" if ward == "maternity" else pick(spread(number, 2), {"female": 51, "male": 49})
        nights = min(60, int(2 * NIGHTS[ward] * spread(number, 3) ** 1.5))
        again = "yes" if spread(number, 4) < (0.25 if age >= 70 else 0.1) else "no"
        yield f"c{number:05d}", age, sex, ward, _admission(number).isoformat(), nights, again


def _age(ward: str, position: float) -> int:
    lowest, highest = {"children": (0, 17), "maternity": (17, 45)}.get(ward, (18, 99))
    return lowest + round((highest - lowest) * position)


def _admission(number: int) -> date:
    """Return a day of the year; half of the stays in summer are moved to winter."""
    day = int(DAYS * spread(number, 5))
    is_summer = 150 <= day < 240
    return FIRST + timedelta(days=(day + 180) % DAYS if is_summer and spread(number, 6) < 0.5 else day)
