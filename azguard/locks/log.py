"""The history of a lock: who held it, from when to when, and how that ended. An append blob beside the lock.

It is named ``NAME!log``, with the mark of the queue's tickets, so that no name of a lock is like it by accident. Each
holder appends a line of JSON once the lock is released, in one request, which is not repeated. A holder that is killed
appends nothing. The next one carries the record that it found, so that the one before is known all the same.

Not guaranteed: all of it. An append that fails, or that the caller may not do, is no error; a line may be there twice,
and is read once. The service takes 50,000 appends; after that nothing is added until the blob is deleted.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, ClassVar

from azguard import columns
from azguard.accounts.target import Target
from azguard.address import Address, Kind
from azguard.conditions.resolve import Conditions
from azguard.errors import NotFound
from azguard.leases import state as lease_state
from azguard.leases.foreign import escape
from azguard.leases.owners import Owner
from azguard.locks.lock_blobs import LockRecord
from azguard.requests.calls import CallOutcome, describe, send_once
from azguard.requests.deadline import Deadline
from azguard.requests.service_errors import status
from azguard.times import iso

#: What follows the name of a lock in that of its history.
SUFFIX = "!log"
# The command has ended, and its status waits for this: a history is worth no more.
_SECONDS = 2.0
_LEAST_SECONDS = 0.2
RELEASED = "released"
LOST = "lost"
#: Of one that had to wait for readers inside, and whose command was never run.
GAVE_UP = "gave_up"
#: Of a holder that has left no line.
UNKNOWN = "unknown"
_READERS_INSIDE = "readers were still inside, and its command was not run"
_NO_LINE = "it ended without a release, or keeps no history"


@dataclass(frozen=True)
class HolderLine:
    """One line: a holder, and how it ended."""

    COLUMNS: ClassVar = (
        columns.SINCE,
        columns.ENDED,
        columns.HOLDER_NAME,
        columns.OUTCOME,
        columns.FENCE,
        columns.REASON,
        columns.RUN,
    )

    address: str
    fence: int | None
    #: ``released``, ``lost``, ``gave_up``, or ``unknown`` of one that has left no line.
    outcome: str
    #: As ``user@host``.
    holder: str
    #: By the service's clock.
    since: str | None
    ended: str | None
    reason: str | None
    run: str | None
    command: str
    pid: int | None
    #: Why it was lost, or given up.
    why: str | None


@dataclass(frozen=True)
class LogLine:
    """What a holder appends."""

    holding: HolderLine
    #: Who held the lock before, as its record said; None if there was none.
    before: HolderLine | None


def build_line(target: Target, record: LockRecord, seconds: float, lost: str | None) -> LogLine:
    """Return the line of a holder that held a lock for so many seconds; ``lost`` says why it was lost."""
    address = str(target.address)
    holding = describe_holding(address, record.owner, record.fence, lost=lost, ended=_add(record.owner.since, seconds))
    return LogLine(holding, _describe_before(address, record))


def build_before(target: Target, record: LockRecord) -> LogLine | None:
    """Return the line that tells only of the holder before, for one whose own line another machine may write."""
    before = _describe_before(str(target.address), record)
    return None if before is None else LogLine(before, None)


def build_given_up(target: Target, record: LockRecord, seconds: float) -> LogLine:
    """Return the line of a holder that waited so many seconds for the readers inside, and then gave up."""
    line = build_line(target, record, seconds, None)
    return replace(line, holding=replace(line.holding, outcome=GAVE_UP, why=_READERS_INSIDE))


def describe_holding(
    address: str, owner: Owner, fence: int | None, *, lost: str | None, ended: str | None
) -> HolderLine:
    """Return one holder's line; ``lost`` says why it was lost."""
    return _describe(address, owner, fence, RELEASED if lost is None else LOST, lost, ended)


