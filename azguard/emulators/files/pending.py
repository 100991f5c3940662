"""Copies from other servers, which run on after they are answered.

While a copy is pending, its file has no content, and nothing else can be written to it. What a process that was killed
left pending has failed.
"""

import threading
import uuid

from azguard.emulators.files import answers
from azguard.emulators.files.errors import ServiceError
from azguard.emulators.files.foreign import UNREADABLE, ForeignSource
from azguard.emulators.files.records import Node, PendingCopy
from azguard.emulators.files.store import Store

_ID, _STATUS, _PROGRESS = "x-ms-copy-id", "x-ms-copy-status", "x-ms-copy-progress"
_COMPLETED, _DESCRIPTION = "x-ms-copy-completion-time", "x-ms-copy-status-description"
_SOURCE = "x-ms-copy-source"
_WHY_UNREADABLE = '500 InternalServerError "Copy failed when reading the source."'
_WHY_CHANGED = '412 ConditionNotMet "Copy failed when reading the source."'
_WHY_ENDED = '500 InternalServerError "The emulator was ended."'


def describe(store: Store, node: Node) -> dict[str, str]:
    """Return the headers that tell of the copy by which a file was last written."""
    if node.copy.get(_STATUS) != "pending":
        return node.copy
    running = store.pending.get(node.copy[_ID])
    if running is None:
        return {**node.copy, _STATUS: "failed", _DESCRIPTION: _WHY_ENDED}
    return {**node.copy, _PROGRESS: f"{running.done}/{running.size}"}


def refuse(store: Store, node: Node) -> None:
    """Refuse to write a file that is the destination of a pending copy.

    Raises:
        ServiceError: it is.
    """
    if node.copy.get(_ID) in store.pending:
        raise ServiceError("PendingCopyOperation")


def begin(store: Store, node: Node, source: ForeignSource) -> None:
    """Begin to copy a source into a file, whose node is saved already, and tell so in its node."""
    copy_id = str(uuid.uuid4())
    node.copy = {
        _ID: copy_id,
        _SOURCE: source.url.partition("?")[0],
        _STATUS: "pending",
        _PROGRESS: f"0/{source.size}",
    }
    store.save(node)
    store.pending[copy_id] = running = PendingCopy(node.root, source.size)
    threading.Thread(target=_run, args=(store, copy_id, running, source), daemon=True).start()


def complete(store: Store, node: Node, source: str) -> None:
    """Tell in the node of a file that it was copied as a whole from a source, a URL."""
    node.copy = {
        _ID: str(uuid.uuid4()),
        _SOURCE: source.partition("?")[0],
        _STATUS: "success",
        _PROGRESS: f"{node.size}/{node.size}",
        _COMPLETED: answers.format_date(store.now()),
    }
    store.save(node)


def abort(store: Store, node: Node, copy_id: str) -> None:
    """Stop a copy: the file stays, without content.

    Raises:
        ServiceError: there is none, or it is another one.
    """
    if node.copy.get(_ID) not in store.pending:
        raise ServiceError("NoPendingCopyOperation")
    if node.copy[_ID] != copy_id:
        raise ServiceError("CopyIdMismatch")
    running = store.pending.pop(copy_id)
    running.is_stopped = True
    node.copy = {
        **node.copy,
        _STATUS: "aborted",
        _PROGRESS: f"{running.done}/{running.size}",
        _COMPLETED: answers.format_date(store.now()),
    }
    store.save_changed(node)


def _run(store: Store, copy_id: str, running: PendingCopy, source: ForeignSource) -> None:
    partial = store.locate_partial(copy_id)
    why = ""
    try:
        with partial.open("wb") as file:
            for part in source.read():
                if running.is_stopped:
                    break
                file.write(part)
                running.done += len(part)
        if not source.is_unchanged():
            why = _WHY_CHANGED
        elif running.done != source.size:
            why = _WHY_UNREADABLE
    except (*UNREADABLE, ServiceError):
        why = _WHY_UNREADABLE
    with store.database.lock:
        if not running.is_stopped:
            _finish(store, copy_id, why)
    partial.unlink(missing_ok=True)


def _finish(store: Store, copy_id: str, why: str) -> None:
    running = store.pending.pop(copy_id)
    with store.transaction():
        found = (each for each in store.database.list_all_nodes(running.root) if each.copy.get(_ID) == copy_id)
        node = next(found, None)
        if node is None:
            return
        ended = {_PROGRESS: f"{running.done}/{running.size}", _COMPLETED: answers.format_date(store.now())}
        if why:
            node.copy = {**node.copy, **ended, _STATUS: "failed", _DESCRIPTION: why}
        else:
            store.disk.take(node.root, node.path, store.locate_partial(copy_id))
            node.ranges = [(0, running.size)] if running.size else []
            node.copy = {**node.copy, **ended, _STATUS: "success"}
        store.save_changed(node)
