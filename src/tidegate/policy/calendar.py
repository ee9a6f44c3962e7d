"""Dates, points in time and times of day: the code is the number of grid cells since the first.

They are numbers on the grid 0, 1, 2, ..., so that sums, ranks and groups are those of any number. An answer shows a position
as a date or time again (`shown`). A time zone applies to labels alone: codes are counted in UTC, without an engine's rules.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Literal, TypeVar
from zoneinfo import ZoneInfo

from tidegate.errors import PolicyUnreadable
from tidegate.policy.attributes import Missing, Numeric, Outside, changed

DateGrid = Literal["day", "week", "month", "quarter", "year"]
TimeGrid = Literal["minute", "15-minutes", "30-minutes", "hour"]
SECONDS: dict[str, int] = {"minute": 60, "15-minutes": 900, "30-minutes": 1_800, "hour": 3_600}
MONTHS: dict[str, int] = {"month": 1, "quarter": 3, "year": 12}
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
DAY = 86_400
ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d")
ISO_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)?")
ISO_TIME = re.compile(r"\d\d:\d\d(:\d\d(\.\d{1,6})?)?")
T = TypeVar("T")


@dataclass(frozen=True)
class Moment(Numeric):
    """Positions on a grid of time. Subclasses add `first`, `last`, `grid` and the settings."""

    @property
    def step(self) -> int:
        """The seconds of a cell of a grid of times."""
        return SECONDS[self.grid]  # type: ignore[attr-defined]

    @property
    def low(self) -> Fraction:
        return Fraction(0)

    @property
    def high(self) -> Fraction:
        return Fraction(self.size - 1)

    @property
    def width(self) -> Fraction:
        return Fraction(1)

    @property
    def cuts(self) -> tuple[Fraction, ...]:
        return ()

    def label(self, code: int) -> Any:
        return self.shown(Fraction(code))

    def labels(self) -> list[Any]:
        return [self.label(code) for code in range(self.size)]

    def position(self, value: object) -> Fraction | None:
        """Return the position of a date or time, or of one in ISO 8601; None for anything else."""
        with suppress(ValueError, OverflowError):
            return self._position(value)
        return None

    def _position(self, value: object) -> Fraction | None:
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        fields = self.__dict__
        ends = {"from": fields["first"], "to": fields["last"], "grid": fields["grid"]}
        outside = changed(outside=(fields["outside"], "missing"))
        return {"kind": self.kind, **ends, "missing": fields["missing"], **outside}

    def _count(self) -> str:
        number, _, name = str(self.__dict__["grid"]).partition("-")
        unit = f"cells of {number} {name}" if name else number if self.size == 1 else f"{number}s"
        return f"{self.size:,} {unit}"

    def _read_ends(self, first: Callable[[Any], T | None], last: Callable[[Any], T | None], grids: Any) -> tuple[T, T]:
        """Return the ends as `first` and `last` read them; refuse wrong settings."""
        self._check_outside("missing", "clamp")
        fields = self.__dict__
        if fields["grid"] not in grids:
            raise PolicyUnreadable(
                f'The grid of a {self.kind} cannot be "{fields["grid"]}".', f"Write one of {', '.join(grids)}."
            )
        ends: tuple[T | None, T | None] = (None, None)
        with suppress(ValueError, OverflowError):
            ends = first(fields["first"]), last(fields["last"])
        if ends[0] is None or ends[1] is None:
            raise PolicyUnreadable(f"`from` or `to` is not {self.comparable}.", f"Write it as {self.comparable}.")
        if ends[1] < ends[0]:  # type: ignore[operator]
            raise PolicyUnreadable(
                f"A {self.kind} needs from <= to; it has from {fields['first']} and to {fields['last']}."
            )
        return ends[0], ends[1]


@dataclass(frozen=True)
class Date(Moment):
    """Days, weeks (from Monday), months, quarters or years. `first` and `last` are widened to whole cells of the grid."""

    first: dt.date
    last: dt.date
    grid: DateGrid = "day"
    missing: Missing = "dropped"
    outside: Outside = "missing"
    kind: ClassVar[str] = "date"
    comparable: ClassVar[str] = 'a date, such as "2024-01-31"'

    def __post_init__(self) -> None:
        first, last = self._read_ends(_date, _date, ("day", "week", *MONTHS))
        object.__setattr__(self, "first", self.start(self.index(first)))
        object.__setattr__(self, "last", self.end(self.index(last)))

    def index(self, day: dt.date) -> int:
        """Return the number of the grid cell that contains a day, counted from the year 0 or 1."""
        if self.grid in MONTHS:
            return (12 * day.year + day.month - 1) // MONTHS[self.grid]
        return (day.toordinal() - 1) // (7 if self.grid == "week" else 1)

    def start(self, index: int) -> dt.date:
        """Return the first day of a grid cell; the nearest possible one beyond the years 1 to 9999."""
        if self.grid in MONTHS:
            year, month = divmod(index * MONTHS[self.grid], 12)
            return dt.date.min if year < 1 else dt.date.max if year > 9999 else dt.date(year, month + 1, 1)
        ordinal = index * (7 if self.grid == "week" else 1) + 1
        return dt.date.fromordinal(min(max(ordinal, 1), dt.date.max.toordinal()))

    def end(self, index: int) -> dt.date:
        """Return the last day of a grid cell; the nearest possible one beyond the years 1 to 9999."""
        following = self.start(index + 1)
        return following if following in (dt.date.min, dt.date.max) else following - dt.timedelta(1)

    @cached_property
    def origin(self) -> int:
        """The index of the first cell."""
        return self.index(self.first)

    @property
    def size(self) -> int:
        return self.index(self.last) - self.origin + 1

    def label(self, code: int) -> dt.date:
        return self.start(self.origin + code)

    def shown(self, value: float | Fraction) -> Any:
        if not math.isfinite(value):
            return value
        days = math.floor(self._days(value) + Fraction(1, 2))
        return dt.date.fromordinal(min(days, dt.date.max.toordinal()))

    def point(self, value: float) -> dt.datetime:
        """Return the point in time at a position, to the second: a mean of dates falls between two days."""
        days = self._days(value)
        seconds = round(86_400 * (days - math.floor(days)))
        return dt.datetime.combine(dt.date.fromordinal(math.floor(days)), dt.time()) + dt.timedelta(seconds=seconds)

    def _days(self, value: float | Fraction) -> float | Fraction:
        """Return the ordinal of the day at a position, with the part of the day."""
        index = self.origin + math.floor(value)
        start, following = self.start(index).toordinal(), self.start(index + 1).toordinal()
        return start + (following - start) * (value - math.floor(value))

    def _position(self, value: object) -> Fraction | None:
        if isinstance(value, str) and not ISO_DATE.fullmatch(value):
            moment = _moment(value)
        else:
            moment = dt.datetime.combine(day, dt.time()) if (day := _date(value)) is not None else None
        if moment is None or moment.tzinfo is not None:
            return None
        index = self.index(moment.date())
        start = self.start(index)
        length = (self.end(index) - start).days + 1
        seconds = Fraction((moment - dt.datetime.combine(start, dt.time())) // dt.timedelta(microseconds=1), 10**6)
        return index - self.origin + seconds / (length * DAY)

    def describe(self) -> str:
        return f"{self._count()} from {self.first} to {self.last}"


@dataclass(frozen=True)
class Timestamp(Moment):
    """Points in time, in cells of minutes or hours.

    With a `zone`, `first` and `last` are instants (stored in UTC), and labels are the zone's wall-clock time: at the change
    to winter time two cells share a label. Without one, the column has no time zone and everything is wall-clock time.
    """

    first: dt.datetime
    last: dt.datetime
    grid: TimeGrid = "hour"
    zone: str = ""
    missing: Missing = "dropped"
    outside: Outside = "missing"
    kind: ClassVar[str] = "timestamp"
    comparable: ClassVar[str] = 'a point in time, such as "2024-01-31 14:30"'

    def __post_init__(self) -> None:
        first, last = self._read_ends(self._instant, self._last_instant, SECONDS)
        self._check_zone(first, last)
        for name, seconds in (("first", first), ("last", last)):
            cell = EPOCH + dt.timedelta(seconds=math.floor(seconds / self.step) * self.step)
            object.__setattr__(self, name, cell if self.zone else cell.replace(tzinfo=None))

    def _check_zone(self, first: Fraction, last: Fraction) -> None:
        offsets = _offsets(self.zone, math.floor(first) // DAY, math.floor(last) // DAY + 1) if self.zone else ()
        if any(offset % self.step for offset in offsets):
            fitting = [grid for grid, step in SECONDS.items() if not any(offset % step for offset in offsets)]
            raise PolicyUnreadable(
                f'The time in "{self.zone}" differs from UTC by parts of the grid "{self.grid}".',
                f'Write grid = "{fitting[-1]}".' if fitting else "Begin the column later, or leave out the zone.",
            )

    def _instant(self, value: object) -> Fraction | None:
        """Return the seconds since 1970 of a date or time: the first of two instants with the same wall-clock time."""
        moment = _moment(value)
        if moment is None or (moment.tzinfo is not None and not self.zone):
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=_zone(self.zone) if self.zone else dt.UTC)
        wall = moment.replace(tzinfo=dt.UTC) - EPOCH  # as UTC, the first and last hours would be outside of all years
        return Fraction((wall - (moment.utcoffset() or dt.timedelta())) // dt.timedelta(microseconds=1), 10**6)

    def _last_instant(self, value: object) -> Fraction | None:
        whole_day = not isinstance(value, dt.datetime) and (not isinstance(value, str) or ISO_DATE.fullmatch(value))
        if not whole_day:
            return self._instant(value)
        day = _date(value)
        end = self._instant(day + dt.timedelta(1)) if day is not None else None
        return None if end is None else end - Fraction(1, 10**6)

    @cached_property
    def origin(self) -> int:
        """The number of cells from 1970 to the first."""
        return math.floor(self._instant(self.first) / self.step)  # type: ignore[operator]

    @property
    def size(self) -> int:
        return math.floor(self._instant(self.last) / self.step) - self.origin + 1  # type: ignore[operator]

    def labels(self) -> list[Any]:
        zone, start = _zone(self.zone) if self.zone else dt.UTC, self.origin * self.step
        seconds = range(start, start + self.size * self.step, self.step)
        return [dt.datetime.fromtimestamp(second, zone).replace(tzinfo=None, fold=0) for second in seconds]

    def shown(self, value: float | Fraction) -> Any:
        if not math.isfinite(value):
            return value
        seconds = math.floor((self.origin + Fraction(value)) * self.step + Fraction(1, 2))
        try:
            instant = EPOCH + dt.timedelta(seconds=seconds)
            return (instant.astimezone(_zone(self.zone)) if self.zone else instant).replace(tzinfo=None, fold=0)
        except OverflowError:
            return dt.datetime.min if seconds < 0 else dt.datetime.max.replace(microsecond=0)

    def _position(self, value: object) -> Fraction | None:
        seconds = self._instant(value)
        return None if seconds is None else seconds / self.step - self.origin

    def describe(self) -> str:
        first, last = self.label(0), self.label(self.size - 1)
        return f"{self._count()} from {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M}{f' in {self.zone}' if self.zone else ''}"

    def to_dict(self) -> dict[str, Any]:
        zone = _zone(self.zone) if self.zone else None
        ends = (
            {"from": self.first.astimezone(zone), "to": self.last.astimezone(zone), "zone": self.zone} if zone else {}
        )
        return {**super().to_dict(), **ends}


@dataclass(frozen=True)
class Time(Moment):
    """Times of day, in cells of minutes or hours. `first` and `last` are widened to whole cells of the grid."""

    first: dt.time
    last: dt.time
    grid: TimeGrid = "minute"
    missing: Missing = "dropped"
    outside: Outside = "missing"
    kind: ClassVar[str] = "time"
    comparable: ClassVar[str] = 'a time of day, such as "14:30"'

    def __post_init__(self) -> None:
        ends = self._read_ends(_seconds, _seconds, SECONDS)
        for name, seconds in zip(("first", "last"), ends, strict=True):
            object.__setattr__(self, name, _time(math.floor(seconds / self.step) * self.step))

    @cached_property
    def origin(self) -> int:
        """The number of cells from midnight to the first."""
        return int(_seconds(self.first) / self.step)  # type: ignore[operator]

    @property
    def size(self) -> int:
        return int(_seconds(self.last) / self.step) - self.origin + 1  # type: ignore[operator]

    def shown(self, value: float | Fraction) -> Any:
        if not math.isfinite(value):
            return value
        return _time(math.floor((self.origin + Fraction(value)) * self.step + Fraction(1, 2)))

    def _position(self, value: object) -> Fraction | None:
        seconds = _seconds(value)
        return None if seconds is None else seconds / self.step - self.origin

    def describe(self) -> str:
        return f"{self._count()} from {self.first:%H:%M} to {self.last:%H:%M}"


def _date(value: object) -> dt.date | None:
    if isinstance(value, str):
        return dt.date.fromisoformat(value) if ISO_DATE.fullmatch(value) else None
    return value if isinstance(value, dt.date) and not isinstance(value, dt.datetime) else None


def _moment(value: object) -> dt.datetime | None:
    if isinstance(value, str):
        return dt.datetime.fromisoformat(value) if (ISO_MOMENT.fullmatch(value) or ISO_DATE.fullmatch(value)) else None
    if isinstance(value, dt.datetime):
        return value
    return dt.datetime.combine(value, dt.time()) if isinstance(value, dt.date) else None


def _seconds(value: object) -> Fraction | None:
    """Return the seconds from midnight to a time of day."""
    if isinstance(value, str):
        value = dt.time.fromisoformat(value) if ISO_TIME.fullmatch(value) else None
    if not isinstance(value, dt.time) or value.tzinfo is not None:
        return None
    return Fraction(value.microsecond, 10**6) + 3_600 * value.hour + 60 * value.minute + value.second


def _time(seconds: int) -> dt.time:
    inside = min(max(seconds, 0), DAY - 1)
    return dt.time(inside // 3_600, inside // 60 % 60, inside % 60)


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo:
    with suppress(KeyError, ValueError, OSError):
        return ZoneInfo(name)
    raise PolicyUnreadable(f'Unknown time zone: "{name}".', 'Write a name such as zone = "Europe/Paris".')


@lru_cache(maxsize=64)
def _offsets(name: str, first: int, last: int) -> frozenset[int]:
    """Return the zone's differences from UTC in seconds, on every day of a range (days since 1970)."""
    zone, day = _zone(name), dt.timedelta(1)
    start = EPOCH + first * day
    offsets = ((start + n * day).astimezone(zone).utcoffset() for n in range(last - first + 1))
    return frozenset(int(offset.total_seconds()) for offset in offsets if offset is not None)
