"""The lines of a lock's history: who held it, how that ended, who broke it, and how they are read again.

A line can be there twice, and is read once. A holder that is killed leaves none: the next one carries the record that
it found. Who breaks a lock leaves a line of its own, which is read into that of the holder.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any, ClassVar

from azguard import columns
from azguard.accounts.account import Target
from azguard.leases.owners import Owner, escape
from azguard.locks.lock_blobs import LockRecord
from azguard.processes.guardian import Ended
from azguard.times import iso

RELEASED = "released"
LOST = "lost"
#: Of a holder whose lock was broken, and that has left no line.
BROKEN = "broken"
#: Of one that had to wait for readers inside, and whose command was never run.
GAVE_UP = "gave_up"
#: Of a holder that has left no line.
UNKNOWN = "unknown"
#: The holder of a lock that was broken, where no record says who it was.
NO_NAME = "unknown"
_READERS_INSIDE = "readers were still inside, and its command was not run"
_NO_LINE = "it ended without a release, or keeps no history"
_NUMBERS = ("fence", "pid", "exit_status", "signal")
# What no line lacks.
_ALWAYS = ("address", "outcome", "holder", "command")
# What a version that did not write them leaves out.
_NEWER = ("exit_status", "signal", "broken_by", "broken_at", "break_reason", "break_run")


@dataclass(frozen=True)
class HolderLine:
    """One line: a holder, and how it ended."""

    COLUMNS: ClassVar = (
        columns.SINCE,
        columns.ENDED._replace(rank=9),
        columns.HOLDER_NAME,
        columns.OUTCOME._replace(rank=None),
        columns.EXIT_STATUS,
        columns.REASON._replace(rank=None, is_cut=True),
        columns.BROKEN_BY,
        columns.BREAK_REASON,
        columns.FENCE._replace(rank=8),
        columns.RUN._replace(rank=7),
    )

    address: str
    fence: int | None
    #: ``released``, ``lost``, ``gave_up``; ``broken`` or ``unknown`` of one that has left no line.
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
    #: The exit status of the command, 128 + N if signal N ended it; None if there was no command, or no line.
    exit_status: int | None = None
    #: The number of the signal that ended the command.
    signal: int | None = None
    #: Who broke the lock, as ``user@host``; when, by the service's clock; why; and the CI run that did it.
    broken_by: str | None = None
    broken_at: str | None = None
    break_reason: str | None = None
    break_run: str | None = None


@dataclass(frozen=True)
class LogLine:
    """What is appended."""

    holding: HolderLine
    #: Who held the lock before, as its record said; None if there was none.
    before: HolderLine | None


def build_line(
    target: Target, record: LockRecord, seconds: float, lost: str | None, ended: Ended | None = None
) -> LogLine:
    """Return the line of a holder that held a lock for so many seconds; ``lost`` says why it was lost.

    ``ended`` is how its command ended; None if there was none.
    """
    address = str(target.address)
    line = describe_holding(address, record.owner, record.fence, lost=lost, ended=_add(record.owner.since, seconds))
    if ended is not None:
        line = replace(line, exit_status=ended.status, signal=ended.signal)
    return LogLine(line, _describe_before(address, record))


def build_before(target: Target, record: LockRecord) -> LogLine | None:
    """Return the line that tells only of the holder before, for one whose own line another machine may write."""
    before = _describe_before(str(target.address), record)
    return None if before is None else LogLine(before, None)


def build_given_up(target: Target, record: LockRecord, seconds: float) -> LogLine:
    """Return the line of a holder that waited so many seconds for the readers inside, and then gave up."""
    line = build_line(target, record, seconds, None)
    return replace(line, holding=replace(line.holding, outcome=GAVE_UP, why=_READERS_INSIDE))


def build_broken(
    target: Target, holder: Owner | None, fence: int | None, breaker: Owner, *, at: datetime | None, left: int | None
) -> LogLine:
    """Return the line of a lock that ``breaker`` broke; ``left`` is for how many seconds its lease lasts still.

    ``holder`` is whose lock it was; None if no record says so, and then ``fence`` may be of another.
    """
    address = str(target.address)
    ended = None if at is None else at + timedelta(seconds=left or 0)
    line = _describe(address, holder, None if holder is None else fence, BROKEN, None, iso(ended))
    line = replace(line, broken_by=breaker.name, broken_at=iso(at), break_reason=breaker.reason, break_run=breaker.run)
    return LogLine(line, None)


def describe_holding(
    address: str, owner: Owner, fence: int | None, *, lost: str | None, ended: str | None
) -> HolderLine:
    """Return one holder's line; ``lost`` says why it was lost."""
    return _describe(address, owner, fence, RELEASED if lost is None else LOST, lost, ended)


