"""Open handles: those of SMB clients. Over REST there are none.

Sources: https://learn.microsoft.com/rest/api/storageservices/list-handles
https://learn.microsoft.com/rest/api/storageservices/force-close-handles
"""

import json
import logging
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from azguard.emulators.files import answers
from azguard.emulators.files.answers import FileAnswer, ServiceError
from azguard.emulators.files.database import DIRECTORY, Node, OpenHandle, ShareRecord, make_key
from azguard.emulators.files.directories import find_parent_id
from azguard.emulators.files.request import FileRequest
from azguard.emulators.files.samba import Samba, Unserved
from azguard.emulators.files.smb_client import SmbClient
from azguard.emulators.files.store import Store

_ALL = "*"
_LOG = logging.getLogger("azguard.emulators.files")
_ACCESS = {"Read": ("READ_DATA", "EXECUTE"), "Write": ("WRITE_DATA", "APPEND_DATA"), "Delete": ("DELETE",)}
_TCP = Path("/proc/net/tcp")
_ESTABLISHED = "01"
# How long a handle may take to go.
_CLOSE_SECONDS = 10.0
_POLL_SECONDS = 0.05


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
    node = store.get(share.root, request.path)
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
    node = store.find(share.root, handle.path)
    rights = "".join(answers.text("AccessRight", each) for each in handle.access)
    facts = {
        "HandleId": handle.id,
        "FileId": node.id if node else 0,
        "ParentId": find_parent_id(store, node) if node else 0,
        "SessionId": handle.session,
        "ClientIp": handle.client,
        "OpenTime": answers.format_date(handle.opened),
    }
    path = answers.name_text("Path", handle.path)
    return answers.element("Handle", answers.texts(facts), path, answers.element("AccessRightList", rights))


class SambaFiles:
    """The handles of a Samba that runs."""

    def __init__(self, samba: Samba, client: SmbClient) -> None:
        self._samba = samba
        self._client = client

    def list_handles(self, folder: Path) -> list[OpenHandle]:
        status = self._ask()
        sessions = {each["server_id"]["pid"]: each for each in status.get("sessions", {}).values()}
        mine = self._client.address
        found = []
        for file in _find_files(status, folder):
            for each in file["opens"].values():
                session = sessions.get(each["server_id"]["pid"], {})
                address = session.get("hostname", "").partition(":")[2]
                if address != mine:
                    found.append(_read_handle(file, each, session, address))
        return found

    def find_deleted(self, folder: Path) -> set[str]:
        if not _has_others(self._samba.port, 1 if self._client.address else 0):
            return set()
        return {_read_path(file) for file in _find_files(self._ask(), folder) if file["num_pending_deletes"]}

    def close_handles(self, handles: list[OpenHandle]) -> int:
        try:
            self._samba.allow_closing()
        except (Unserved, KeyError):
            _LOG.exception("Samba lets no handle be closed")
            return 0
        asked = {each.id for each in handles if self._client.close_handle(each.id)}
        deadline = time.monotonic() + _CLOSE_SECONDS
        left = asked
        while left and time.monotonic() < deadline:
            there = {
                _number(each) for file in self._ask().get("open_files", {}).values() for each in file["opens"].values()
            }
            left = asked & there
            if left:
                time.sleep(_POLL_SECONDS)  # smbd closes in its own time, and tells only who asks
        return len(asked - left)

    def _ask(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(self._samba.ask_status("--json"))
        except (Unserved, ValueError):
            _LOG.exception("Samba does not tell what is open")
            return {}
        return found


def _find_files(status: dict[str, Any], folder: Path) -> Iterator[dict[str, Any]]:
    """Yield what is open in the folder of a share."""
    for file in status.get("open_files", {}).values():
        if file["service_path"] == str(folder):
            yield file


def _read_handle(file: dict[str, Any], opened: dict[str, Any], session: dict[str, Any], address: str) -> OpenHandle:
    mask = opened["access_mask"]
    return OpenHandle(
        id=_number(opened),
        path=_read_path(file),
        session=str(session.get("session_id", "0")),
        client=address,
        opened=datetime.fromisoformat(opened["opened_at"]).timestamp(),
        access=tuple(name for name, bits in _ACCESS.items() if any(mask.get(bit) for bit in bits)),
    )


def _number(opened: dict[str, Any]) -> int:
    """Return the number by which Samba closes a handle: of 32 bits, from the process and its count."""
    return (int(opened["server_id"]["pid"]) << 16 | int(opened["share_file_id"])) & 0xFFFFFFFF


def _read_path(file: dict[str, Any]) -> str:
    name = str(file["filename"])
    return "" if name == "." else name


def _has_others(port: int, own: int) -> bool:
    """Return whether a client is connected to a port of this machine, beside so many of ours; if in doubt, yes."""
    try:
        lines = [line.split() for line in _TCP.read_text().splitlines()[1:]]
    except OSError:
        return True
    ending = f":{port:04X}"
    return sum(1 for line in lines if line[1].endswith(ending) and line[3] == _ESTABLISHED) > own