def append(lock: Target, line: LogLine, tell: Callable[[str], None]) -> None:
    """Append a line to the history of a lock, if that is done within two seconds; no failure is an error."""
    deadline = Deadline(_SECONDS)
    log = find_log(lock)
    client = log.account.blob(log.address)
    text = json.dumps(asdict(line), separators=(",", ":")).encode() + b"\n"

    def timeouts() -> Mapping[str, Any]:
        left = max(_LEAST_SECONDS, deadline.remaining)
        return {"connection_timeout": left, "read_timeout": left}

    sent = send_once(lambda: client.append_block(text, length=len(text), **timeouts()))
    if sent.outcome is CallOutcome.REFUSED and _is_missing(sent.error):
        # If another holder has made it meanwhile, it is there.
        send_once(lambda: client.create_append_blob(headers={"If-None-Match": "*"}, **timeouts()))
        if not deadline.passed:
            sent = send_once(lambda: client.append_block(text, length=len(text), **timeouts()))
    if sent.error is not None:
        tell(f"lock: the history of {lock.address} lacks this holder: {describe(sent)}")


def read(lock: Target, deadline: Deadline) -> list[HolderLine]:
    """Return the holders of a lock, the oldest first.

    Raises:
        NotFound: there is no such lock.
    """
    from azguard.blobs.download import Download

    try:
        content = b"".join(Download(find_log(lock), Conditions(), deadline.fresh))
    except NotFound:
        lease_state.look(lock, deadline)
        return []
    lines = [line for text in content.split(b"\n") if (line := _parse(text)) is not None]
    return list(_order(lines))


def find_log(lock: Target) -> Target:
    """Return the blob with the history of a lock."""
    return Target(lock.account, Address(Kind.BLOB, (lock.address.container, f"{lock.address.name}{SUFFIX}")))


def _describe_before(address: str, record: LockRecord) -> HolderLine | None:
    if record.before is None:
        return None
    why = _NO_LINE if record.before.until is None else "the next one took it, after its time or a break"
    return _describe(address, record.before, record.fence_before, UNKNOWN, why, None)


def _order(lines: list[LogLine]) -> Iterator[HolderLine]:
    """Yield each holder once, by its fence; those without a line of their own from the lines of the next ones."""
    found: dict[tuple[str, int | None], HolderLine] = {}
    for line in lines:
        if line.holding.outcome != UNKNOWN:
            found[line.holding.address, line.holding.fence] = line.holding
    for line in lines:
        for each in (line.holding, line.before):
            if each is not None:
                found.setdefault((each.address, each.fence), each)
    yield from sorted(found.values(), key=lambda each: (each.since or "", each.fence or 0))


def _describe(
    address: str, owner: Owner, fence: int | None, outcome: str, why: str | None, ended: str | None
) -> HolderLine:
    return HolderLine(
        address=address,
        fence=fence,
        outcome=outcome,
        holder=owner.name,
        since=owner.since,
        ended=ended,
        reason=owner.reason,
        run=owner.run,
        command=owner.command,
        pid=owner.pid,
        why=why,
    )


def _add(since: str | None, seconds: float) -> str | None:
    return None if since is None else iso(datetime.fromisoformat(since) + timedelta(seconds=round(seconds)))


def _is_missing(error: Any) -> bool:
    return status(error) == HTTPStatus.NOT_FOUND


def _parse(text: bytes) -> LogLine | None:
    """Return a line; None if it is not one of ours."""
    try:
        found = json.loads(text)
        before = found["before"]
        return LogLine(_read(found["holding"]), None if before is None else _read(before))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _read(found: Mapping[str, Any]) -> HolderLine:
    def text(name: str) -> str | None:
        return None if found[name] is None else escape(found[name])

    return HolderLine(
        address=escape(found["address"]),
        fence=None if found["fence"] is None else int(found["fence"]),
        outcome=escape(found["outcome"]),
        holder=escape(found["holder"]),
        since=text("since"),
        ended=text("ended"),
        reason=text("reason"),
        run=text("run"),
        command=escape(found["command"]),
        pid=None if found["pid"] is None else int(found["pid"]),
        why=text("why"),
    )
