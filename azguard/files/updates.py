"""The adapters of safe-update: the content of a file, and the metadata of a share or a file.

The service compares no version of these. azguard acquires a lease as every guarded write does (``guarding``), sees that
the version that was read is still there, and writes. A request that comes late is refused, because its lease has ended,
and no lease id is used again.

Content is written whole into a temporary file, whose rename replaces the file: a reader sees the old content or the
new, never a mixture. Metadata are one request.
"""

import hashlib
from abc import ABC
from collections.abc import Mapping
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from io import BytesIO
from typing import Any, ClassVar

from azguard.accounts.account import Target
from azguard.documents import metadata as rules
from azguard.documents.metadata import as_json, from_json
from azguard.errors import AzguardError, Changed, NotFound, TransformFailed, UsageError
from azguard.files import guarding, temporary
from azguard.files.content import FileDownload
from azguard.files.entries import SmbProperties, choose_smb, drop_own
from azguard.files.guarding import Guarding, Held
from azguard.files.replacing import give_lease
from azguard.files.temporary import PIECE_BYTES, TemporaryFile
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.leases import state as lease_state
from azguard.leases.guard import Term
from azguard.leases.owners import OWNER
from azguard.requests import commits
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage, with_lineage
from azguard.requests.service_codes import service_code
from azguard.resources import parts, properties
from azguard.resources.properties import ContentHeaders, encode_md5
from azguard.updates.compared import RefusedHere, SingleWrite, fence_by_release
from azguard.updates.resource import Commit, CommittedVersion, CurrentVersion, FencingWrite, Leasable, UpdatableResource

# Where a file or a share is to be, there is nothing that could hold it.
_NOWHERE = ("ShareNotFound", "ParentNotFound")


