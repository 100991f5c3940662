"""Blobs as commands show them: one, or those of a container page by page; and what is kept of one, found."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, ClassVar

from azguard import columns
from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.blobs.refusals import explain_stale_read
from azguard.errors import NotFound, UsageError
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.requests.calls import follow, walk_pages
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import drop_lineage
from azguard.requests.results import Shown
from azguard.resources import properties
from azguard.resources.properties import ContentShown, CopyShown, LeaseShown, describe_content, describe_version
from azguard.wire.call import call
from azguard.wire.client import Limits
from azguard.wire.operations.containers import CONTAINER_LIST_BLOBS
from azguard.wire.xml import Listed, Page, parse_page

if TYPE_CHECKING:
    from azguard.resources.lifecycles import Contents

# The most that one page holds.
_PAGE = 5000
_PREFIX = "BlobPrefix"
# What a listing can include that has the name of another line.
_OF_ONE_NAME = frozenset({"snapshots", "versions", "deleted"})


@frozen(kw_only=True)
class BlobShown(CopyShown, LeaseShown, ContentShown):
    """A blob's properties."""

    COLUMNS: ClassVar = (
        columns.NAME,
        columns.ADDRESS,
        columns.SNAPSHOT,
        columns.VERSION,
        columns.CONTENT_LENGTH,
        columns.LAST_MODIFIED,
        columns.ETAG,
        columns.CONTENT_TYPE,
        columns.LEASE_STATE,
    )
    FIRST: ClassVar = (*Shown.FIRST, "created")
    LAST: ClassVar = (
        *("lease_status", "lease_state", "lease_duration", "snapshot", "version_id", "deleted"),
        *("copy_id", "copy_status", "copy_progress", "metadata"),
    )

    name: str
    container: str
    created: datetime | None
    blob_type: str | None
    tier: str | None
    tag_count: int | None
    snapshot: str | None
    version_id: str | None
    deleted: bool


def show(target: Target, conditions: Conditions, deadline: Deadline) -> BlobShown:
    """Return a blob's properties and metadata; its content is not read.

    Raises:
        NotModified: a conditional read found nothing newer.
    Source: https://learn.microsoft.com/rest/api/storageservices/get-blob-properties
    """
    with explain_stale_read(target, conditions, deadline):
        return _describe_blob(target.address, properties.fetch(target, conditions, deadline))


def _describe_blob(address: Address, found: Any, *, deleted: bool = False) -> BlobShown:
    return BlobShown(
        **describe_version(address, found),
        name=address.name,
        container=address.container,
        created=found.creation_time,
        **describe_content(found),
        blob_type=found.blob_type,
        tier=found.access_tier,
        tag_count=found.tag_count,
        snapshot=address.snapshot,
        version_id=found.version_id,
        deleted=deleted,
        metadata=drop_lineage(found.metadata),
    )


@frozen(kw_only=True)
class BlobWithTags(BlobShown):
    """A blob of a listing that includes the tags."""

    tags: dict[str, str]


@frozen
class BlobPrefix:
    """A virtual folder in a listing with a delimiter."""

    COLUMNS: ClassVar = (columns.NAME, columns.ADDRESS)

    address: str
    name: str
    prefix: bool = True


@frozen
class NextMarker:
    """Where a listing that was cut goes on."""

    COLUMNS: ClassVar = (columns.NEXT_MARKER,)

    next_marker: str


def list_blobs(
    target: Target,
    deadline: Deadline,
    *,
    prefix: str | None = None,
    delimiter: str | None = None,
    include: Sequence[str] = (),
    limit: int | None = None,
    marker: str | None = None,
    tell: Callable[[str], object] = lambda marker: None,
) -> Iterator[BlobShown | BlobPrefix]:
    """Yield a container's blobs in order of name, page by page, in constant memory.

    What is kept of one blob is in order of time, and its current version is the last. ``marker`` is where it begins,
    and ``tell`` is given where it goes on if the limit cuts it; not where lines repeat a name.

    Source: https://learn.microsoft.com/rest/api/storageservices/list-blobs
    """
    repeats_names = repeat_names(include)
    # A page that ends between two lines of one name loses the rest of them in Azurite.
    most = None if repeats_names else limit
    items = walk(
        target, deadline, prefix=prefix, delimiter=delimiter, include=include, limit=most, marker=marker, tell=tell
    )
    for item in islice(_sort_versions(items), limit) if repeats_names else items:
        yield _to_row(target.address.container, item, with_tags="tags" in include)


def repeat_names(include: Sequence[str]) -> bool:
    """Return whether a listing that includes these has several lines of one name."""
    return not _OF_ONE_NAME.isdisjoint(include)


