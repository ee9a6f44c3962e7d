"""Exact numbers as people write them: 0.05 is one twentieth, "1/3" is one third."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

from tidegate.errors import InvalidNumber, Unsupported

Number: TypeAlias = int | float | str | Decimal | Fraction
LARGEST = 4_000  # exponent in a written number
LONGEST = 14_000  # bits of a numerator or denominator: Python does not print integers of more than 4,300 digits
EXAMPLES = 'Write it as 12, 0.05, 1e6 or "1/3".'


def exact(value: Number) -> Fraction:
    """Return the fraction that the user wrote. A float stands for its shortest decimal form."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal | Fraction):
        raise InvalidNumber(f"A number is required, not {type(value).__name__}.", EXAMPLES)
    number = None
    try:
        written = repr(value) if isinstance(value, float) else value
        if not isinstance(written, str | Decimal) or _magnitude(written) <= LARGEST:
            number = Fraction(written)
    except (ValueError, ZeroDivisionError, OverflowError):
        pass
    if number is None or max(number.numerator.bit_length(), number.denominator.bit_length()) > LONGEST:
        raise InvalidNumber(f"A finite number is required, with an exponent of at most {LARGEST:,}.", EXAMPLES)
    return number


def positive(value: Number, name: str) -> Fraction:
    """Return the value of the parameter `name` as an exact fraction, or raise Unsupported unless it is above 0."""
    try:
        number = exact(value)
    except (TypeError, ValueError):
        number = Fraction(0)
    if number <= 0:
        raise Unsupported(
            f"{name} must be a number above 0.",
            "Write it as a decimal, such as 0.05. A preview shows its effect at no cost.",
        )
    return number


def _magnitude(value: str | Decimal) -> int:
    """Return the size of the written exponent: "1e999999999" would fill the memory."""
    exponent = str(value).lower().partition("e")[2]
    return abs(int(exponent)) if exponent else 0


def plain(value: Fraction) -> int | Decimal | str:
    """Return the shortest exact form for a file: an integer, a decimal, or ``"1/3"``."""
    if value.denominator == 1:
        return value.numerator
    rest, places = value.denominator, 0
    for prime in (2, 5):
        power = 0
        while rest % prime == 0:
            rest, power = rest // prime, power + 1
        places = max(places, power)
    if rest != 1:
        return f"{value.numerator}/{value.denominator}"
    digits = value.numerator * 10**places // value.denominator
    return Decimal(digits).scaleb(-places) if places <= 28 and abs(digits) < 10**28 else _long(digits, places)


def _long(digits: int, places: int) -> Decimal:
    sign, text = ("-" if digits < 0 else ""), str(abs(digits)).rjust(places + 1, "0")
    return Decimal(f"{sign}{text[:-places]}.{text[-places:]}")


def say(value: Fraction | float | Decimal, digits: int = 3) -> str:
    """Return a number as text for a sentence: ``0.0625``, ``2.39``, ``48,842``."""
    try:
        number = float(value)
    except OverflowError:
        return f"about 10^{_tens(int(value)):,}"
    if number == int(number) and abs(number) < 1e15:
        return f"{int(number):,}"
    if 1e-4 <= abs(number) < 1e6:
        places = max(0, digits - 1 - _exponent(number))
        return f"{number:,.{places}f}".rstrip("0").rstrip(".") if places else f"{number:,.0f}"
    return f"{number:.{digits}g}"


def _tens(whole: int) -> int:
    """Return the largest power of ten not above a whole number, which can have too many digits to print."""
    guess = math.floor(math.log10(whole))
    return guess if 10**guess <= whole else guess - 1


def _exponent(number: float) -> int:
    return int(f"{abs(number):e}".split("e")[1])


FINE = 2**80


def root_below(value: Fraction) -> Fraction:
    """Return a fraction whose square is just not above a value of at least 0."""
    return Fraction(math.isqrt(math.floor(value * FINE**2)), FINE)