@dataclass
class LeasedUpdate(UpdatableResource, ABC):
    """What is read, and written under a lease."""

    target: Target
    guarding: Guarding
    #: The lease that the caller holds.
    lease_id: str | None = None
    takes_proposed_id: ClassVar[bool] = False
    #: The version that is there under our own lease. Its id is another one than the loop proposes.
    _held: Held | None = field(default=None, init=False)
    #: Ends our own lease.
    _until: ExitStack = field(default_factory=ExitStack, init=False)
    #: What the version was before the record of our lease was written; None if a write of ours has replaced it.
    _before: tuple[str, Lineage] | None = field(default=None, init=False)
    #: Of versions that differ from the one before in the record of our lease alone: what they were before.
    _noted: dict[str, tuple[str, Lineage]] = field(default_factory=dict, init=False)
    _has_looked: bool = field(default=False, init=False)
    #: For a write of metadata under the caller's lease, which does not end with the update.
    _single: SingleWrite = field(default_factory=SingleWrite, init=False)

    @property
    def leases(self) -> Leasable:
        return self

    def acquire(self, state: CurrentVersion, lease_id: str, seconds: int, deadline: Deadline) -> None:
        """Acquire a lease of our own, and see that the version read is still there; one from before is released."""
        self._give_back(deadline)
        try:
            self._hold(state, seconds, deadline)
        except AzguardError as error:
            raise _to_refusal(error) from error

    def _hold(self, state: CurrentVersion, seconds: int, deadline: Deadline) -> None:
        current = [after for after, (before, _) in self._noted.items() if before == state.etag]
        conditions = Conditions(expected_etag=current[-1] if current else state.etag)
        # The loop itself waits for the leases of others.
        lease = guarding.hold(self.target, conditions, self.guarding, deadline, Term(seconds, others_seconds=0))
        held = self._until.enter_context(lease)
        self._held, self._before = held, (state.etag or "", state.lineage)
        if held.has_note:
            self._noted[held.found.etag] = self._before

    def release(self, lease_id: str, deadline: Deadline) -> None:
        """Release our lease; the record of it is removed first, if no write of ours has replaced it."""
        self._give_back(deadline)

    def _give_back(self, deadline: Deadline) -> None:
        held, self._held = self._held, None
        if held is None:
            return
        if held.has_note and self._before is not None:
            moved = guarding.withdraw(self.target, held, self._before[0], self.guarding, deadline)
            if moved is not None and moved.after is not None:
                self._noted[moved.after] = self._before
        self._until.close()
        if not held.lease.is_gone:
            raise RefusedHere(HTTPStatus.SERVICE_UNAVAILABLE, "LeaseNotReleased")

    def read_etag_under_lease(self, lease_id: str, deadline: Deadline) -> str:
        return self.version_of(lease_state.look(self.target, deadline, self._in_use(lease_id)).etag, None)[0]

    def is_leased(self, deadline: Deadline) -> bool:
        """Return whether a lease is held; that of a process on this machine which has ended is released first."""
        return not lease_state.look(self.target, deadline).free and not self._take_over(deadline)

    def fence(
        self, state: CurrentVersion, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> FencingWrite:
        """Return a function that makes a write in doubt impossible: it frees the lease and checks the version."""
        return fence_by_release(self, self.read, state, lease_id or "" if self.lease_id is None else None, deadline)

    def read_unleased(self, deadline: Deadline) -> CurrentVersion:
        """Read as ``read`` does, without the caller's lease id, whose lease may have ended."""
        unleased = copy(self)
        unleased.lease_id = None
        return unleased.read(deadline)

    def clear_once(self, deadline: Deadline) -> None:
        """Before the first read, end what a process on this machine has left that was killed: its writes too."""
        if not self._has_looked:
            self._take_over(deadline)
            self._has_looked = True

    def version_of(self, etag: str, text: str | None) -> tuple[str, Lineage]:
        """Return the ETag and the lineage, as they were before the record of our own lease was written."""
        return self._noted.get(etag) or (etag, Lineage.parse(text))

    def check_under_callers_lease(self, state: CurrentVersion, deadline: Deadline) -> None:
        """See that a version is still there, where the lease is the caller's and was not acquired on it."""
        if self.lease_id is None:
            return
        with commits.look_first():
            current = lease_state.look(self.target, deadline, self.lease_id).etag
        if current != state.etag:
            raise RefusedHere.as_changed()

    def callers_record(self, metadata: Mapping[str, str] | None) -> dict[str, str]:
        """Return the record of who holds the lease, where that is the caller and goes on."""
        held = {} if self.lease_id is None else metadata or {}
        return {key: value for key, value in held.items() if key.lower() == OWNER}

    def set_metadata(self, state: CurrentVersion, stamped: Mapping[str, str], deadline: Deadline) -> Commit:
        """Return the request that replaces all metadata of the version read."""

        def commit(held: str | None) -> CommittedVersion:
            self.check_under_callers_lease(state, deadline)
            under = Conditions(lease_id=self._in_use(held))

            def send_metadata() -> CommittedVersion:
                return CommittedVersion.of(parts.send_metadata(self.target, stamped, under, deadline))

            done = send_metadata() if self.lease_id is None else self._single.send(send_metadata)
            self.note_written()
            return done

        return commit

    def note_written(self, *, is_replaced: bool = False) -> None:
        """Note that a write of ours has taken the place of the version that has the record of our lease.

        With ``is_replaced`` it is another file, by a rename, and our lease went with the one that was there.
        """
        self._before = None
        if self._held is not None:
            self._held.lease.end_record()
            self._held.lease.is_gone |= is_replaced

    def _in_use(self, lease_id: str | None) -> str | None:
        return lease_id if self._held is None or lease_id in (None, self.lease_id) else self._held.lease.lease_id

    def _take_over(self, deadline: Deadline) -> bool:
        """Release the lease of a process on this machine that has ended; return whether there was one."""
        return guarding.end_abandoned(self.target, self.guarding, deadline).leases > 0


@frozen
class Kept:
    """What new content leaves as it is."""

    metadata: Mapping[str, str]
    headers: ContentHeaders
    #: Attributes, the time of creation and the permission: the arguments of ``FILE_CREATE``.
    smb: Mapping[str, Any]

    @classmethod
    def of(cls, found: Any, metadata: Mapping[str, str]) -> "Kept":
        """Read the properties that were found."""
        return cls(metadata, ContentHeaders.of(found), choose_smb(SmbProperties(), found))


@dataclass
class FileContent(LeasedUpdate):
    """A file's content. Metadata, content headers, attributes and permissions survive a write."""

    _made: TemporaryFile | None = field(default=None, init=False)

    def read(self, deadline: Deadline) -> CurrentVersion:
        """Read content, ETag and lineage; a large file in ranges, again if it is written meanwhile.

        An answer that is shorter than the file is refused: what it lacks would be missing in what is written.

        Raises:
            NotFound: there is no share or directory that it could be in.
            Changed: it is overwritten faster than it can be read before the deadline.
        """
        self.clear_once(deadline)
        while True:
            try:
                download = FileDownload(self.target, self.lease_id, lambda: deadline)
                content = b"".join(download)
            except NotFound as error:
                return _to_missing(error, b"")
            except Changed:
                if deadline.passed:
                    raise
                continue
            found = download.properties
            etag, lineage = self.version_of(found.etag, (found.metadata or {}).get(KEY))
            return CurrentVersion(
                content=content,
                etag=etag,
                lineage=lineage,
                preserved=Kept.of(found, {**drop_own(found.metadata), **self.callers_record(found.metadata)}),
                last_modified=found.last_modified,
                content_type=found.content_settings.content_type,
            )

    def prepare(
        self, state: CurrentVersion, content: bytes, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> Commit:
        """Write the content beside the file, and return the rename."""
        self._discard()
        kept: Kept | None = state.preserved
        stamped = with_lineage(kept.metadata if kept else {}, state.carry_on(lineage))
        made = self._made = self._write_beside(content, _choose_settings(kept, stamped, content), deadline)
        if self.lease_id is not None:
            give_lease(made, self.lease_id, deadline)

        def commit(held: str | None) -> CommittedVersion:
            self.check_under_callers_lease(state, deadline)
            try:
                answer = temporary.rename_once(
                    made.target,
                    self.target,
                    deadline,
                    overwrite=state.etag is not None,
                    destination_lease_id=self._in_use(held),
                    source_lease_id=self.lease_id,
                )
            except Exception as error:  # the refusal of a rename says what an earlier one did
                code = service_code(error)
                if code == "ResourceNotFound" and not self._is_unchanged(state, deadline):
                    # An earlier copy of the request has renamed it, as far as is known here.
                    raise RefusedHere(HTTPStatus.SERVICE_UNAVAILABLE, "RenamedBefore") from error
                if code in ("ResourceNotFound", "ResourceAlreadyExists"):
                    raise RefusedHere.as_changed() from error
                raise
            made.forget()
            self._made = None
            self.note_written(is_replaced=True)
            return CommittedVersion.of(answer)

        return commit

    def mark(self, state: CurrentVersion, lineage: Lineage | None, lease_id: str | None, deadline: Deadline) -> Commit:
        """Return the write of the same metadata with our op; the content is not sent."""
        self._discard()
        kept: Kept = state.preserved
        return self.set_metadata(state, with_lineage(kept.metadata, state.carry_on(lineage)), deadline)

    def count_room(self, state: CurrentVersion, content: bytes) -> int:
        kept: Kept | None = state.preserved
        return rules.count_room(kept.metadata if kept else {}, KEY)

    def release(self, lease_id: str, deadline: Deadline) -> None:
        """Release our lease; the file with the temporary name is deleted, if it was not renamed."""
        self._discard()
        super().release(lease_id, deadline)

    def _is_unchanged(self, state: CurrentVersion, deadline: Deadline) -> bool:
        try:
            return state.etag in (None, self.version_of(lease_state.look(self.target, deadline).etag, None)[0])
        except NotFound:
            return state.etag is None

    def _write_beside(self, content: bytes, settings: Mapping[str, Any], deadline: Deadline) -> TemporaryFile:
        notes = self.guarding.temporary
        made = temporary.create(self.target, len(content), settings, lambda: deadline, notes)
        try:
            made.rename_away()
            made.fill(content[:PIECE_BYTES], BytesIO(content[PIECE_BYTES:]), lambda _: None)
        except BaseException:
            made.remove()
            raise
        return made

    def _discard(self) -> None:
        if self._made is not None:
            self._made.remove()
            self._made = None


@dataclass
class LeasedMetadata(LeasedUpdate):
    """The metadata of a share or a file, as a JSON object of strings."""

    def read(self, deadline: Deadline) -> CurrentVersion:
        self.clear_once(deadline)
        try:
            found = properties.fetch(self.target, Conditions(lease_id=self.lease_id), deadline)
        except NotFound as error:
            return _to_missing(error, b"{}")
        etag, lineage = self.version_of(found.etag, (found.metadata or {}).get(KEY))
        return CurrentVersion(
            content=as_json(drop_own(found.metadata)),
            etag=etag,
            lineage=lineage,
            preserved=self.callers_record(found.metadata),
            last_modified=found.last_modified,
        )

    def prepare(
        self, state: CurrentVersion, content: bytes, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> Commit:
        if state.etag is None:
            raise NotFound(f"there is no {self.target.kind.noun} {self.target}", address=str(self.target.address))
        stamped = with_lineage({**from_json(content), **state.preserved}, state.carry_on(lineage))
        try:
            rules.check_size(stamped, own=(KEY,) if KEY in stamped else ())
        except UsageError as error:
            raise error.as_kind(TransformFailed) from None
        return self.set_metadata(state, stamped, deadline)

    def count_room(self, state: CurrentVersion, content: bytes) -> int:
        return rules.count_room({**from_json(content), **state.preserved}, KEY)

    def canonicalize(self, content: bytes) -> bytes:
        return as_json(from_json(content))


def _choose_settings(like: Kept | None, metadata: Mapping[str, str], content: bytes) -> dict[str, Any]:
    digest = encode_md5(hashlib.md5(content, usedforsecurity=False).digest())
    headers = replace(ContentHeaders() if like is None else like.headers, content_md5=digest)
    settings = {} if like is None else like.smb
    return {"metadata": dict(metadata), **headers.given, **settings}


def _to_missing(error: NotFound, content: bytes) -> CurrentVersion:
    if error.service_code in _NOWHERE:
        raise error
    return CurrentVersion(content=content, etag=None, lineage=Lineage())


def _to_refusal(error: AzguardError) -> Exception:
    """Return the refusal of the service that the loop knows by its status; another error says that there was none."""
    if error.reason == "share_or_file_changed":
        return RefusedHere.as_changed()
    return error if error.http_status is None else RefusedHere(error.http_status, error.service_code or "")
