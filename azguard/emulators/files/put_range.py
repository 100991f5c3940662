"""Ranges of files: written, cleared, copied from elsewhere and listed.

Sources: https://learn.microsoft.com/rest/api/storageservices/put-range
https://learn.microsoft.com/rest/api/storageservices/list-ranges
"""

from azguard.emulators.files import answers
from azguard.emulators.files.answers import FileAnswer, ServiceError
from azguard.emulators.files.copies import read_source
from azguard.emulators.files.database import Node, ShareRecord
from azguard.emulators.files.file_operations import check_body_md5, compute_md5, get_for_read, get_for_write
from azguard.emulators.files.request import FileRequest, read_range
from azguard.emulators.files.store import Store

_LARGEST_RANGE = 4 * 1024**2
_MOST_RANGES = 10_000
# A difference is told in pieces of so many bytes.
_COMPARED = 512
Ranges = list[tuple[int, int]]


def put(store: Store, request: FileRequest) -> FileAnswer:
    """Write a range, clear it, or fill it from a URL."""
    share = store.get_share(request)
    how = request.require("x-ms-write").lower()
    if how not in ("update", "clear"):
        raise ServiceError("InvalidHeaderValue")
    asked = read_range(request)
    if asked is None or asked[1] is None:
        raise ServiceError("MissingRequiredHeader" if asked is None else "InvalidHeaderValue")
    start, end = asked[0], asked[1]
    node = get_for_write(store, request)
    # The service looks at the source before it looks at the target.
    data = b"" if how == "clear" else _read_data(store, request, end - start)
    if end > node.size:
        raise ServiceError("InvalidRange")
    if how == "clear":
        store.disk.clear(share.root, node.path, start, end)
        node.ranges = _subtract(node.ranges, start, end)
    else:
        store.room.take(share, end - start - sum(e - s for s, e in _clip(node.ranges, start, end)))
        store.disk.write(share.root, node.path, start, data)
        node.ranges = add(node.ranges, start, end)
    store.note_change(node, start, end)
    if request.headers.get("x-ms-file-last-write-time", "").lower() != "preserve":
        node.written = node.changed = answers.format_time(store.now())
    store.save_changed(node)
    headers = {
        **node.version_headers,
        "x-ms-file-last-write-time": node.written,
        "x-ms-request-server-encrypted": "true",
    }
    return FileAnswer(201, {**headers, **({"Content-MD5": compute_md5(data)} if data else {})})


def show(store: Store, request: FileRequest) -> FileAnswer:
    """List the ranges of a file that have data, or that differ from an older snapshot."""
    node = get_for_read(store, request)
    asked = read_range(request) or (0, None)
    start, end = asked[0], min(node.size, asked[1] or node.size)
    previous = request.query.get("prevsharesnapshot")
    cleared: Ranges = []
    if previous is None:
        written = _clip(node.ranges, start, end)
    else:
        written, cleared = _compare(store, request, node, previous, (start, end))
    pages = [("Range", each) for each in written] + [("ClearRange", each) for each in cleared]
    pages.sort(key=lambda page: page[1])
    shown, marker = _take_page(request, pages)
    items = [answers.element(tag, answers.texts({"Start": s, "End": e - 1})) for tag, (s, e) in shown]
    headers = {**node.version_headers, "x-ms-content-length": str(node.size)}
    ending = answers.text("NextMarker", marker) if "maxresults" in request.query else ""
    return answers.respond_xml(answers.element("Ranges", *items, ending), headers)


def add(ranges: Ranges, start: int, end: int) -> Ranges:
    """Return ranges with one more, touching ones joined."""
    apart = [each for each in ranges if each[1] < start or each[0] > end]
    joined = [each for each in ranges if each[1] >= start and each[0] <= end]
    new = (min([start, *(each[0] for each in joined)]), max([end, *(each[1] for each in joined)]))
    return sorted([*apart, new])


def _subtract(ranges: Ranges, start: int, end: int) -> Ranges:
    left = [(s, min(e, start)) for s, e in ranges if s < start]
    right = [(max(s, end), e) for s, e in ranges if e > end]
    return sorted({*left, *right})


def _clip(ranges: Ranges, start: int, end: int) -> Ranges:
    return [(max(s, start), min(e, end)) for s, e in ranges if s < end and e > start]


def _read_data(store: Store, request: FileRequest, length: int) -> bytes:
    if length > _LARGEST_RANGE:
        raise ServiceError("RequestBodyTooLarge")
    if "x-ms-copy-source" in request.headers:
        data = read_source(store, request, length)
    else:
        check_body_md5(request)
        data = request.body
        if len(data) != length:
            raise ServiceError("InvalidHeaderValue")
    return data


def _take_page(
    request: FileRequest, pages: list[tuple[str, tuple[int, int]]]
) -> tuple[list[tuple[str, tuple[int, int]]], str]:
    marker, limit = request.query.get("marker", ""), request.query.get("maxresults")
    if limit is None:
        return pages, ""
    if not limit.isdecimal() or not int(limit) or (marker and not marker.isdecimal()):
        raise ServiceError("OutOfRangeInput")
    begin = int(marker or 0)
    end = begin + min(int(limit), _MOST_RANGES)
    return pages[begin:end], str(end) if end < len(pages) else ""


def _compare(
    store: Store, request: FileRequest, node: Node, previous: str, within: tuple[int, int]
) -> tuple[Ranges, Ranges]:
    """Return the ranges that were written, and those that were cleared, since an older snapshot."""
    share = store.database.find_share(request.share, previous)
    if share is None:
        raise ServiceError("ShareNotFound")
    old = _find_old(store, share, node, keeps_renamed=request.flag("x-ms-file-support-rename"))
    if old is None:
        return _clip(node.ranges, *within), []
    written, gone = _find_noted(old, node) or (_find_written(store, old, node), old.ranges)
    for start, end in node.ranges:
        gone = _subtract(gone, start, end)
    return _clip(written, *within), _clip(gone, *within)


def _find_old(store: Store, share: ShareRecord, node: Node, *, keeps_renamed: bool) -> Node | None:
    """Return a file as it was in a snapshot; None if it was not there."""
    there = store.find(share.root, node.path)
    if there is not None and there.id == node.id:
        return there
    same = next((each for each in store.database.list_all_nodes(share.root) if each.id == node.id), None)
    if there is not None or (same is not None and not keeps_renamed):
        raise ServiceError("FileGenerationMismatch")
    return same


def _find_noted(old: Node, node: Node) -> tuple[Ranges, Ranges] | None:
    """Return the parts that were written, and those that were written or cleared; None if that was not all noted."""
    if old.changes is None or node.changes is None:
        return None
    written: Ranges = []
    changed: Ranges = []
    for start, end, number in node.changes:
        if number >= old.root:
            changed = add(changed, start, end)
            for each in _clip(node.ranges, start, end):
                written = add(written, *each)
    return written, changed


def _find_written(store: Store, old: Node, node: Node) -> Ranges:
    """Return the parts whose bytes differ, and are not cleared."""
    written: Ranges = []
    for start, end in node.ranges:
        for begin in range(start - start % _COMPARED, end, _COMPARED):
            piece = max(start, begin), min(end, begin + _COMPARED)
            if store.disk.read(node.root, node.path, *piece) != store.disk.read(old.root, old.path, *piece):
                written = add(written, *piece)
    return written
