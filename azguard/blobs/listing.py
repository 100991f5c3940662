"""Blobs as commands show them: one, or those of a container page by page; and their names alone, for trees."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import unquote

from azguard import columns
from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.blobs.properties import explain_stale_read, fetch, type_of
from azguard.errors import NotFound
from azguard.guards.resolve import Conditions
from azguard.guards.versions import quote_etag
from azguard.requests.calls import Markers, page_timeouts, pages, read
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import drop_lineage
from azguard.requests.results import Shown
from azguard.resources.properties import ContentShown, CopyShown, LeaseShown, describe_content, name_of
from azguard.resources.tree_store import ListedItem
from azguard.wire import sdk
from azguard.wire.answers import parse_date
from azguard.wire.call import call
from azguard.wire.failures import Unreadable
from azguard.wire.operations.containers import CONTAINER_LIST_BLOBS

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


# What a listing can include that has the name of another line.
_OF_ONE_NAME = frozenset({"snapshots", "versions", "deleted"})


@dataclass(frozen=True, kw_only=True)
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
        return _describe_blob(target.address, fetch(target, conditions, deadline))


def _describe_blob(address: Address, found: Any, *, deleted: bool = False) -> BlobShown:
    return BlobShown(
        address=str(address),
        name=address.name,
        container=address.container,
        etag=quote_etag(found.etag) if found.etag else None,
        last_modified=found.last_modified,
        created=found.creation_time,
        **describe_content(found),
        blob_type=type_of(found),
        tier=name_of(found.blob_tier),
        tag_count=found.tag_count,
        snapshot=address.snapshot,
        version_id=found.version_id,
        deleted=deleted,
        metadata=drop_lineage(found.metadata),
    )


@dataclass(frozen=True)
class BlobPrefix:
    """A virtual folder in a listing with a delimiter."""

    COLUMNS: ClassVar = (columns.NAME, columns.ADDRESS)

    address: str
    name: str
    prefix: bool = True


def list_blobs(
    target: Target,
    deadline: Deadline,
    *,
    prefix: str | None = None,
    delimiter: str | None = None,
    include: Sequence[str] = (),
    limit: int | None = None,
) -> Iterator[BlobShown | BlobPrefix]:
    """Yield a container's blobs in order of name, page by page, in constant memory.

    What is kept of one blob is in order of time, and its current version is the last.

    Source: https://learn.microsoft.com/rest/api/storageservices/list-blobs
    """
    client = sdk.container(target.account, target.address)
    # The SDK sends the same timeouts with every page.
    repeats_names = not _OF_ONE_NAME.isdisjoint(include)
    asked: dict[str, Any] = {
        "name_starts_with": prefix,
        "include": list(include),
        # A page that ends between two lines of one name loses the rest of them in Azurite.
        "results_per_page": None if limit is None or repeats_names else min(limit, 5000),
        **page_timeouts(deadline),
    }
    found: Any = client.list_blobs(**asked) if delimiter is None else client.walk_blobs(delimiter=delimiter, **asked)
    items = pages(found, target, deadline)
    try:
        for item in islice(_sort_versions(items) if repeats_names else items, limit):
            yield _to_row(target.address.container, item)
    except NotFound as error:
        raise error.but(message=f"there is no container {target.address.container}") from error.__cause__


def _to_row(container: str, item: Any) -> BlobShown | BlobPrefix:
    if not hasattr(item, "etag"):
        return BlobPrefix(f"blob:{container}/{item.name}", item.name)
    where = Address(kind=Kind.BLOB, parts=(container, item.name), snapshot=item.snapshot, version=item.version_id)
    return _describe_blob(where, item, deleted=bool(item.deleted))


def order_in_time(found: Any) -> tuple[bool, str]:
    """Return the key that sorts snapshots and versions of one blob: by id, the current version last."""
    moment = getattr(found, "snapshot", None) or getattr(found, "version_id", None)
    is_current = moment is None or bool(getattr(found, "is_current_version", None))
    # A fraction of a second can have fewer digits than another.
    return is_current, (moment or "").removesuffix("Z")


def _sort_versions(items: Iterable[Any]) -> Iterator[Any]:
    """Yield the lines of each name in order of time: Azurite lists them in another order after each write."""
    for _, of_one_name in groupby(items, key=lambda item: item.name):
        yield from sorted(of_one_name, key=order_in_time)


def list_names(target: Target, deadline: Deadline, prefix: str) -> Iterator[ListedItem]:
    """Yield a container's blobs in order of name, page by page, in constant memory; no directories.

    Source: https://learn.microsoft.com/rest/api/storageservices/list-blobs
    """
    marker, markers = "", Markers(target)
    while True:
        try:
            blobs, marker = read(lambda _: _fetch(target, deadline, prefix, marker), target, deadline.fresh())  # noqa: B023  # called at once
        except NotFound as error:
            raise error.but(message=f"there is no container {target.address.container}") from error.__cause__
        markers.note(marker)
        yield from blobs
        if not marker:
            return


def _fetch(target: Target, deadline: Deadline, prefix: str, marker: str) -> tuple[list[ListedItem], str]:
    """Fetch a page, and where the next one begins; that is empty after the last one."""
    from xml.etree import ElementTree as ET

    answer = call(CONTAINER_LIST_BLOBS, target, page_timeouts(deadline), prefix=prefix or None, marker=marker or None)
    try:
        root = ET.fromstring(answer.content)  # noqa: S314  # an answer of the service
        blobs = root.find("Blobs")
        if blobs is None:
            raise Unreadable("the answer is no list of blobs")
        found = [each for each in map(_parse, blobs.iter("Blob")) if each is not None]
        return found, root.findtext("NextMarker") or ""
    except (ET.ParseError, ValueError) as error:
        raise Unreadable(f"the answer is no list of blobs: {error}") from error


def _parse(found: "Element") -> ListedItem | None:
    """Return a blob; None for a directory, which only an account with a hierarchical namespace lists."""
    name = found.find("Name")
    properties = found.find("Properties")
    if name is None or properties is None:
        raise ValueError("a blob has no name")
    # What XML cannot hold is encoded as in a URL.
    text = unquote(name.text or "") if name.get("Encoded") == "true" else name.text or ""
    told = {each.tag: each.text for each in properties}
    if told.get("ResourceType") == "directory":
        return None
    etag, modified, length = told.get("Etag"), told.get("Last-Modified"), told.get("Content-Length")
    return ListedItem(
        name=text,
        etag=quote_etag(etag) if etag else None,
        last_modified=parse_date(modified) if modified else None,
        content_length=int(length) if length else None,
        content_md5=told.get("Content-MD5"),
        blob_type=told.get("BlobType"),
    )
