"""What a container holds, as trees need it: names and versions, without a model of the SDK for each."""

from collections.abc import Iterator
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from azguard.accounts import direct
from azguard.accounts.target import Target
from azguard.conditions.etags import quote
from azguard.errors import NotFound
from azguard.requests.calls import Markers, page_timeouts, read
from azguard.requests.deadline import Deadline

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


class ListedBlob(NamedTuple):
    """One blob as the service lists it."""

    name: str
    #: None where there are only uncommitted blocks.
    etag: str | None
    last_modified: datetime | None
    content_length: int | None
    #: In base64.
    content_md5: str | None
    blob_type: str | None = None


class _Page(NamedTuple):
    blobs: list[ListedBlob]
    #: Where the next page begins; empty after the last one.
    marker: str


def list_names(target: Target, deadline: Deadline, prefix: str) -> Iterator[ListedBlob]:
    """Yield a container's blobs in order of name, page by page, in constant memory; no directories.

    Raises:
        NotFound: there is no such container.
        ChallengeReceived: see ``direct.send``.
    Source: https://learn.microsoft.com/rest/api/storageservices/list-blobs
    """
    marker, markers = "", Markers(target)
    while True:
        try:
            page = read(lambda _: _fetch(target, deadline, prefix, marker), target, deadline.fresh())  # noqa: B023  # called at once
        except NotFound as error:
            raise error.but(message=f"there is no container {target.address.container}") from error.__cause__
        marker = page.marker
        markers.note(marker)
        yield from page.blobs
        if not marker:
            return


def _fetch(target: Target, deadline: Deadline, prefix: str, marker: str) -> _Page:
    from xml.etree import ElementTree as ET

    from azure.core.exceptions import DecodeError

    query = {"restype": "container", "comp": "list"}
    query |= {"prefix": prefix} if prefix else {}
    query |= {"marker": marker} if marker else {}
    answer = direct.send(target.account, "GET", target.address, {}, page_timeouts(deadline), query=query)
    try:
        root = ET.fromstring(answer.content)  # noqa: S314  # an answer of the service
        blobs = root.find("Blobs")
        if answer.status != HTTPStatus.OK or blobs is None:
            raise DecodeError("the answer is no list of blobs")
        found = [each for each in map(_parse, blobs.iter("Blob")) if each is not None]
        return _Page(found, root.findtext("NextMarker") or "")
    except (ET.ParseError, ValueError) as error:
        raise DecodeError(f"the answer is no list of blobs: {error}") from error


def _parse(found: "Element") -> ListedBlob | None:
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
    return ListedBlob(
        name=text,
        etag=quote(etag) if etag else None,
        last_modified=_parse_date(modified) if modified else None,
        content_length=int(length) if length else None,
        content_md5=told.get("Content-MD5"),
        blob_type=told.get("BlobType"),
    )


@lru_cache(maxsize=256)
def _parse_date(text: str) -> datetime:
    return parsedate_to_datetime(text)
