"""What the tests of the ETag cache share."""

from datetime import UTC, datetime, timedelta

from azguard.cache.records import Entry, Key

ACCOUNT = "http://127.0.0.1:10000/devstoreaccount1"
CONFIG = Key(ACCOUNT, "blob:site/config.json")
OTHER = Key(ACCOUNT, "blob:site/other.json")
NOON = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.moment = NOON

    def __call__(self) -> datetime:
        return self.moment

    def after(self, **spans: float) -> None:
        self.moment += timedelta(**spans)


def never(text: str) -> None:
    raise AssertionError(text)


def etag_of(entry: Entry | None) -> str | None:
    return entry.etag if entry is not None else None
