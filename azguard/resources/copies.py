"""Copies that the service makes in its own time, of blobs and of files: how far one is, how it ended, how to stop it.

The id of a copy tells it from every other. Where a resource has another id, or none, another write has replaced it.

Then the source of a copy, of an append or of pages: how the service is told of it, its version, and what refuses it. A
read of its properties chooses the version, and carries the conditions on the source. The copy then names this version
alone. So each condition held for what is copied, and the metadata that is sent belongs to the content.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from typing import Any, ClassVar

from azguard import columns
from azguard.accounts.account import Auth, Target
from azguard.errors import (
    AzguardError,
    BadRequest,
    Changed,
    Exists,
    Forbidden,
    NotFound,
    NotModified,
    Unauthenticated,
    Unavailable,
    UsageError,
)
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.naming import same_host
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import drop_lineage
from azguard.requests.results import WOULD_ABORT, Written
from azguard.requests.settle import NOTHING_THERE, Finding, WriteRequest, send_until_settled
from azguard.resources import properties
from azguard.wire.answers import Answer
from azguard.wire.catalogue import ALL
from azguard.wire.rows import Condition

#: What the status of a copy is while the service copies.
PENDING = "pending"
SUCCESS = "success"
ABORTED = "aborted"
# Between two questions: small copies end at once, large ones take hours.
_FIRST_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 10.0
_PAUSE_GROWTH = 1.5
# The status of a copy that failed begins with the HTTP status of what the service met.
_KINDS: dict[str, type[AzguardError]] = {
    "401": Unauthenticated, "403": Forbidden, "404": NotFound, "412": Changed,
}  # fmt: skip
#: What the service says of a source that it cannot read; the status says why.
UNREADABLE = "CannotVerifyCopySource"
# What every service version takes from a source in one request.
_PIECE_BYTES = 4 * 1024 * 1024


@frozen(kw_only=True)
class Copied(Written):
    """What a copy wrote, or began to write; ``conflicts`` is how often the source changed meanwhile."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.COPY_STATUS, columns.CONTENT_LENGTH, columns.ETAG)

    source: str
    #: The version of the source that was copied; None where no one version was asked for.
    source_etag: str | None
    content_length: int | None
    copy_id: str | None
    #: ``pending`` while the service copies, ``success`` once it has; None where later writes hide it.
    copy_status: str | None
    created: bool | None


@frozen(kw_only=True)
class CopyAborted(Written):
    """What a request to stop a copy did; ``outcome`` is ``unchanged`` where it had been stopped before."""

    COLUMNS: ClassVar = (columns.ADDRESS, columns.COPY_STATUS, columns.OUTCOME)

    copy_id: str
    copy_status: str


def pauses() -> Iterator[float]:
    """Yield the seconds between two questions about a copy, without end."""
    pause = _FIRST_PAUSE_SECONDS
    while True:
        yield pause
        pause = min(_LONGEST_PAUSE_SECONDS, pause * _PAUSE_GROWTH)


def read_progress(text: str | None) -> tuple[int, int | None]:
    """Return the bytes that are copied, and how many there are, of ``12/40``."""
    done, _, total = (text or "").partition("/")
    return (int(done), int(total)) if done.isdigit() and total.isdigit() else (0, None)


def build_failure(target: Target, found: Any, left: str) -> AzguardError:
    """Return the error for a copy that ended without success: aborted or failed.

    ``found`` are the properties of its destination, and ``left`` says what is there now.
    """
    facts = {"copy_id": found.copy.id, "copy_status": found.copy.status}
    if found.copy.status == ABORTED:
        return Changed(
            f"the copy to {target} was aborted; {left}",
            address=str(target.address),
            reason="copy_was_aborted",
            facts=facts,
        )
    why = found.copy.status_description or ""
    failure = Unavailable(
        f"the copy to {target} failed; {left}",
        address=str(target.address),
        detail=(why,) if why else (),
        reason="copy_failed",
        facts={**facts, "copy_status_description": why or None},
    )
    return failure.as_kind(_KINDS.get(why[:3], Unavailable))


