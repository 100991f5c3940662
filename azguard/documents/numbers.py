"""JSON numbers that remember how they were written, exact sums of them, and values that JSON does not know."""

import re
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, Inexact, InvalidOperation
from typing import Self

# Python refuses to convert longer integers (CVE-2020-10735); they are kept as LiteralNumber, which has no limit.
_LONGEST_INT = 4000
# 1e999999 + 1 would have a million digits; past this many a sum is refused rather than rounded.
_EXACT = Context(prec=20_000, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[Inexact])

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")


@dataclass(frozen=True)
class UnreadValue:
    """A scalar of YAML that JSON has no value for, such as a date, ``0x1F`` or ``yes``; only its spelling is known."""

    text: str


class LiteralNumber(Decimal):
    """A number that remembers how it was written: 1.0, 1.10, 1e3 and -0 stay as they are."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Self:
        """Return the number of a JSON number's text.

        Raises:
            ValueError: the exponent is beyond what can be represented.
        """
        try:
            number = super().__new__(cls, text)
        except InvalidOperation:
            raise ValueError(f"the number {text[:40]} is out of range") from None
        number.text = text
        return number

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self


def parse_number(text: str) -> int | LiteralNumber:
    """Return the value of a JSON number's text: an int where that keeps the spelling.

    Raises:
        ValueError: the exponent is beyond what can be represented.
    """
    if re.fullmatch(r"-?(0|[1-9][0-9]*)", text) and text != "-0" and len(text) < _LONGEST_INT:
        return int(text)
    return LiteralNumber(text)


def read(text: str) -> int | LiteralNumber | None:
    """Return the number that a text holds and nothing else, or None."""
    if not _NUMBER.fullmatch(text):
        return None
    try:
        return parse_number(text)
    except ValueError:
        return None


def add_exactly(first: int | LiteralNumber, second: int | LiteralNumber) -> int | LiteralNumber | None:
    """Return the exact sum, or None if it is infinite to most readers or has too many digits to write."""
    if isinstance(first, int) and isinstance(second, int):
        return first + second
    try:
        total = LiteralNumber(str(_EXACT.add(Decimal(first), Decimal(second))))
    except Inexact:
        return None
    return None if is_infinite(total) else total


def is_infinite(number: int | LiteralNumber) -> bool:
    """Return whether readers that use double precision, which is most of them, take it for infinity.

    A whole number written out in full is not: such readers as have integers have them at this size or refuse.
    """
    whole = isinstance(number, int) or re.fullmatch(r"-?[0-9]+", number.text) is not None
    return not whole and float(number) in (float("inf"), float("-inf"))
