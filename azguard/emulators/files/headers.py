"""Properties, times and ranges in headers."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from azguard.emulators.files import answers
from azguard.emulators.files.answers import ServiceError
from azguard.emulators.files.database import DIRECTORY, Node
from azguard.emulators.files.request import FileRequest
from azguard.emulators.files.store import Store

#: The headers that set content properties, and their names in answers.
CONTENT = {
    "x-ms-content-type": "Content-Type",
    "x-ms-content-encoding": "Content-Encoding",
    "x-ms-content-language": "Content-Language",
    "x-ms-cache-control": "Cache-Control",
    "x-ms-content-md5": "Content-MD5",
    "x-ms-content-disposition": "Content-Disposition",
}
#: The same, as a SAS sets them for the answer.
_OVERRIDES = {
    "rscc": "Cache-Control",
    "rscd": "Content-Disposition",
    "rsce": "Content-Encoding",
    "rscl": "Content-Language",
    "rsct": "Content-Type",
}
_ATTRIBUTES = (
    "ReadOnly", "Hidden", "System", "None", "Directory", "Archive", "Temporary", "Offline", "NotContentIndexed",
    "NoScrubData",
)  # fmt: skip
# Of names and values together.
_METADATA_BYTES = 8192
# What a copy names to take a property of its source.
_SOURCE = "source"
_TIMES = {
    "x-ms-file-creation-time": "created",
    "x-ms-file-last-write-time": "written",
    "x-ms-file-change-time": "changed",
}
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,7}))?(Z|[+-]\d\d:\d\d)?\Z", re.ASCII)
_RANGE = re.compile(r"bytes=(\d+)-(\d*)\Z")
# The parts that a security descriptor may have: owner, group, and access lists.
_SDDL = re.compile(r"(O:[^:()]+)?(G:[^:()]+)?([DS]:.*)?\Z", re.DOTALL)
_SDDL_START = re.compile(r"[OGDS]:")


def apply_smb_properties(
    store: Store, node: Node, request: FileRequest, *, new: bool, source: Node | None = None
) -> None:
    """Set the attributes, times and permission that a request names; a copy may name those of its source."""
    headers = request.headers
    attributes = headers.get("x-ms-file-attributes")
    if source is not None and (attributes or "").lower() == _SOURCE:
        node.attributes = source.attributes
    elif attributes and attributes.lower() != "preserve":
        node.attributes = _read_attributes(attributes, node.kind)
    now = answers.format_time(store.now())
    for header, field in _TIMES.items():
        value = headers.get(header)
        if value and value.lower() == "now":
            setattr(node, field, now)
        elif source is not None and (value or "").lower() == _SOURCE:
            setattr(node, field, getattr(source, field))
        elif value and value.lower() != "preserve":
            setattr(node, field, _read_time(value))
    if not new and "x-ms-file-change-time" not in headers:
        node.changed = now
    if source is not None and headers.get("x-ms-file-permission-copy-mode", "").lower() == _SOURCE:
        node.permission_key = source.permission_key
    else:
        _apply_permission(store, node, headers)


def _read_attributes(text: str, kind: str) -> str:
    """Return attributes as the service writes them."""
    known = {each.lower(): each for each in _ATTRIBUTES}
    try:
        found = [known[each.strip().lower()] for each in text.split("|")]
    except KeyError:
        raise ServiceError("InvalidHeaderValue") from None
    if kind == DIRECTORY and "Directory" not in found:
        found = ["Directory", *(each for each in found if each != "None")]
    # A file that was made with none is answered, and read, with this one.
    if kind != DIRECTORY and found == ["None"]:
        found = ["Archive"]
    return " | ".join(found)


def smb_headers(node: Node, parent_id: int) -> dict[str, str]:
    """Return the headers that tell of attributes, times and ids."""
    return {
        "x-ms-file-attributes": node.attributes,
        "x-ms-file-creation-time": node.created,
        "x-ms-file-last-write-time": node.written,
        "x-ms-file-change-time": node.changed,
        "x-ms-file-permission-key": node.permission_key,
        "x-ms-file-id": str(node.id),
        "x-ms-file-parent-id": str(parent_id),
    }


def read_content(request: FileRequest) -> dict[str, str]:
    """Return the content properties that a request sets, by their names in answers."""
    headers = request.headers
    return {shown: headers[name] for name, shown in CONTENT.items() if headers.get(name)}


def read_overrides(request: FileRequest) -> dict[str, str]:
    """Return the content properties that a SAS sets for the answer, by their names there."""
    return {shown: request.query[name] for name, shown in _OVERRIDES.items() if request.query.get(name)}


def check_metadata(metadata: Mapping[str, str]) -> dict[str, str]:
    """Return metadata that may be kept."""
    names = [name.lower() for name in metadata]
    if not all(name.isidentifier() for name in names):
        raise ServiceError("InvalidMetadata")
    if len(set(names)) < len(names):
        raise ServiceError("InvalidMetadata")
    if sum(len(name) + len(value) for name, value in metadata.items()) > _METADATA_BYTES:
        raise ServiceError("MetadataTooLarge")
    return dict(metadata)


def read_range(request: FileRequest) -> tuple[int, int | None] | None:
    """Return the first byte of a request's range and the one past its end, None if it is open; None if there is none.

    Raises:
        ServiceError: it is not valid.
    """
    value = request.headers.get("x-ms-range") or request.headers.get("range")
    if value is None:
        return None
    found = _RANGE.match(value)
    if found is None:
        raise ServiceError("InvalidHeaderValue")
    start = int(found[1])
    if not found[2]:
        return start, None
    end = int(found[2]) + 1
    if end <= start:
        raise ServiceError("InvalidHeaderValue")
    return start, end


def _apply_permission(store: Store, node: Node, headers: Mapping[str, str]) -> None:
    permission, key = headers.get("x-ms-file-permission"), headers.get("x-ms-file-permission-key")
    if permission and key:
        raise ServiceError("InvalidHeaderValue")
    if key:
        if store.database.find_permission(key) is None:
            raise ServiceError("FileInvalidPermissionKey")
        node.permission_key = key
    elif permission and permission.lower() not in ("inherit", "preserve"):
        node.permission_key = store.keep_permission(check_permission(permission, headers))


def check_permission(text: str, headers: Mapping[str, str]) -> str:
    """Return a permission that looks like one; the binary form is taken as it is."""
    if headers.get("x-ms-file-permission-format", "").lower() == "binary":
        return text
    if not _SDDL_START.match(text) or not _SDDL.match(text):
        raise ServiceError("FileInvalidPermission")
    return text


def _read_time(value: str) -> str:
    found = _TIME.match(value)
    try:
        moment = datetime.fromisoformat(f"{found[1]}{found[3] or 'Z'}").astimezone(UTC) if found else None
    except (ValueError, OverflowError):
        moment = None
    if found is None or moment is None:
        raise ServiceError("InvalidHeaderValue")
    return f"{moment.replace(tzinfo=None).isoformat()}.{(found[2] or '').ljust(7, '0')}Z"
