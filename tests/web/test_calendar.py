"""Dates and times have the same codes and texts in the browser as in Python, for every cell of ten years."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Error
from support.form_service import Fault, Site

from tidegate.collect.encoding import code_of, words_of
from tidegate.errors import TidegateError
from tidegate.policy import Date, Moment, Question, Time, Timestamp

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FIRST, LAST = dt.date(2015, 1, 1), dt.date(2024, 12, 31)
DAYS = [FIRST + dt.timedelta(n) for n in range(-40, (LAST - FIRST).days + 41)]


@contextmanager
def open_device(browser: Browser, site: Site, zone: str) -> Iterator[Page]:
    """Open a page on a device in a time zone."""
    context = browser.new_context(timezone_id=zone)
    page = context.new_page()
    page.goto(f"{site.address}/blank")
    yield page
    context.close()


@pytest.fixture(scope="module")
def tab(browser: Browser, site: Site) -> Iterator[Page]:
    """A device 14 hours away from UTC: its own time zone must not matter."""
    with open_device(browser, site, "Pacific/Kiritimati") as page:
        yield page


def in_browser(tab: Page, universe: Moment, values: list[str], first: int, last: int, base: str = "/client") -> Any:
    question = Question("it", universe, "randomized-response", epsilon=1)
    program = "async (args) => (await import('/tests/draws.js')).codes(...args)"
    return tab.evaluate(program, [base, question.public_dict(), values, first, last])


def in_python(universe: Moment, values: list[str], first: int, last: int) -> dict[str, Any]:
    question = Question("it", universe, "randomized-response", epsilon=1)
    words = [words_of(question, code) for code in range(first, last + 1)]
    return {"codes": [coded(question, value) for value in values], "words": words, "says": universe.describe()}


def coded(question: Question, value: str) -> int:
    try:
        return code_of(question, value)
    except TidegateError:
        return -1


@pytest.mark.one_in(4)
@pytest.mark.parametrize("grid", ["day", "week", "month", "quarter", "year"])
def test_every_day_of_ten_years_has_the_same_code(grid: Any, tab: Page, browser: Browser, site: Site) -> None:
    universe = Date(FIRST, LAST, grid)
    values = [day.isoformat() for day in DAYS]
    expected = in_python(universe, values, -9, universe.size + 9)
    assert in_browser(tab, universe, values, -9, universe.size + 9) == expected
    with open_device(browser, site, "America/New_York") as other:
        assert in_browser(other, universe, values, -9, universe.size + 9) == expected
    assert {code for code in expected["codes"] if code >= 0} == set(range(universe.size))  # 29 February and week 53 too


HALVES = [(dt.date(2015, 1, 1), dt.date(2019, 12, 31)), (dt.date(2020, 1, 1), dt.date(2024, 12, 31))]
ZONES: list[Any] = [
    ("Europe/Paris", "hour"),
    ("America/New_York", "hour"),
    ("", "hour"),
    ("Asia/Kolkata", "30-minutes"),
]


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("zone", "grid"), ZONES)
def test_both_clock_changes_of_ten_years_have_the_same_codes(zone: str, grid: Any, tab: Page) -> None:
    """Wall-clock times by the half hour on days with a change, and instants in UTC."""
    for first, last in HALVES:
        universe = Timestamp(first, min(last, first + dt.timedelta(1_000)) if grid != "hour" else last, grid, zone)
        values = [moment.isoformat(" ", "minutes") for moment in wall_clock(zone)]
        values += [f"{moment.isoformat()}{suffix}" for moment in wall_clock("") for suffix in ("Z", "+05:30")]
        expected = in_python(universe, values, -9, 99)
        assert in_browser(tab, universe, values, -9, 99) == expected


@pytest.mark.long  # the changes of the clock, above, are in every run
@pytest.mark.parametrize(("first", "last"), HALVES)
def test_every_hour_of_ten_years_has_the_same_code(first: dt.date, last: dt.date, tab: Page) -> None:
    universe = Timestamp(first, last, "hour", "Europe/Paris")
    start = dt.datetime.combine(first, dt.time()) - dt.timedelta(hours=30)
    values = [(start + dt.timedelta(hours=n)).isoformat() for n in range(universe.size + 60)]
    expected = in_python(universe, values, 0, universe.size - 1)
    assert in_browser(tab, universe, values, 0, universe.size - 1) == expected
    change = dt.date(last.year, 10, 27)  # a Sunday in 2019 and 2024
    assert expected["words"].count(f"{change} 02:00 to {change} 02:59") == 2
    assert len(set(expected["words"])) == universe.size - 5
    assert len(set(expected["codes"]) - {-1}) == universe.size - 5  # the second hour has no wall-clock time of its own


def wall_clock(zone: str) -> Iterator[dt.datetime]:
    """Yield noon of each day, and all half hours of days on which the zone's difference from UTC changes."""
    clock = ZoneInfo(zone) if zone else dt.UTC
    for day in DAYS:
        start, end = (dt.datetime.combine(day + dt.timedelta(n), dt.time(), clock) for n in (0, 1))
        changes = start.utcoffset() != end.utcoffset()
        hours = range(48) if changes else [24]
        yield from (dt.datetime.combine(day, dt.time()) + dt.timedelta(minutes=30 * hour) for hour in hours)


