"""What a listing tells of a resource, by the names that the fields of an answer have."""

from base64 import b64decode
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from azguard.wire import xml
from azguard.wire.answers import (
    Answer,
    ContentFields,
    CopyFields,
    LeaseFields,
    parse_date,
    parse_moment,
    read_flag,
    read_list,
)
from azguard.wire.failures import Unreadable

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

#: The element of each field, and how it is read.
_ELEMENTS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "Snapshot": ("snapshot", str),
    "VersionId": ("version_id", str),
    "IsCurrentVersion": ("is_current_version", read_flag),
    "Deleted": ("deleted", read_flag),
    "Etag": ("etag", str),
    "Last-Modified": ("last_modified", parse_date),
    "Creation-Time": ("creation_time", parse_date),
    "Content-Length": ("size", int),
    "Content-Type": ("content_type", str),
    "Content-Encoding": ("content_encoding", str),
    "Content-Language": ("content_language", str),
    "Content-Disposition": ("content_disposition", str),
    "Cache-Control": ("cache_control", str),
    "Content-MD5": ("content_md5", b64decode),
    "BlobType": ("blob_type", str),
    "AccessTier": ("access_tier", str),
    "TagCount": ("tag_count", int),
    "ResourceType": ("resource_type", str),
    "LeaseStatus": ("lease_status", str),
    "LeaseState": ("lease_state", str),
    "LeaseDuration": ("lease_duration", str),
    "CopyId": ("copy_id", str),
    "CopySource": ("copy_source", str),
    "CopyStatus": ("copy_status", str),
    "CopyProgress": ("copy_progress", str),
    "CopyStatusDescription": ("copy_status_description", str),
    "CopyCompletionTime": ("copy_completion_time", parse_date),
    "PublicAccess": ("public_access", str),
    "HasImmutabilityPolicy": ("has_immutability_policy", read_flag),
    "HasLegalHold": ("has_legal_hold", read_flag),
    "Quota": ("quota", int),
    "EnabledProtocols": ("protocols", read_list),
    "RootSquash": ("root_squash", str),
    "Attributes": ("attributes", str),
    "CreationTime": ("created", parse_moment),
    "LastWriteTime": ("written", parse_moment),
    "ChangeTime": ("changed", parse_moment),
    "PermissionKey": ("permission_key", str),
    "FileId": ("file_id", str),
    "ParentId": ("parent_id", str),
    "HandleId": ("handle_id", str),
    "SessionId": ("session_id", str),
    "ClientIp": ("client", str),
    "ClientName": ("client_name", str),
    "OpenTime": ("opened", parse_date),
    "LastReconnectTime": ("reconnected", parse_date),
}


_NAMES = frozenset(name for name, _ in _ELEMENTS.values())


def _gather(kind: Callable[..., Any], names: tuple[str, ...], prefix: str = "") -> Any:
    """Return a property that has these fields in one value, as an answer has them."""
    all_names = [prefix + name for name in names]
    return property(lambda item: kind(*map(vars(item).get, all_names)))


class Listed:
    """One item of a listing; what it does not tell is None. The name of a handle is its path, empty in a root.

    Raises:
        ValueError: it has no name, or tells something in a form that is none.
    """

    lease = _gather(LeaseFields, LeaseFields._fields, "lease_")
    copy = _gather(CopyFields, CopyFields._fields, "copy_")
    content_settings = _gather(ContentFields, ContentFields._fields)

    def __init__(self, element: "Element") -> None:
        self.tag = element.tag
        self.name = ""
        self.metadata: dict[str, str] = {}
        #: Of a handle: for what it is open.
        self.access: tuple[str, ...] = ()
        for each in element:
            if each.tag in ("Name", "Path"):
                # What XML cannot hold is encoded as in a URL.
                self.name = unquote(each.text or "") if each.get("Encoded") == "true" else each.text or ""
            elif each.tag == "Metadata":
                self.metadata = {entry.tag: entry.text or "" for entry in each}
            elif each.tag == "Properties":
                self._read(each)
            elif each.tag == "AccessRightList":
                self.access = tuple(right.text or "" for right in each)
        self._read(element)
        if not self.name and self.handle_id is None:
            raise ValueError("an item has no name")

    def _read(self, element: "Element") -> None:
        told = self.__dict__
        for each in element:
            if (text := each.text) and (field := _ELEMENTS.get(each.tag)):
                told[field[0]] = field[1](text)

    def __getattr__(self, name: str) -> Any:
        if name in _NAMES:
            return None
        raise AttributeError(name)


class Page(NamedTuple):
    """A page of a listing."""

    items: list[Listed]
    #: Where the next one begins; None after the last one.
    marker: str | None
    answer: Answer


def parse_page(answer: Answer, wrapper: str, *tags: str) -> Page:
    """Return a page: what is in its element ``wrapper``, in the order of these tags.

    Raises:
        Unreadable: it is no such page.
    """
    root = xml.parse(answer, "list")
    listed = root.find(wrapper)
    if listed is None:
        raise Unreadable(f"the answer is no list of {wrapper.lower()}")
    try:
        items = [Listed(each) for tag in tags for each in listed.iterfind(tag)]
    except (ValueError, OverflowError) as error:
        raise Unreadable(f"the answer is no list of {wrapper.lower()}: {error}") from error
    return Page(items, root.findtext("NextMarker") or None, answer)
