"""One version of a file, read in ranges whose ETags are compared: what is delivered is never a mixture of two.

The service evaluates no conditions on a read. Each answer tells the ETag of the version that its range is of. A program
that writes over SMB gives the file another ETag too; when, is up to the service.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from azguard.accounts.account import Target
from azguard.errors import Changed
from azguard.files.entries import drop_own
from azguard.guards.resolve import Conditions
from azguard.guards.versions import quote_etag
from azguard.requests import delivery
from azguard.requests.calls import read
from azguard.requests.deadline import Deadline
from azguard.requests.delivery import WHOLE, Span
from azguard.requests.results import Shown
from azguard.requests.service_errors import build_wrong_range
from azguard.resources.downloads import Download, Got
from azguard.wire.answers import Answer
from azguard.wire.call import call
from azguard.wire.client import Limits
from azguard.wire.operations.shares import FILE_GET


@dataclass(frozen=True, kw_only=True)
class FileGot(Got):
    """What a get of a file wrote to its output."""

    FIRST: ClassVar = (*Shown.FIRST, "content_length", "content_type")


class FileDownload(Download):
    """One version of a file, being read; the constructor reads its first range."""

    def __init__(
        self, target: Target, lease_id: str | None, patience: Callable[[], Deadline], span: Span = WHOLE
    ) -> None:
        super().__init__(target, Conditions(lease_id=lease_id), patience, span)

    def result(self, file: Path | None, content_hash: str) -> FileGot:
        return FileGot(**self.describe(file, content_hash), metadata=drop_own(self.properties.metadata))

    def ask(self, offset: int, length: int, etag: str | None) -> Answer:
        asked = f"bytes={offset}-{offset + length - 1}"

        def ask(timeouts: Limits) -> Answer:
            headers = self.conditions.request_headers
            found = call(FILE_GET, self.target, timeouts, headers=headers, range=asked)
            self._check(found, offset, length, etag)
            return found

        return read(ask, self.target, self.patience())

    def _check(self, found: Answer, offset: int, most: int, etag: str | None) -> None:
        """Refuse an answer that is of another version, or another part than the one asked for."""
        if etag is not None and quote_etag(found.etag or "") != etag:
            raise Changed(
                f"{self.target} was overwritten while it was read",
                address=str(self.target.address),
                expected_etag=etag,
                current_etag=quote_etag(found.etag or ""),
                reason="overwritten_while_read",
            )
        if not delivery.is_answer_to(offset, most, found):
            told = found.headers.get("Content-Range", "no Content-Range")
            raise build_wrong_range(
                self.target,
                f"asked for {most} bytes at {offset}, answered {found.status} with {told}, {len(found.content)} bytes",
            )