@pytest.mark.long  # test_every_day_of_ten_years_has_the_same_code compares the same code
def test_every_minute_of_a_day_has_the_same_code(tab: Page) -> None:
    values = [dt.time(n // 60, n % 60).isoformat(form) for n in range(1440) for form in ("auto", "minutes")]
    values += ["23:59:59.999999", "24:00", "12:60", "7:00", "12", ""]
    for grid in ("minute", "15-minutes", "30-minutes", "hour"):
        universe = Time(dt.time(8), dt.time(20), grid)  # type: ignore[arg-type]
        assert in_browser(tab, universe, values, -1000, 2000) == in_python(universe, values, -1000, 2000)


FAULTS = {
    "days of the device": Fault("calendar.js", "Date.UTC(year + 400, month, day) / 1000", "new Date(year + 400, month, day) / 1000"),
    "weeks from Sunday": Fault("calendar.js", "floor(days - FIRST_DAY, length)", "floor(days - FIRST_DAY + 1, length)"),
    "the second of two hours": Fault("calendar.js", "=== before ? before : after", "=== before ? after : before"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_agreement_detects_planted_faults(name: str, tab: Page, site: Site) -> None:
    planted = name.replace(" ", "-")
    site.faults[planted] = FAULTS[name]
    moment = Timestamp(dt.date(2024, 10, 26), dt.date(2024, 10, 28), "hour", "Europe/Paris")
    clock = [(dt.datetime(2024, 10, 27) + dt.timedelta(hours=n)).isoformat() for n in range(24)]
    cases = [(Date(FIRST, LAST, "week"), [day.isoformat() for day in DAYS]), (moment, clock)]
    assert not all(agrees(tab, *case, f"/fault/{planted}") for case in cases)


def agrees(tab: Page, universe: Moment, values: list[str], base: str) -> bool:
    with suppress(Error):  # bounds that a fault refuses
        return in_browser(tab, universe, values, 0, 9, base) == in_python(universe, values, 0, 9)  # type: ignore[no-any-return]
    return False


def test_moment_between_two_cells_is_in_the_earlier(tab: Page) -> None:
    universe = Timestamp(dt.date(2024, 1, 1), dt.date(2024, 1, 2), "hour")
    values = ["2024-01-01T05:59:59.999999", "2024-01-02T23:59:59.999999", "2023-12-31T23:59:59.999999", "2024-01-03"]
    expected = [5, 47, -1, -1]
    assert in_python(universe, values, 0, 0)["codes"] == expected
    assert in_browser(tab, universe, values, 0, 0)["codes"] == expected
    assert universe.position(values[0]) < Fraction(6)  # type: ignore[operator]
