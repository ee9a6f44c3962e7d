"""10,000 people with correlated age, sex, town, education, hours and income."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.demo.deterministic import pick, spread

PEOPLE = 10_000
COLUMNS = ("person", "age", "sex", "town", "education", "hours", "income")
TOWNS = {"Aby": 3.0, "Berg": 3.0, "Ceder": 2.0, "Dal": 1.0, "Ek": 1.0}
RICH_TOWNS = ("Ceder", "Ek")
RETIRED = 66


def as_csv() -> str:
    """Return the table as CSV."""
    return "\n".join([",".join(COLUMNS), *(",".join(map(str, row)) for row in rows())]) + "\n"


def rows() -> Iterator[tuple[str | int, ...]]:
    """Yield one person after the other."""
    for number in range(PEOPLE):
        age = 18 + int(72 * spread(number, 0) ** 1.5)
        sex = pick(spread(number, 1), {"female": 51, "male": 49})
        town = pick(spread(number, 2), TOWNS)
        education = pick(spread(number, 3), _education(age, town))
        hours = _hours(age, sex, spread(number, 4))
        income = pick(spread(number, 5), _income(hours, education))
        yield f"p{number:05d}", age, sex, town, education, hours, income


def _education(age: int, town: str) -> dict[str, float]:
    """Return weights: more of the younger, and of two towns, went to a university; some of the youngest still do."""
    high = (4.0 if age >= 25 else 1.5) * (1.8 if town in RICH_TOWNS else 1.0) * (0.5 if age >= 60 else 1.0)
    return {"school": 3.0 + (age >= 60), "trade": 4.0, "university": high}


def _hours(age: int, sex: str, position: float) -> int:
    """Return the hours of paid work per week: none, some, or about forty."""
    idle = 0.9 if age >= RETIRED else 0.35 if age < 22 else 0.12
    part = 0.35 if sex == "female" else 0.15
    if position < idle:
        return 0
    within = (position - idle) / (1 - idle)
    return 8 + int(24 * within / part) if within < part else 36 + int(14 * ((within - part) / (1 - part)) ** 2)


def _income(hours: int, education: str) -> dict[str, float]:
    """Return weights of income bands by hours and education."""
    lift = {"school": 0.0, "trade": 0.5, "university": 1.2}[education] + hours / 25
    return {"low": 3.0, "middle": 1.0 + 2.0 * lift, "high": 0.3 + 0.8 * lift**2}
