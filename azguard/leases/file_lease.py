"""The SDK's client of a lease on a share or a file, with the methods of that for blobs."""

from datetime import datetime
from typing import Any


class FileLease:
    """A lease on a share or a file."""

    def __init__(self, client: Any, lease_id: str | None) -> None:
        from azure.storage.fileshare import ShareLeaseClient

        self._lease = ShareLeaseClient(client, lease_id)

    @property
    def etag(self) -> str | None:
        """Return the ETag that the last answer told."""
        return self._lease.etag

    @property
    def last_modified(self) -> datetime | None:
        """Return the time that the last answer told."""
        return self._lease.last_modified

    def acquire(self, seconds: int, **settings: Any) -> None:
        """Acquire it for so many seconds; -1 is for ever."""
        self._lease.acquire(lease_duration=seconds, **settings)

    def renew(self, **settings: Any) -> None:
        """Renew it."""
        self._lease.renew(**settings)

    def change(self, proposed: str, **settings: Any) -> None:
        """Give it another id."""
        self._lease.change(proposed, **settings)

    def release(self, **settings: Any) -> None:
        """Release it."""
        self._lease.release(**settings)

    def break_lease(self, period: int | None, **settings: Any) -> int:
        """Break it; return how many seconds it still lasts."""
        # The SDK refuses a period for a file, whose lease ends at once, and takes None for none.
        return self._lease.break_lease(lease_break_period=period, **settings)