def walk(
    target: Target,
    deadline: Deadline,
    *,
    prefix: str | None = None,
    delimiter: str | None = None,
    include: Sequence[str] = (),
    limit: int | None = None,
    marker: str | None = None,
    tell: Callable[[str], object] = lambda marker: None,
) -> Iterator[Listed]:
    """Yield the blobs of a container and, with a delimiter, what is before it; those first on each page.

    ``tell`` is given the marker of the next page where the limit ends the listing.
    """
    container = target._replace(address=Address(Kind.CONTAINER, (target.address.container,)))
    asked = {"prefix": prefix, "delimiter": delimiter, "include": ",".join(include) or None}
    counted = 0

    def ask(after: str | None, timeouts: Limits) -> tuple[Page, str | None]:
        most = None if limit is None else min(limit - counted, _PAGE)
        given: dict[str, Any] = {**asked, "maxresults": most, "marker": after or marker}
        page = parse_page(call(CONTAINER_LIST_BLOBS, container, timeouts, **given), "Blobs", _PREFIX, "Blob")
        return page, page.marker

    try:
        for page, _ in follow(ask, container, deadline):
            counted += len(page.items)
            yield from page.items
            if limit is not None and counted >= limit:
                if page.marker is not None:
                    tell(page.marker)
                return
    except NotFound as error:
        raise error.but(message=f"there is no container {target.address.container}") from error.__cause__


def list_kept(target: Target, include: Sequence[str], deadline: Deadline) -> Iterator[Listed]:
    """Yield the listed versions and snapshots of one blob, in any order; encrypted metadata are read.

    Raises:
        BadRequest: they are encrypted with another key than that of the account.
    """
    for each in walk(target, deadline, prefix=target.address.name, include=include):
        if each.name != target.address.name:  # it begins with this name
            continue
        if each.hides_metadata:
            address = replace(target.address, snapshot=each.snapshot, version=each.version_id)
            found = properties.fetch(target._replace(address=address), Conditions(), deadline.fresh())
            each.metadata = found.metadata
        yield each


def count_blobs(target: Target, deadline: Deadline) -> "Contents":
    """Count the blobs of a container, up to the end of the first page that has any.

    Blobs that are being uploaded count. Snapshots do not: each has its blob. Versions and soft-deleted blobs do not
    either: to delete them was an act of its own.

    Raises:
        Forbidden: it may not be listed.
        NotFound: it is not there.
    Source: https://learn.microsoft.com/rest/api/storageservices/list-blobs
    """
    from azguard.resources.lifecycles import count_first

    pages = walk_pages(
        CONTAINER_LIST_BLOBS, target, deadline, "Blobs", "Blob", include="uncommittedblobs", maxresults=_PAGE
    )
    return count_first(((len(each.items), each.marker is not None) for each in pages), target, "blob", "blobs")


def _to_row(container: str, item: Listed, *, with_tags: bool) -> BlobShown | BlobPrefix:
    if item.tag == _PREFIX:
        return BlobPrefix(f"blob:{container}/{item.name}", item.name)
    where = Address(kind=Kind.BLOB, parts=(container, item.name), snapshot=item.snapshot, version=item.version_id)
    shown = _describe_blob(where, item, deleted=bool(item.deleted))
    return BlobWithTags(**vars(shown), tags=item.tags) if with_tags else shown


def order_in_time(found: Listed) -> tuple[bool, str]:
    """Return the key that sorts snapshots and versions of one blob: by id, the current version last."""
    moment = found.snapshot or found.version_id
    is_current = moment is None or bool(found.is_current_version)
    # A fraction of a second can have fewer digits than another.
    return is_current, (moment or "").removesuffix("Z")


def _sort_versions(items: Iterable[Listed]) -> Iterator[Listed]:
    """Yield the lines of each name in order of time: Azurite lists them in another order after each write."""
    for _, of_one_name in groupby(items, key=lambda item: item.name):
        yield from sorted(of_one_name, key=order_in_time)


def find_newest(target: Target, kind: str, deadline: Deadline) -> Address:
    """Return the address of the newest ``snapshot`` of a blob, or of the newest ``version`` before the current one.

    Raises:
        NotFound: there is none.
    """
    kept = list_kept(target, [f"{kind}s"], deadline)
    found = [
        each for each in kept if not order_in_time(each)[0] and (each.snapshot is not None) == (kind == "snapshot")
    ]
    if not found:
        raise NotFound(f"no {kind} of {target} is kept", address=str(target.address), reason="nothing_kept")
    return _locate(target, max(found, key=order_in_time))


def find_by_id(target: Target, moment: str, deadline: Deadline) -> Address:
    """Return the address of the snapshot or version of a blob that has this id.

    Raises:
        NotFound: there is none.
        UsageError: a snapshot and a version have it.
    """
    kept = list_kept(target, ["snapshots", "versions"], deadline)
    found = {_locate(target, each) for each in kept if moment in (each.snapshot, each.version_id)}
    if not found:
        raise NotFound(
            f"no snapshot or version of {target} has the id {moment}",
            address=str(target.address),
            reason="no_such_id_kept",
        )
    if len(found) > 1:
        raise UsageError(
            f"a snapshot and a version of {target} have the id {moment}",
            address=str(target.address),
            reason="id_of_snapshot_and_version",
        )
    return found.pop()


def _locate(target: Target, found: Any) -> Address:
    return replace(target.address, snapshot=found.snapshot, version=None if found.snapshot else found.version_id)
