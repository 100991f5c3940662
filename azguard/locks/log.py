"""The history of a lock: an append blob beside it, to which each holder adds a line, and each who breaks the lock.

It is named ``NAME!log``, with the mark of the queue's tickets, so that no name of a lock is like it by accident. A line
is appended once the lock is released, in one request, which is not repeated. A line that is there twice is read once.
A holder that is killed leaves none: the next one carries its record. Who breaks a lock leaves a line, too.

The service takes 50,000 appends. Shortly before, the lines are copied to ``NAME!log.ETAG``, and an empty blob, which
names that copy in its metadata, takes the place of the full one in one request, only if nothing was appended since.
Not guaranteed: all of it. An append that fails, or that the caller may not do, fails nothing: the caller is told.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, ClassVar

from azguard import columns
from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.errors import AzguardError, NotFound, TransformFailed
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.leases import owners
from azguard.leases import state as lease_state
from azguard.leases.owners import FENCE, SLOTS, Owner, escape
from azguard.locks.lock_blobs import LockRecord
from azguard.processes.guardian import Ended
from azguard.requests.calls import CallResult, describe, send_once
from azguard.requests.deadline import Deadline
from azguard.requests.service_codes import service_code, status
from azguard.resources import copies
from azguard.times import iso
from azguard.wire.call import call
from azguard.wire.client import Limits
from azguard.wire.operations.blobs import BLOB_APPEND_BLOCK, BLOB_COPY, BLOB_GET_PROPERTIES, BLOB_PUT_APPEND_BLOB

if TYPE_CHECKING:
    from azguard.leases.breaking import BreakDone

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
# On a line: what tells of a break.
_OF_BREAK = ("broken_by", "broken_at", "break_reason", "break_run")
# What a version that did not write them leaves out.
_NEWER = ("exit_status", "signal", *_OF_BREAK)
# What follows the name of a lock in that of its history, and what follows that in the name of an earlier part.
_SUFFIX = "!log"
_IS_HISTORY = re.compile(r"(.+)!log(?:\.0x[0-9A-Fa-f]+)?")
_PART = re.compile(r"\.0x[0-9A-Fa-f]+")
# The metadata of a history: what follows the name in that of the part before it.
_EARLIER = "azguardearlier"
_IS_SLOT = re.compile(r"(.+)\.slot[0-9]+")
# The command has ended, and its status waits for this: a history is worth no more.
_SECONDS = 2.0
_LEAST_SECONDS = 0.2
# The service takes 50,000; what is left is for a copy that takes long.
_MOST_APPENDS = 49_900
_FULL = "BlockCountExceedsLimit"


@frozen
class HolderLine:
    """One line: a holder, and how it ended."""

    COLUMNS: ClassVar = (
        replace(columns.OUTCOME, rank=None),
        columns.HOLDER_NAME,
        columns.SINCE,
        replace(columns.REASON, rank=None, is_cut=True),
        replace(columns.FENCE, rank=8),
        replace(columns.ENDED, rank=9),
        columns.EXIT_STATUS,
        columns.BROKEN_BY,
        columns.BREAK_REASON,
        replace(columns.RUN, rank=7),
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


@frozen
class LogLine:
    """What is appended."""

    holding: HolderLine
    #: Who held the lock before, as its record said; None if there was none.
    before: HolderLine | None


@frozen
class History:
    """What is known of the holders of a lock."""

    #: The oldest first.
    lines: list[HolderLine]
    #: What is missing, for people: a line each.
    gaps: tuple[str, ...]


def build_line(
    target: Target, record: LockRecord, seconds: float, lost: str | None, ended: Ended | None = None
) -> LogLine:
    """Return the line of a holder that held a lock for so many seconds; ``lost`` says why it was lost.

    ``ended`` is how its command ended; None if there was none.
    """
    address = str(target.address)
    since = record.owner.since
    ended_at = None if since is None else iso(datetime.fromisoformat(since) + timedelta(seconds=round(seconds)))
    line = describe_holding(address, record.owner, record.fence, lost=lost, ended=ended_at)
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


def _build_broken(
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
        holder = found.get(_identify(each), each)
        found[_identify(each)] = replace(holder, **{name: getattr(each, name) for name in _OF_BREAK})
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


def _parse(text: bytes) -> LogLine | None:
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


def append(lock: Target, line: LogLine, say: Callable[[str], None]) -> None:
    """Append a line to the history of a lock, if that is done within two seconds; ``say`` is told if it is not."""
    sent = _LogBlob(find_log(lock), Deadline(_SECONDS)).append(
        json.dumps(asdict(line), separators=(",", ":")).encode() + b"\n"
    )
    if sent.error is not None:
        warn(lock, describe(sent), say)


def warn(lock: Target, why: str, say: Callable[[str], None]) -> None:
    """Tell people that the history of a lock lacks a line."""
    say(f"warning: the history of {lock.address} may lack a line: {why}")


def append_break(target: Target, done: "BreakDone", breaker: Owner, say: Callable[[str], None]) -> None:
    """Append to the history of a lock that its lease was broken; only locks have a history."""
    fence = done.broken.fence
    if target.kind is not Kind.BLOB or fence is None:
        if breaker.reason is not None:
            say(f"warning: the reason is recorded nowhere: {target.address} is no lock with a history")
        return
    try:
        found = lease_state.look(target, Deadline(_SECONDS))
    except AzguardError as error:
        warn(target, error.message, say)
        return
    line = _build_broken(target, done.broken.owner, fence, breaker, at=found.answered_at, left=done.lease_time)
    append(_find_lock(target, found), line, say)


def read(lock: Target, deadline: Deadline, most: int) -> History:
    """Return the holders of a lock, and at least the newest ``most`` of those that are known.

    Raises:
        NotFound: there is no such lock.
        TransformFailed: what is there is no history.
    """
    from azguard.blobs.content.download import BlobDownload

    blob, lines, gaps, is_newest = find_log(lock), list[LogLine](), list[str](), True
    while True:
        try:
            download = BlobDownload(blob, Conditions(), deadline.fresh)
            found = list(parse(b"".join(download)))
        except NotFound:
            gaps += _explain_missing(lock, deadline) if is_newest else [f"the older part is deleted: {blob}"]
            break
        lines += _choose_ours(blob, found, gaps)
        earlier = owners.find_value(download.properties.metadata or {}, _EARLIER)
        if earlier is None or _PART.fullmatch(earlier) is None or len(order(lines)) > most:
            break
        blob, is_newest = find_log(lock, earlier), False
    return History(order(lines), tuple(gaps))


def find_log(lock: Target, part: str = "") -> Target:
    """Return the blob with the history of a lock, or an earlier part of it."""
    return _find_beside(lock, f"{lock.address.name}{_SUFFIX}{part}")


def find_name_of_lock(name: str) -> str | None:
    """Return the name of the lock whose history a blob is, by its name; None if it is none."""
    found = _IS_HISTORY.fullmatch(name)
    return None if found is None else found[1]


@frozen
class _LogBlob:
    """The blob to which lines are appended, for the time of one append."""

    target: Target
    within: Deadline

    def append(self, text: bytes) -> CallResult[Any]:
        sent = self._append(text)
        if sent.error is not None and status(sent.error) == HTTPStatus.NOT_FOUND:
            # If another holder has made it meanwhile, it is there.
            self._create({"If-None-Match": "*"}, {})
            return self._append(text) if not self.within.passed else sent
        if sent.error is not None and service_code(sent.error) == _FULL:
            self._begin_anew()
            return self._append(text) if not self.within.passed else sent
        if sent.answer is not None and (sent.answer.append_blob_committed_block_count or 0) >= _MOST_APPENDS:
            self._begin_anew()
        return sent

    @property
    def _timeouts(self) -> Limits:
        left = max(_LEAST_SECONDS, self.within.remaining)
        return Limits(left, left)

    def _append(self, text: bytes) -> CallResult[Any]:
        return send_once(lambda: call(BLOB_APPEND_BLOCK, self.target, self._timeouts, body=text))

    def _create(self, condition: Mapping[str, str], metadata: dict[str, str]) -> None:
        send_once(lambda: call(BLOB_PUT_APPEND_BLOB, self.target, self._timeouts, headers=condition, metadata=metadata))

    def _begin_anew(self) -> None:
        """Copy the lines to another blob, and begin with none. What fails is tried again by the next append."""
        full = send_once(lambda: call(BLOB_GET_PROPERTIES, self.target, self._timeouts)).answer
        if full is None:
            return
        part = f".{full.etag.strip(chr(34))}"
        beside = _find_beside(self.target, self.target.address.name + part)
        headers, source = {"If-None-Match": "*", "x-ms-source-if-match": full.etag}, copies.to_url(self.target)
        send_once(lambda: call(BLOB_COPY, beside, self._timeouts, headers=headers, copy_source=source))
        made = send_once(lambda: call(BLOB_GET_PROPERTIES, beside, self._timeouts)).answer
        if made is not None and made.copy.status == "success" and made.size == full.size:
            self._create({"If-Match": full.etag}, {_EARLIER: part})


def _find_lock(target: Target, found: lease_state.LeaseState) -> Target:
    """Return the lock of which a blob is a slot, or the lock that it is."""
    named = _IS_SLOT.fullmatch(target.address.name)
    if named is None or (owners.read_number(found.metadata, SLOTS) or 1) == 1:
        return target
    return _find_beside(target, named[1])


def _find_beside(target: Target, name: str) -> Target:
    return Target(target.account, Address(Kind.BLOB, (target.address.container, name)))


def _choose_ours(blob: Target, found: list[LogLine | None], gaps: list[str]) -> list[LogLine]:
    ours = [line for line in found if line is not None]
    if found and not ours:
        raise TransformFailed(
            f"{blob} is no history of a lock: no line of it can be read", str(blob.address), reason="history_unreadable"
        )
    if len(ours) < len(found):
        gaps.append(f"lines of {blob} that cannot be read, and are left out: {len(found) - len(ours)}")
    return ours


def _explain_missing(lock: Target, deadline: Deadline) -> list[str]:
    found = lease_state.look(lock, deadline)
    ended = (owners.read_number(found.metadata, FENCE) or 0) - (0 if found.free else 1)
    if ended <= 0:
        return []
    return [f"{lock} had holders and has no history: they kept none, or it was deleted"]