def order(lines: Sequence[LogLine]) -> list[HolderLine]:
    """Return each holder once, the oldest first; those without a line of their own from the lines of others."""
    found: dict[tuple[object, ...], HolderLine] = {}
    broken = [line.holding for line in lines if line.holding.outcome == BROKEN]
    others = [line for line in lines if line.holding.outcome != BROKEN]
    for line in others:
        if line.holding.outcome != UNKNOWN:
            found[_identify(line.holding)] = line.holding
    for each in broken:
        found[_identify(each)] = _add_break(found.get(_identify(each), each), each)
    for line in others:
        for before in (line.holding, line.before):
            if before is not None:
                found.setdefault(_identify(before), before)
    return sorted(found.values(), key=lambda each: (each.since or each.broken_at or "", each.fence or 0))


def parse(content: bytes) -> Iterator[LogLine | None]:
    """Yield each line of a history; None for one that is not azguard's."""
    for text in content.split(b"\n"):
        if text:
            yield _parse(text)


def _identify(line: HolderLine) -> tuple[object, ...]:
    return (line.address, line.fence) if line.fence is not None else (line.address, None, line.since, line.broken_at)


def _add_break(line: HolderLine, broken: HolderLine) -> HolderLine:
    return replace(
        line,
        broken_by=broken.broken_by,
        broken_at=broken.broken_at,
        break_reason=broken.break_reason,
        break_run=broken.break_run,
    )


def _describe_before(address: str, record: LockRecord) -> HolderLine | None:
    if record.before is None:
        return None
    why = _NO_LINE if record.before.until is None else "the next one took it, after its time or a break"
    return _describe(address, record.before, record.fence_before, UNKNOWN, why, None)


def _describe(
    address: str, owner: Owner | None, fence: int | None, outcome: str, why: str | None, ended: str | None
) -> HolderLine:
    return HolderLine(
        address=address,
        fence=fence,
        outcome=outcome,
        holder=NO_NAME if owner is None else owner.name,
        since=None if owner is None else owner.since,
        ended=ended,
        reason=None if owner is None else owner.reason,
        run=None if owner is None else owner.run,
        command="" if owner is None else owner.command,
        pid=None if owner is None else owner.pid,
        why=why,
    )


def _add(since: str | None, seconds: float) -> str | None:
    return None if since is None else iso(datetime.fromisoformat(since) + timedelta(seconds=round(seconds)))


def _parse(text: bytes) -> LogLine | None:
    """Return a line; None if it is not one of ours."""
    try:
        found = json.loads(text)
        before = found["before"]
        return LogLine(_read(found["holding"]), None if before is None else _read(before))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _read(found: Mapping[str, Any]) -> HolderLine:
    def read(name: str) -> Any:
        if found[name] is None and name not in _ALWAYS:
            return None
        return int(found[name]) if name in _NUMBERS else escape(found[name])

    found = {**dict.fromkeys(_NEWER), **found}
    return HolderLine(**{each.name: read(each.name) for each in fields(HolderLine)})
