"""A long-lived process of a race: does what ``azguard safe-update`` does, again and again.

A line on standard input is a job; a line on standard output is what its caller would be told. It ends when standard
input closes.
"""

import json
import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from azguard.accounts import account
from azguard.accounts.account import Account, Target
from azguard.accounts.endpoints import plain
from azguard.address import Address, Kind
from azguard.blobs.updates import BlobContent, BlobMetadata
from azguard.commands.safe_update import typed_edits
from azguard.documents import edits
from azguard.errors import AzguardError
from azguard.folders import Folders
from azguard.processes import filter_command
from azguard.requests import trace
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, op_of_key
from azguard.updates import update
from azguard.updates.local_runs import LocalQueue, WriteJournal
from azguard.updates.resource import Change, UpdateHooks, UpdatePlan, UpdateResult
from tests.races.job import CONTAINER, FILTER, LINES, How

READY = b"ready"
_EDITS = {
    How.INCREMENT: ("--increment", "count"),
    How.METADATA: ("--increment", "hits"),
    How.CREATE: ("--increment", "count"),
    How.LEASE: ("--increment", "count"),
}


def main(folders: Folders) -> None:
    """Work until standard input closes."""
    import azure.storage.blob  # noqa: F401  # so that no first job pays for it

    _say(READY.decode())
    with trace.into(os.environ[trace.VARIABLE], "safe-update", _say):
        while line := sys.stdin.readline():
            _say(json.dumps(_told(json.loads(line), folders)))


def _told(job: dict[str, Any], folders: Folders) -> dict[str, Any]:
    try:
        if How(job["how"]).reads:
            return {"code": 0, "value": _read(job)}
        ended = _update(job, folders)
    except AzguardError as error:
        # The caller would read this, and script by the exit status.
        return {**error.facts, "code": error.exit_code, "message": error.message}
    return {
        "code": 0,
        "outcome": ended.outcome,
        "etag": ended.committed.etag,
        "attempts": ended.attempts,
        "doubts": ended.doubts,
        "conflicts": ended.conflicts,
        "value": _find_value(job, ended.content) if ended.outcome == "committed" else None,
    }


def _read(job: dict[str, Any]) -> Any:
    target = Target(_account(job["port"]), Address(Kind.BLOB, (CONTAINER, job["blob"])))
    resource = BlobMetadata(target) if How(job["how"]) is How.READ_METADATA else BlobContent(target)
    return _find_value(job, resource.read(Deadline(job["timeout"], answer_seconds=job["answer"])).content)


def _find_value(job: dict[str, Any], content: bytes | None) -> Any:
    """Return what a content counts, or lists."""
    if content is None or job["blob"] == LINES:
        return None if content is None else content.decode().splitlines()
    found = json.loads(content)
    return int(found.get("hits", 0)) if "metadata" in job["how"] else found["count"]


def _update(job: dict[str, Any], folders: Folders) -> UpdateResult:
    how = How(job["how"])
    target = Target(_account(job["port"]), Address(Kind.BLOB, (CONTAINER, job["blob"])))
    deadline = Deadline(job["timeout"], answer_seconds=job["answer"])
    op = op_of_key(job["key"], plain(target.endpoint), str(target.address))
    plan = UpdatePlan(
        transform=_transform(how, op, deadline),
        op=op,
        is_keyed=True,
        change=Change.of([how], how),
        create=b'{"count": 0}' if how is How.CREATE else None,
        guard_by_lease=how is How.LEASE,
        wait_seconds=job["timeout"] if how is How.LEASE else None,
    )
    tools = UpdateHooks(
        queue=lambda: LocalQueue(folders.queues, f"{target.endpoint} {target.address}", deadline),
        journal=WriteJournal(folders.attempts, op, keyed=True),
    )
    resource = BlobMetadata(target) if how is How.METADATA else BlobContent(target)
    return update.update(resource, plan, deadline, tools)


def _transform(how: How, op: str, deadline: Deadline) -> Callable[[bytes], bytes]:
    if how is How.FILTER:
        end = deadline.started + deadline.seconds
        return lambda content: filter_command.run(FILTER, content, environ={}, deadline=end, clock=deadline.clock)
    if how is How.APPEND:
        return lambda content: edits.apply([edits.AppendText(f"{op}\n")], content)
    option, text = _EDITS[how]
    metadata = how is How.METADATA
    edit = typed_edits.parse_edit(option, text, lambda name: Path(name).read_bytes(), metadata=metadata)
    if metadata:
        return lambda content: edits.apply_to_metadata_text([edit], content, KEY)
    return lambda content: edits.apply([edit], content)


@cache
def _account(port: int) -> Account:
    return account.emulator({"blob": port})


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Folders.of(os.environ))