def abort(
    target: Target, copy_id: str | None, conditions: Conditions, deadline: Deadline, *, only_tells: bool = False
) -> CopyAborted:
    """Stop a pending copy to a blob or a file: the one with this id, or the one that it shows. It leaves no content.

    ``only_tells`` looks, and stops nothing.

    Raises:
        Changed: the copy has ended, or it is the destination of another copy.
        NotFound: it is not there, or it is not the destination of a copy.
        Locked: it is leased, and its lease id was not given.
    Source: the pages Abort Copy Blob and Abort Copy File of https://learn.microsoft.com/rest/api/storageservices/
    """
    shown = properties.fetch(target, Conditions(), deadline)
    copy_id = copy_id or shown.copy.id
    if copy_id is None:
        raise NotFound(f"{target} is not the destination of a copy", address=str(target.address), reason="no_copy")
    if shown.copy.id == copy_id and shown.copy.status == ABORTED:
        return _to_aborted(target, shown, copy_id, conditions.guard, attempts=0, outcome="unchanged")
    if shown.copy.id != copy_id or shown.copy.status != PENDING:
        raise _to_ended(target, shown, copy_id)
    if only_tells:
        return _to_aborted(target, shown, copy_id, conditions.guard, attempts=0, outcome=WOULD_ABORT)
    request = WriteRequest[Any](
        operation=ALL[f"{target.kind}.abort_copy"],
        target=target,
        given={"headers": conditions.request_headers, "copyid": copy_id},
        look=partial(_find_outcome, target, copy_id),
    )
    try:
        settled = send_until_settled(request, deadline)
    except (Changed, BadRequest) as error:
        # Changed is the verdict of the look; the service says NoPendingCopyOperation or CopyIdMismatch.
        raise _to_ended(target, properties.fetch(target, Conditions(), deadline.fresh()), copy_id, error) from error
    found = properties.fetch(target, Conditions(), deadline.fresh())
    return _to_aborted(target, found, copy_id, conditions.guard, attempts=settled.attempts, outcome="committed")


def _find_outcome(target: Target, copy_id: str, patience: Deadline) -> Finding[Any]:
    found = properties.find(target, patience)
    if found is None:
        return Finding(Verdict.NEVER, seen=NOTHING_THERE)
    if found.copy.id != copy_id:
        return Finding(Verdict.NEVER, seen=found)
    by_status = {ABORTED: Verdict.COMMITTED, PENDING: Verdict.NOT_YET}
    return Finding(by_status.get(found.copy.status, Verdict.NEVER), found, seen=found)


def _to_ended(target: Target, found: Any, copy_id: str, error: AzguardError | None = None) -> Changed:
    if found.copy.id == copy_id:
        message = f"the copy to {target} had ended before it could be stopped: {found.copy.status}"
    else:
        message = f"{target} is not the destination of the copy {copy_id}"
    return Changed(
        message,
        address=str(target.address),
        http_status=None if error is None else error.http_status,
        service_code=None if error is None else error.service_code,
        request_id=None if error is None else error.request_id,
        current_etag=found.etag,
        reason="copy_ended" if found.copy.id == copy_id else "copy_is_another",
        facts={"copy_id": copy_id, "current_copy_id": found.copy.id, "copy_status": found.copy.status},
    )


def _to_aborted(target: Target, found: Any, copy_id: str, guard: str, *, attempts: int, outcome: str) -> CopyAborted:
    return CopyAborted(
        **properties.describe_version(target.address, found),
        copy_id=copy_id,
        copy_status=ABORTED,
        guard=guard,
        attempts=attempts,
        outcome=outcome,
    )


def to_url(source: Target) -> str:
    """Return the URL by which the service reads a source. It holds the SAS, so it goes to the service alone."""
    from urllib.parse import quote

    found, account = source.address, source.account
    snapshot = "sharesnapshot" if found.kind.service == "file" else "snapshot"
    query = [f"{snapshot}={quote(found.snapshot)}"] if found.snapshot else []
    query += [f"versionid={quote(found.version)}"] if found.version else []
    # The service reads a source in the same account by the credentials of the request, but not by its SAS.
    query += [account.secret.lstrip("?")] if account.auth is Auth.SAS and account.secret else []
    path = f"{quote(found.container, safe='$')}/{quote(found.name, safe='~/')}"
    return "?".join([f"{source.endpoint}/{path}", *(["&".join(query)] if query else [])])


def describe(source: Target, destination: Target) -> str:
    """Return the name of a source in a result: its address, and in another account its endpoint too."""
    if source.account is destination.account or same_host(source.endpoint) == same_host(destination.endpoint):
        return str(source.address)
    return f"{source.endpoint}/{source.address.short}"


def to_changed(error: AzguardError, source: Target) -> Changed:
    """Return the error for a condition on the source that did not hold."""
    return error.as_kind(
        Changed,
        message=f"the condition did not hold for the source {source}; nothing was written",
        address=str(source.address),
        reason="copy_source_changed",
        facts={**error.facts, "side": "source"},
        # What was read after the refusal is the destination.
        seen=None,
        expected_etag=None,
    )


def judge_unreadable(error: AzguardError, source: Target) -> AzguardError:
    """Return the error for a source that the service could not read."""
    if error.http_status in (HTTPStatus.PRECONDITION_FAILED, HTTPStatus.NOT_MODIFIED):
        return to_changed(error, source)
    kind = NotFound if error.http_status == HTTPStatus.NOT_FOUND else Forbidden
    return to_unreadable(error.as_kind(kind), source)


