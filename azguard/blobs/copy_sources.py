"""The source of a copy: how the service is told of it, which version of it is copied, and what refuses it.

The version is chosen by a read of its properties, which carries the conditions on the source. The copy then names
this version alone. So each condition held for what is copied, and the metadata that is sent belongs to the content.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from azguard.accounts.account import Auth
from azguard.accounts.target import Target
from azguard.blobs import properties
from azguard.conditions.operations import Condition
from azguard.conditions.resolve import Conditions
from azguard.errors import AzguardError, Changed, Exists, Forbidden, NotFound, NotModified, Unauthenticated
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY
from azguard.urls import same_host

# What the service says of a source that it cannot read; the status says why.
_UNREADABLE = "CannotVerifyCopySource"


@dataclass(frozen=True)
class PinnedSource:
    """The one version of a source that a copy takes."""

    etag: str
    content_length: int
    blob_type: str | None
    #: Without azguard's own key, whose history is the source's.
    metadata: Mapping[str, str]
    #: Whether the source has a lineage, which the service would copy.
    has_lineage: bool
    has_tags: bool

    @property
    def condition(self) -> dict[str, str]:
        """Return the request header by which the copy takes this version alone."""
        return {Condition.SOURCE_IF_MATCH.header: self.etag}


class SourceMovedError(Exception):
    """The source is no longer the version that was pinned; ``refusal`` says so to the caller."""

    def __init__(self, refusal: Changed) -> None:
        self.refusal = refusal
        super().__init__(refusal.message)


def to_url(source: Target) -> str:
    """Return the URL by which the service reads a source. It holds the SAS, so it goes to the service alone."""
    from urllib.parse import quote

    found, account = source.address, source.account
    query = [f"snapshot={quote(found.snapshot)}"] if found.snapshot else []
    query += [f"versionid={quote(found.version)}"] if found.version else []
    # The service reads a source in the same account by the credentials of the request, but not by its SAS.
    query += [account.secret] if account.auth is Auth.SAS and account.secret else []
    path = f"{quote(found.container, safe='$')}/{quote(found.name, safe='~/')}"
    return "?".join([f"{source.endpoint}/{path}", *(["&".join(query)] if query else [])])


def describe(source: Target, destination: Target) -> str:
    """Return what names a source in a result: its address, and in another account its endpoint too."""
    if same_host(source.endpoint) == same_host(destination.endpoint):
        return str(source.address)
    return f"{source.endpoint}/{source.address.short}"


def pin(source: Target, conditions: Mapping[str, str], deadline: Deadline) -> PinnedSource:
    """Return the version of a source that is there now, if the conditions on the source hold for it.

    Raises:
        Changed: they do not.
        NotFound, Forbidden, Unauthenticated: it is not there, or may not be read.
    """
    headers = {_as_on_a_read(name): value for name, value in conditions.items()}
    try:
        found = properties.fetch(source, Conditions(headers=headers), deadline)
    except (Changed, NotModified) as error:
        raise to_changed(error, source) from error
    except (NotFound, Forbidden, Unauthenticated) as error:
        if error.reason is not None and source.account.auth in (Auth.KEY, Auth.LOGIN):
            # The key or the login is at fault, for which no SAS helps; or the container is missing.
            raise error.but(facts={**error.facts, "side": "source"}) from error
        raise _to_unreadable(error, source) from error
    metadata = found.metadata or {}
    return PinnedSource(
        etag=found.etag,
        content_length=found.size,
        blob_type=properties.type_of(found),
        metadata={key: value for key, value in metadata.items() if key != KEY},
        has_lineage=KEY in metadata,
        has_tags=bool(found.tag_count),
    )


def judge(
    error: AzguardError, source: Target, pinned: PinnedSource | None, conditions: Conditions, deadline: Deadline
) -> AzguardError:
    """Return the refusal of a copy, with the side that was refused; ``conditions`` are those on the destination.

    Raises:
        SourceMovedError: the source is no longer the version that was pinned.
    """
    if error.service_code == "SourceConditionNotMet" or isinstance(error, NotModified):
        raise SourceMovedError(to_changed(error, source)) from error
    if error.service_code == _UNREADABLE:
        return _judge_unreadable(error, source)
    if error.service_code == "BlobNotFound" and isinstance(error, NotFound):
        return _to_unreadable(error, source)
    # The emulator has one code for both sides.
    is_ambiguous = error.service_code == "ConditionNotMet" and isinstance(error, Changed)
    if is_ambiguous:
        is_of_source = _still_holds(conditions, error) if pinned is None else _has_moved(source, pinned, deadline)
        if is_of_source:
            raise SourceMovedError(to_changed(error, source)) from error
    if isinstance(error, (Changed, Exists)):
        return error.but(facts={**error.facts, "side": "destination"})
    return error


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


def _judge_unreadable(error: AzguardError, source: Target) -> AzguardError:
    match error.http_status:
        case HTTPStatus.PRECONDITION_FAILED | HTTPStatus.NOT_MODIFIED:
            raise SourceMovedError(to_changed(error, source)) from error
        case HTTPStatus.NOT_FOUND:
            return _to_unreadable(error.as_kind(NotFound), source)
        case _:
            return _to_unreadable(error.as_kind(Forbidden), source)


def _to_unreadable(error: AzguardError, source: Target) -> AzguardError:
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


def _still_holds(conditions: Conditions, error: AzguardError) -> bool:
    """Return whether what was found after the refusal is the version of the destination that was asked for."""
    expected = conditions.expected_etag
    return expected is not None and getattr(error.seen, "etag", None) == expected


def _has_moved(source: Target, pinned: PinnedSource, deadline: Deadline) -> bool:
    try:
        return bool(properties.fetch(source, Conditions(), deadline.fresh()).etag != pinned.etag)
    except AzguardError:
        return True


def _as_on_a_read(header: str) -> str:
    """Return the header that means on a read what a header on the source means on the copy."""
    condition = next(each for each in Condition if each.header == header)
    return Condition(condition.removeprefix("source-")).header
