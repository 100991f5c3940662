"""Durations, times, sizes and numbers of things as people write them; and the clock that lease terms are counted on."""

import re
import time
from datetime import UTC, datetime

from azguard.errors import UsageError

_UNIT_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_SPOKEN = ("d", "h", "m", "s")
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_HTTP_DATE = rf"(?:{'|'.join(_DAYS)}), (\d\d) ({'|'.join(_MONTHS)}) (\d{{4}}) (\d\d):(\d\d):(\d\d) GMT"
# The others have an s.
_PLURALS = {"entity": "entities", "is": "are", "was": "were", "stays": "stay", "waits": "wait"}
# No clock, and no wait, goes much beyond.
_MOST_YEARS = 100
_MOST_SECONDS = _MOST_YEARS * 365 * 86400
_SIZE = r"(?i)([0-9]{1,19}) ?([KMGT]i?B|[KMGT]|B)?"


def parse_duration(text: str, name: str = "duration") -> float:
    """Return seconds for ``90s``, ``10m``, ``1h30m``, ``250ms`` or bare seconds; ``name`` is what the caller calls it.

    Raises:
        UsageError: the text is empty, negative, not a duration, or more than a hundred years.
    """
    found = _parse_parts(text, name)
    if found > _MOST_SECONDS:
        raise UsageError(f"{name}: {text!r} is more than {_MOST_YEARS} years", reason="duration_malformed")
    return found


def _parse_parts(text: str, name: str) -> float:
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|[smhd])", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise UsageError(f"{name}: {text!r} is not a duration", reason="duration_malformed")
    return sum(float(number) * _UNIT_SECONDS[unit] for number, unit in parts)


def parse_http_date(text: str, argument: str) -> str:
    """Return the HTTP date for an ISO 8601 time (UTC unless it says otherwise) or an HTTP date.

    Raises:
        UsageError: the text is neither.
    """
    try:
        return http_date(_parse_moment(text))
    except (OverflowError, ValueError):  # An offset can lead out of the years that there are.
        raise UsageError(f"{text!r} is not a time", argument=argument, reason="time_malformed") from None


def _parse_moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = read_http_date(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def find_http_date(text: str | None) -> datetime | None:
    """Return the moment that a header names, such as Date, or None if it is missing or malformed."""
    try:
        return read_http_date(text or "")
    except (ValueError, OverflowError):
        return None


def read_http_date(text: str) -> datetime:
    """Return the moment of a date as HTTP headers have it, in UTC unless it says otherwise.

    Raises:
        ValueError, OverflowError: it is none.
    """
    found = re.fullmatch(_HTTP_DATE, text)
    if found is None:
        # Its import costs 5 ms, and all servers write that one form.
        from email.utils import parsedate_to_datetime

        moment = parsedate_to_datetime(text)
        return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    day, month, *others = found.groups()
    year, hour, minute, second = map(int, others)
    return datetime(year, _MONTHS.index(month) + 1, int(day), hour, minute, second, tzinfo=UTC)


def find_moment(text: str | None) -> datetime | None:
    """Return the moment of an ISO 8601 text, in UTC unless it says otherwise; None if it names none."""
    try:
        found = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def span(seconds: float) -> str:
    """Return a duration as people write it, such as ``1h30m``, in its two largest units."""
    left = max(0, round(seconds))
    largest = next((index for index, unit in enumerate(_SPOKEN) if left >= _UNIT_SECONDS[unit]), len(_SPOKEN) - 1)
    text = ""
    for unit in _SPOKEN[largest : largest + 2]:  # what is smaller says nothing beside the largest
        count, left = divmod(left, int(_UNIT_SECONDS[unit]))
        text += f"{count}{unit}" if count else ""
    return text or "0s"


def say_count(number: int, noun: str, verb: str = "") -> str:
    """Return a number of things, such as ``1,024 bytes``; ``verb``, such as ``is``, follows in the same number."""
    words = [noun, verb] if verb else [noun]
    if number != 1:
        words = [_PLURALS.get(word, f"{word}s") for word in words]
    return f"{number:,} {' '.join(words)}"


def http_date(moment: datetime) -> str:
    """Return a moment as HTTP headers have it, in whole seconds."""
    at = moment.astimezone(UTC)
    return f"{_DAYS[at.weekday()]}, {at.day:02} {_MONTHS[at.month - 1]} {at.year:04} {at:%H:%M:%S} GMT"


def iso(moment: datetime | None) -> str | None:
    """Return ISO 8601 in UTC, to the second or finer, or None."""
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def parse_size(text: str) -> int | None:
    """Return the bytes of a size, or None if the text is none."""
    found = re.fullmatch(_SIZE, text.strip())
    if found is None:
        return None
    unit = (found[2] or "B").upper()
    base = 1000 if unit.endswith("B") and "I" not in unit else 1024
    return int(found[1]) * int(base ** " KMGT".index(unit[0].replace("B", " ")))


def read_boot_clock() -> float:
    """Return seconds on a clock that cannot be set and that also runs while the machine is suspended."""
    # macOS has no CLOCK_BOOTTIME; its CLOCK_MONOTONIC counts sleep, unlike that of Linux.
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
