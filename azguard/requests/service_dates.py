"""The service's clock, as its answers tell it: the only clock that all users of a lease share."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any


class Answers:
    """Hears the answers to the requests of one call of the SDK: pass ``hear`` as its ``raw_response_hook``."""

    def __init__(self) -> None:
        #: When the last answer was given, by the service's clock, in whole seconds; None if it did not say.
        self.date: datetime | None = None

    def hear(self, response: Any) -> None:
        """Note the date of one answer."""
        self.date = parse(response.http_response.headers.get("Date"))


def parse(text: str | None) -> datetime | None:
    """Return the moment that a Date header names, or None if it is missing or malformed."""
    try:
        found = parsedate_to_datetime(text or "")
    except (ValueError, OverflowError):
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
