"""The adapters of safe-update: the content of a file, and the metadata of a share, a file or a directory.

Content is written whole into a temporary file, whose rename replaces the file: a reader sees the old content or the
new, never a mixture. Metadata are one request. Both happen under the lease of ``update_lease``. A directory has no
lease: its metadata are compared, then written.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from io import BytesIO
from typing import Any

from azguard.documents import metadata as rules
from azguard.documents.metadata import as_json, from_json
from azguard.errors import Changed, NotFound, TransformFailed, UsageError
from azguard.files import temporary, writes
from azguard.files.download import FileDownload
from azguard.files.entries import drop_own
from azguard.files.properties import SmbProperties
from azguard.files.replacing import choose_smb, give_lease
from azguard.files.temporary import PIECE_BYTES, TemporaryFile
from azguard.files.update_lease import LeasedUpdate
from azguard.guards.resolve import Conditions
from azguard.guards.versions import quote_etag
from azguard.leases import state as lease_state
from azguard.requests.deadline import Deadline
from azguard.requests.delivery import WHOLE
from azguard.requests.lineage import KEY, Lineage, with_lineage
from azguard.requests.service_errors import service_code
from azguard.resources import parts, properties
from azguard.resources.properties import ContentHeaders, encode_md5
from azguard.updates.compared import ComparedMetadata, RefusedHere, StampedMetadata
from azguard.updates.resource import Commit, CommittedVersion, CurrentVersion

# Where a file or a share is to be, there is nothing that could hold it.
_NOWHERE = ("ShareNotFound", "ParentNotFound")


@dataclass(frozen=True)
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
                download = FileDownload(self.target, self.lease_id, lambda: deadline, WHOLE)
                content = b"".join(piece.content for piece in download.read_pieces(in_order=True))
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
                preserved=Kept.of(found, self.kept_metadata(found.metadata)),
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
                answer = writes.rename_once(
                    made.target,
                    self.target,
                    deadline,
                    overwrite=state.etag is not None,
                    destination_lease_id=self._in_use(held),
                    source_lease_id=self.lease_id,
                )
            except Exception as error:
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
        """Return how many characters the lineage may have beside the metadata."""
        kept: Kept | None = state.preserved
        return rules.count_room(kept.metadata if kept else {}, KEY)

    def release(self, lease_id: str, deadline: Deadline) -> None:
        """Release our lease; the file with the temporary name is deleted, if it was not renamed."""
        self._discard()
        super().release(lease_id, deadline)

    def canonicalize(self, content: bytes) -> bytes:
        """Return the content: a file takes any."""
        return content

    def _is_unchanged(self, state: CurrentVersion, deadline: Deadline) -> bool:
        """Return whether the version that was read is there, or there was none."""
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
        """Read the metadata and their version."""
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
        """Return the write of all metadata."""
        if state.etag is None:
            raise NotFound(f"there is no {self.target.kind.noun} {self.target}", address=str(self.target.address))
        stamped = with_lineage({**from_json(content), **state.preserved}, state.carry_on(lineage))
        try:
            rules.check_size(stamped, own=(KEY,) if KEY in stamped else ())
        except UsageError as error:
            raise error.as_kind(TransformFailed) from None
        return self.set_metadata(state, stamped, deadline)

    def mark(self, state: CurrentVersion, lineage: Lineage | None, lease_id: str | None, deadline: Deadline) -> Commit:
        """Return the write of the same metadata with our op."""
        return self.prepare(state, state.content, lineage, lease_id, deadline)

    def count_room(self, state: CurrentVersion, content: bytes) -> int:
        """Return how many characters the lineage may have beside the metadata."""
        return rules.count_room({**from_json(content), **state.preserved}, KEY)

    def canonicalize(self, content: bytes) -> bytes:
        """Return the metadata as indented JSON."""
        return as_json(from_json(content))


@dataclass(frozen=True)
class DirectoryMetadata(ComparedMetadata):
    """The metadata of a directory, as a JSON object of strings: see ``compared``."""

    def fetch(self, deadline: Deadline) -> StampedMetadata:
        """Return the metadata and the ETag of the directory."""
        found = properties.fetch(self.target, Conditions(), deadline)
        return StampedMetadata(found.metadata or {}, quote_etag(found.etag), found.last_modified)

    def send(self, stamped: Mapping[str, str], lease_id: str | None, deadline: Deadline) -> CommittedVersion:
        """Send Set Directory Metadata once."""
        return CommittedVersion.of(parts.send_metadata(self.target, stamped, Conditions(), deadline))


def _choose_settings(like: Kept | None, metadata: Mapping[str, str], content: bytes) -> dict[str, Any]:
    """Return the settings that a new file takes over from the file that it replaces."""
    digest = encode_md5(hashlib.md5(content, usedforsecurity=False).digest())
    headers = replace(ContentHeaders() if like is None else like.headers, content_md5=digest)
    settings = {} if like is None else like.smb
    return {"metadata": dict(metadata), **headers.given, **settings}


def _to_missing(error: NotFound, content: bytes) -> CurrentVersion:
    if error.service_code in _NOWHERE:
        raise error
    return CurrentVersion(content=content, etag=None, lineage=Lineage())
