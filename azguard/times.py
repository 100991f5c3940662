"""Durations, sizes and times as people write them."""

import re
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime

from azguard.errors import UsageError

_UNIT_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_SPOKEN = ("d", "h", "m", "s")
_UNIT_BYTES = {
    "": 1, "b": 1,
    "kb": 1000, "mb": 1000**2, "gb": 1000**3, "tb": 1000**4,
    "kib": 1024, "mib": 1024**2, "gib": 1024**3, "tib": 1024**4,
}  # fmt: skip


def parse_duration(text: str, option: str = "duration") -> float:
    """Return seconds for ``90s``, ``10m``, ``1h30m``, ``250ms`` or bare seconds.

    Raises:
        UsageError: the text is empty, negative or not a duration.
    """
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|[smhd])", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise UsageError(f"{option}: {text!r} is not a duration", hint="write 90s, 10m, 1h30m or bare seconds")
    return sum(float(number) * _UNIT_SECONDS[unit] for number, unit in parts)


def parse_size(text: str, option: str = "size") -> int:
    """Return bytes for ``4MiB``, ``1GB`` or bare bytes.

    Raises:
        UsageError: the text is not a size.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text.strip().lower())
    if match is None or match[2] not in _UNIT_BYTES:
        raise UsageError(f"{option}: {text!r} is not a size", hint="write 4MiB, 1GB or bare bytes")
    return int(float(match[1]) * _UNIT_BYTES[match[2]])


def parse_http_date(text: str, option: str) -> str:
    """Return the HTTP date for an ISO 8601 time (UTC unless it says otherwise) or an HTTP date.

    Raises:
        UsageError: the text is neither.
    """
    moment: datetime | None = None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        try:
            moment = parsedate_to_datetime(text)
        except ValueError:
            raise UsageError(
                f"{option}: {text!r} is not a time",
                hint="write 2026-11-21T10:00:00Z or Sat, 21 Nov 2026 10:00:00 GMT",
            ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return http_date(moment)


def span(seconds: float) -> str:
    """Return a duration as people write it, such as ``1h30m``, in its two largest units."""
    left = max(0, round(seconds))
    largest = next((index for index, unit in enumerate(_SPOKEN) if left >= _UNIT_SECONDS[unit]), len(_SPOKEN) - 1)
    text = ""
    for unit in _SPOKEN[largest : largest + 2]:  # what is smaller says nothing beside the largest
        count, left = divmod(left, int(_UNIT_SECONDS[unit]))
        text += f"{count}{unit}" if count else ""
    return text or "0s"


def http_date(moment: datetime) -> str:
    """Return a moment as HTTP headers have it, in whole seconds."""
    return format_datetime(moment.astimezone(UTC), usegmt=True)


def iso(moment: datetime | None) -> str | None:
    """Return ISO 8601 in UTC, to the second or finer, or None."""
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
