"""Open handles: those of SMB clients. Over REST there are none.

Sources: https://learn.microsoft.com/rest/api/storageservices/list-handles
https://learn.microsoft.com/rest/api/storageservices/force-close-handles
"""

from azguard.emulators.files import answers
from azguard.emulators.files.directories import find_parent_id
from azguard.emulators.files.errors import ServiceError
from azguard.emulators.files.records import DIRECTORY, Node, OpenHandle, ShareRecord, make_key
from azguard.emulators.files.store import Store
from azguard.emulators.files.wire import FileAnswer, FileRequest

_ALL = "*"


def show(store: Store, request: FileRequest) -> FileAnswer:
    """List the handles on a file, a directory or a share."""
    share = store.get_share(request)
    found = {f"{each.id:020}": each for each in _find(store, share, request)}
    names, marker = answers.take_page(found, request.query.get("marker"), request.query.get("maxresults"))
    root = answers.element(
        "EnumerationResults",
        answers.element("Entries", *(_describe(store, share, found[name]) for name in names)),
        answers.text("NextMarker", marker),
    )
    return answers.respond_xml(root)


def close(store: Store, request: FileRequest) -> FileAnswer:
    """Close handles; the answer counts them."""
    wanted = request.require("x-ms-handle-id")
    if wanted != _ALL and not wanted.isdecimal():
        raise ServiceError("InvalidHeaderValue")
    found = [each for each in _find(store, store.get_share(request), request) if wanted in (_ALL, str(each.id))]
    closed = store.smb.close_handles(found) if store.smb and found else 0
    return FileAnswer(
        200,
        {
            "x-ms-number-of-handles-closed": str(closed),
            "x-ms-number-of-handles-failed": str(len(found) - closed),
        },
    )


def _find(store: Store, share: ShareRecord, request: FileRequest) -> list[OpenHandle]:
    node = store.get(share, request.path)
    if store.smb is None or not store.serves_smb(share):
        return []
    is_recursive = node.kind == DIRECTORY and request.flag("x-ms-recursive")
    handles = store.smb.list_handles(store.disk.locate(share.root))
    return [each for each in handles if _is_in(node, each, is_recursive=is_recursive)]


def _is_in(node: Node, handle: OpenHandle, *, is_recursive: bool) -> bool:
    key = make_key(handle.path)
    is_below = not node.path or key.startswith(f"{node.key}/")
    return key == node.key or (is_recursive and is_below)


def _describe(store: Store, share: ShareRecord, handle: OpenHandle) -> str:
    node = store.find(share, handle.path)
    rights = "".join(answers.text("AccessRight", each) for each in handle.access)
    facts = {
        "HandleId": handle.id,
        "FileId": node.id if node else 0,
        "ParentId": find_parent_id(store, share, node) if node else 0,
        "SessionId": handle.session,
        "ClientIp": handle.client,
        "OpenTime": answers.format_date(handle.opened),
    }
    path = answers.name_text("Path", handle.path)
    return answers.element("Handle", answers.texts(facts), path, answers.element("AccessRightList", rights))