def to_unread(error: AzguardError, source: Target) -> AzguardError:
    """Return the error for a source whose properties were refused to azguard itself."""
    if error.reason is not None and source.account.auth in (Auth.KEY, Auth.LOGIN):
        # The key or the login is at fault, for which no SAS helps; or the container or the share is missing.
        return error.but(facts={**error.facts, "side": "source"})
    return to_unreadable(error, source)


def to_unreadable(error: AzguardError, source: Target) -> AzguardError:
    """Return the error for a source that is not there, or may not be read."""
    is_missing = isinstance(error, NotFound)
    if is_missing and error.reason is not None:  # its container
        return error.but(facts={**error.facts, "side": "source"})
    message = f"there is no source {source}" if is_missing else f"the source {source} may not be read"
    return error.but(
        message=message,
        detail=() if is_missing else (*error.detail, error.message),
        address=str(source.address),
        reason="copy_source_missing" if is_missing else "copy_source_unreadable",
        facts={**error.facts, "side": "source"},
    )


@frozen
class PinnedSource:
    """The one version of a source that a copy takes."""

    found: Answer

    @property
    def metadata(self) -> dict[str, str]:
        """Return those without azguard's own key, whose history is the source's."""
        return drop_lineage(self.found.metadata)

    @property
    def condition(self) -> dict[str, str]:
        """Return the request header by which the copy takes this version alone."""
        return {Condition.SOURCE_IF_MATCH.header: self.found.etag}


def pin_source(source: Target, conditions: Mapping[str, str], deadline: Deadline) -> PinnedSource:
    """Return the version of a source that is there now, if the conditions on the source hold for it."""
    headers = {_as_on_a_read(name): value for name, value in conditions.items()}
    try:
        return PinnedSource(properties.fetch(source, Conditions(headers=headers), deadline))
    except (Changed, NotModified) as error:
        raise to_changed(error, source) from error
    except (NotFound, Forbidden, Unauthenticated) as error:
        raise to_unread(error, source) from error


def judge_refusal(
    error: AzguardError, source: Target, pinned: PinnedSource | None, conditions: Conditions, deadline: Deadline
) -> AzguardError:
    """Return the refusal of a copy, with the side that was refused; ``conditions`` are those on the destination."""
    if error.service_code == "SourceConditionNotMet" or isinstance(error, NotModified):
        return to_changed(error, source)
    if error.service_code == UNREADABLE:
        return judge_unreadable(error, source)
    if error.service_code == "BlobNotFound" and isinstance(error, NotFound):
        return to_unreadable(error, source)
    # The emulator has one code for both sides.
    if error.service_code == "ConditionNotMet" and isinstance(error, Changed):
        still_holds = conditions.expected_etag == (getattr(error.seen, "etag", None) or "")
        is_of_source = still_holds if pinned is None else _has_moved(source, pinned, deadline)
        if is_of_source:
            return to_changed(error, source)
    if isinstance(error, (Changed, Exists)):
        return error.but(facts={**error.facts, "side": "destination"})
    return error


def _has_moved(source: Target, pinned: PinnedSource, deadline: Deadline) -> bool:
    try:
        return bool(properties.fetch(source, Conditions(), deadline.fresh()).etag != pinned.found.etag)
    except AzguardError:
        return True


def _as_on_a_read(header: str) -> str:
    condition = next(each for each in Condition if each.header == header)
    return Condition(condition.removeprefix("source-")).header


@frozen
class SourcePiece:
    """A range of one version of a source."""

    source: Target
    pinned: PinnedSource
    offset: int
    length: int

    def __len__(self) -> int:
        return self.length

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the arguments of a request that copies the range: the source, its key, and the bytes to take."""
        end = self.offset + self.length - 1
        sent = self.source.account.encryption.get("encryption_key", {}).items()
        key = {f"source_{name.removeprefix('x-ms-').replace('-', '_')}": value for name, value in sent}
        return {"copy_source": to_url(self.source), "source_range": f"bytes={self.offset}-{end}", **key}


def read_pieces(source: Target, conditions: Mapping[str, str], deadline: Deadline) -> Iterator[SourcePiece]:
    """Yield the ranges of the version that is there now, if the conditions on the source hold for it.

    Raises:
        Changed: they do not.
        NotFound, Forbidden, Unauthenticated: it is not there, or may not be read.
        UsageError: it is empty.
    """
    pinned = pin_source(source, conditions, deadline)
    length = pinned.found.size
    if not length:
        raise UsageError(f"the source {source} is empty", address=str(source.address), reason="source_is_empty")
    for offset in range(0, length, _PIECE_BYTES):
        yield SourcePiece(source, pinned, offset, min(_PIECE_BYTES, length - offset))


@contextmanager
def explain_piece(piece: object, conditions: Conditions, deadline: Deadline) -> Iterator[None]:
    """Say of a refusal which side was refused, if the piece is of a source."""
    try:
        yield
    except AzguardError as error:
        if not isinstance(piece, SourcePiece):
            raise
        raise judge_refusal(error, piece.source, piece.pinned, conditions, deadline) from error
