"""The history of a lock: an append blob beside it, to which each holder adds a line, and each who breaks the lock.

It is named ``NAME!log``, with the mark of the queue's tickets, so that no name of a lock is like it by accident. A line
is appended once the lock is released, in one request, which is not repeated.

The service takes 50,000 appends. Shortly before, the lines are copied to ``NAME!log.ETAG``, and an empty blob, which
names that copy in its metadata, takes the place of the full one: in one request, and only if nothing
was appended since.

Not guaranteed: all of it. An append that fails, or that the caller may not do, fails nothing: the caller is told.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from http import HTTPStatus
from typing import Any

from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.errors import AzguardError, NotFound, TransformFailed
from azguard.guards.resolve import Conditions
from azguard.leases import owners
from azguard.leases import state as lease_state
from azguard.leases.breaking import BreakDone
from azguard.leases.owners import FENCE, SLOTS, Owner
from azguard.leases.state import LeaseState
from azguard.locks import log_lines
from azguard.locks.log_lines import HolderLine, LogLine
from azguard.requests.calls import CallResult, describe, send_once
from azguard.requests.deadline import Deadline
from azguard.requests.service_errors import service_code, status

# What follows the name of a lock in that of its history, and what follows that in the name of an earlier part.
_SUFFIX = "!log"
_IS_HISTORY = re.compile(r"(.+)!log(?:\.0x[0-9A-Fa-f]+)?")
_PART = re.compile(r"\.0x[0-9A-Fa-f]+")
# On a history: what follows the name in that of the part before it.
_EARLIER = "azguardearlier"
_IS_SLOT = re.compile(r"(.+)\.slot[0-9]+")
# The command has ended, and its status waits for this: a history is worth no more.
_SECONDS = 2.0
_LEAST_SECONDS = 0.2
# The service takes 50,000; what is left is for a copy that takes long.
_MOST_APPENDS = 49_900
_FULL = "BlockCountExceedsLimit"


@dataclass(frozen=True)
class History:
    """What is known of the holders of a lock."""

    #: The oldest first.
    lines: list[HolderLine]
    #: What is missing, for people: a line each.
    gaps: tuple[str, ...]


def append(lock: Target, line: LogLine, say: Callable[[str], None]) -> None:
    """Append a line to the history of a lock, if that is done within two seconds; ``say`` is told if it is not."""
    blob = _LogBlob(find_log(lock), Deadline(_SECONDS))
    sent = blob.append(json.dumps(asdict(line), separators=(",", ":")).encode() + b"\n")
    if sent.error is not None:
        warn(lock, describe(sent), say)


def warn(lock: Target, why: str, say: Callable[[str], None]) -> None:
    """Tell people that the history of a lock lacks a line."""
    say(f"warning: the history of {lock.address} may lack a line: {why}")


def append_break(target: Target, done: BreakDone, breaker: Owner, say: Callable[[str], None]) -> None:
    """Append to the history of a lock that its lease was broken; a lease that is no lock has none."""
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
    line = log_lines.build_broken(target, done.broken.owner, fence, breaker, at=found.answered_at, left=done.lease_time)
    append(_find_lock(target, found), line, say)


def read(lock: Target, deadline: Deadline, most: int) -> History:
    """Return the holders of a lock, and at least the newest ``most`` of those that are known.

    Raises:
        NotFound: there is no such lock.
        TransformFailed: what is there is no history.
    """
    from azguard.blobs.content.download import Download

    blob, lines, gaps, is_newest = find_log(lock), list[LogLine](), list[str](), True
    while True:
        try:
            download = Download(blob, Conditions(), deadline.fresh)
            found = list(log_lines.parse(b"".join(download)))
        except NotFound:
            gaps += _explain_missing(lock, deadline) if is_newest else [f"the older part is deleted: {blob}"]
            break
        lines += _choose_ours(blob, found, gaps)
        earlier = owners.find_value(download.properties.metadata or {}, _EARLIER)
        if earlier is None or _PART.fullmatch(earlier) is None or len(log_lines.order(lines)) > most:
            break
        blob, is_newest = find_log(lock, earlier), False
    return History(log_lines.order(lines), tuple(gaps))


def find_log(lock: Target, part: str = "") -> Target:
    """Return the blob with the history of a lock, or an earlier part of it."""
    return Target(lock.account, Address(Kind.BLOB, (lock.address.container, f"{lock.address.name}{_SUFFIX}{part}")))


def find_name_of_lock(name: str) -> str | None:
    """Return the name of the lock whose history a blob is, by its name; None if it is none."""
    found = _IS_HISTORY.fullmatch(name)
    return None if found is None else found[1]


@dataclass(frozen=True)
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
        if sent.answer is not None and (sent.answer.get("blob_committed_block_count") or 0) >= _MOST_APPENDS:
            self._begin_anew()
        return sent

    @property
    def _timeouts(self) -> Mapping[str, Any]:
        left = max(_LEAST_SECONDS, self.within.remaining)
        return {"connection_timeout": left, "read_timeout": left}

    @property
    def _client(self) -> Any:
        return self.target.account.blob(self.target.address)

    def _append(self, text: bytes) -> CallResult[Any]:
        return send_once(lambda: self._client.append_block(text, length=len(text), **self._timeouts))

    def _create(self, condition: Mapping[str, str], metadata: dict[str, str]) -> None:
        send_once(lambda: self._client.create_append_blob(metadata=metadata, headers=dict(condition), **self._timeouts))

    def _begin_anew(self) -> None:
        """Copy the lines to another blob, and begin with none. What fails is tried again by the next append."""
        full = send_once(lambda: self._client.get_blob_properties(**self._timeouts)).answer
        if full is None:
            return
        part = f".{full.etag.strip(chr(34))}"
        copy = self.target.account.blob(
            Address(Kind.BLOB, (self.target.address.container, self.target.address.name + part))
        )
        headers = {"If-None-Match": "*", "x-ms-source-if-match": full.etag}
        send_once(lambda: copy.start_copy_from_url(self._client.url, headers=headers, **self._timeouts))
        made = send_once(lambda: copy.get_blob_properties(**self._timeouts)).answer
        if made is not None and made.copy.status == "success" and made.size == full.size:
            self._create({"If-Match": full.etag}, {_EARLIER: part})


def _find_lock(target: Target, found: LeaseState) -> Target:
    """Return the lock of which a blob is a slot, or the lock that it is."""
    named = _IS_SLOT.fullmatch(target.address.name)
    if named is None or (owners.read_number(found.metadata, SLOTS) or 1) == 1:
        return target
    return Target(target.account, Address(Kind.BLOB, (target.address.container, named[1])))


def _choose_ours(blob: Target, found: list[LogLine | None], gaps: list[str]) -> list[LogLine]:
    """Return the lines that can be read."""
    ours = [line for line in found if line is not None]
    if found and not ours:
        raise TransformFailed(
            f"{blob} is no history of a lock: no line of it can be read", str(blob.address), reason="history_unreadable"
        )
    if len(ours) < len(found):
        gaps.append(f"lines of {blob} that cannot be read, and are left out: {len(found) - len(ours)}")
    return ours


def _explain_missing(lock: Target, deadline: Deadline) -> list[str]:
    """Return the explanation of an absent history, for people."""
    found = lease_state.look(lock, deadline)
    ended = (owners.read_number(found.metadata, FENCE) or 0) - (0 if found.free else 1)
    if ended <= 0:
        return []
    return [f"{lock} had holders and has no history: they kept none, or it was deleted"]
