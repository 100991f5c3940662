"""A temporary file beside the one that is to be written: created under a name of its own, filled, and removed.

Its name is random, so that no other writer has it. A request whose answer was lost is settled by a look. None is sent
again that could undo a later one if it came late: instead of a second create there is another name.
"""

import hashlib
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from azguard.accounts.target import Target
from azguard.address import Address, Kind
from azguard.conditions.etags import quote
from azguard.conditions.resolve import Conditions
from azguard.errors import AzguardError, NotFound, OutcomeUnknown, Unavailable
from azguard.files import writes
from azguard.requests import commits
from azguard.requests.calls import send_once, write_timeouts
from azguard.requests.deadline import Deadline
from azguard.requests.settle import Finding, WriteRequest, send_until_settled
from azguard.requests.sources import read_up_to
from azguard.requests.verdicts import Verdict

#: The most that one request writes.
PIECE_BYTES = 4 * 1024 * 1024
#: How the names of temporary files begin; a crash can leave one behind.
PREFIX = ".azguard-"
# A stream of unknown length gets a file that is larger by this factor whenever it is full.
_GROWTH = 2
# Bounded: a file that stays behind is garbage, and harms nothing.
_REMOVE_SECONDS = 3.0


@dataclass
class TemporaryFile:
    """A temporary file, and what was written to it."""

    target: Target
    #: What it is created with, besides its size: see the SDK's ``create_file``.
    settings: Mapping[str, Any]
    patience: Callable[[], Deadline]
    #: Its size in the service.
    size: int = 0
    #: How many bytes were written.
    length: int = 0
    etag: str | None = None
    #: The lease that it is to have under its new name, once it has it.
    lease_id: str | None = None
    sha256: Any = field(default_factory=hashlib.sha256)
    md5: Any = field(default_factory=lambda: hashlib.md5(usedforsecurity=False))

    @property
    def client(self) -> Any:
        """Return the SDK's client of it."""
        return self.target.account.file(self.target.address)

    def fill(self, first: bytes, source: BinaryIO, progress: Callable[[int], None]) -> None:
        """Write all of a source, of which ``first`` was read already, piece by piece.

        Raises:
            Unavailable: it cannot be filled; nothing but the temporary file was written.
        """
        piece = first
        while piece:
            if self.length + len(piece) > self.size:
                self._resize(max(self.size * _GROWTH, self.length + len(piece)))
            self._write(piece)
            self.sha256.update(piece)
            self.md5.update(piece)
            self.length += len(piece)
            progress(self.length)
            piece = read_up_to(source, PIECE_BYTES)
        if self.size != self.length:
            self._resize(self.length)

    def check(self) -> None:
        """Make sure that nothing else was written to it, such as by a request that came late.

        Raises:
            Unavailable: something was.
        """
        found = writes.fetch(self.target, None, self.patience())
        if (quote(found.etag), found.size) != (self.etag, self.length):
            raise self._build_failed("it is not what was written to it")

    def remove(self) -> None:
        """Delete it, if that can be done; raise no error."""
        patience = self.patience().restart(seconds=_REMOVE_SECONDS)
        headers = Conditions(lease_id=self.lease_id).request_headers
        send_once(lambda: self.client.delete_file(headers=headers, **write_timeouts(patience, 1.0)))

    def _write(self, piece: bytes) -> None:
        offset = self.length
        patience = self.patience()
        request = WriteRequest[Any](
            target=self.target,
            send=lambda: self.client.upload_range(piece, offset, len(piece), **write_timeouts(patience)),
            look=lambda _: Finding(Verdict.UNKNOWN),
            # The same bytes at the same place.
            is_idempotent=True,
        )
        self._settle(request, patience)

    def _resize(self, size: int) -> None:
        patience = self.patience()
        request = WriteRequest[Any](
            target=self.target,
            send=lambda: self.client.resize_file(size, **write_timeouts(patience)),
            look=lambda left: self._find_size(size, left),
            # One that came late would undo a later one.
            resend=False,
        )
        self._settle(request, patience)
        self.size = size

    def _find_size(self, size: int, patience: Deadline) -> Finding[Any]:
        found = writes.fetch(self.target, None, patience)
        if found.size != size:
            return Finding(Verdict.UNKNOWN)
        return Finding(Verdict.COMMITTED, {"etag": found.etag})

    def _settle(self, request: WriteRequest[Any], patience: Deadline) -> None:
        try:
            with commits.suppress():
                answer = send_until_settled(request, patience).answer
        except (OutcomeUnknown, NotFound) as error:
            raise self._build_failed(error.message) from error
        self.etag = quote(answer["etag"])

    def _build_failed(self, why: str) -> Unavailable:
        return Unavailable(
            f"the temporary file {self.target} could not be written",
            str(self.target.address),
            detail=(why,),
            reason="temporary_file_failed",
        )


def create(target: Target, size: int, settings: Mapping[str, Any], patience: Callable[[], Deadline]) -> TemporaryFile:
    """Create a temporary file in the directory of a file.

    Raises:
        NotFound: there is no such directory or share.
        Unavailable: the service does not answer.
    """
    deadline = patience()
    while True:
        made = TemporaryFile(_choose_name(target), settings, patience, size)
        request = WriteRequest[Any](
            target=made.target,
            send=lambda made=made: made.client.create_file(size, **settings, **write_timeouts(deadline)),  # type: ignore[misc]  # bound here
            look=lambda left, made=made: _find_created(made, left),  # type: ignore[misc]  # bound here
            # One that came late would empty the file again.
            resend=False,
        )
        try:
            with commits.suppress():
                made.etag = quote(send_until_settled(request, deadline).answer["etag"])
        except OutcomeUnknown as error:
            made.remove()
            if deadline.passed:
                raise made._build_failed(error.message) from error  # noqa: SLF001  # its own module
        except BaseException:
            made.remove()
            raise
        else:
            return made


def _find_created(made: TemporaryFile, patience: Deadline) -> Finding[Any]:
    try:
        found = writes.fetch(made.target, None, patience)
    except AzguardError:
        return Finding(Verdict.UNKNOWN)
    return Finding(Verdict.COMMITTED, {"etag": found.etag})


def _choose_name(target: Target) -> Target:
    share, path = target.address.parts
    folder, slash, _ = path.rpartition("/")
    name = f"{folder}{slash}{PREFIX}{secrets.token_hex(8)}.tmp"
    return Target(target.account, Address(Kind.FILE, (share, name)))
