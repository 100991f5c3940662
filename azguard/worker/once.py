"""Claims in a table: a row for each key, ``claimed`` until a time, then ``done``, ``failed`` or ``poisoned``.

The partition is the queue; its poison queue has the same. All writes are conditional: one that was never claimed is
inserted, every later write is of the version that was read. Each carries its op in the lineage, so that a lost answer
is settled. The row also names its claim, so that its owner knows it again after a write of unknown outcome.

When a claim expires is said by the service's clocks alone: the row's Timestamp, which the service sets with each write,
and the term in the row. Who wants to take it over counts from the Timestamp of the last row that it wrote itself, or
from the time in a refusal; the Date of an answer can be that of a gateway. The owner counts its term from before it
sent the request, which is earlier. So no clock has to be right; the owner's must only run evenly.

A key is the id of a message or a value in its body; a claim holds for all messages with that key.

Not guaranteed: an effect is done once only if it is recorded once it is done. If a worker is killed, or loses the
service, between the end of a command and the record, the key runs again when the claim has expired. A command that is
stopped in the middle has had a part of its effect.
"""

import hashlib
import json
import re
from dataclasses import field, replace
from datetime import datetime, timedelta
from math import ceil
from typing import Any

from azguard import times
from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.documents import json_text
from azguard.errors import Changed, ConfigError, Exists, NotFound, OutcomeUnknown, Unavailable, UsageError
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.queues.moving import POISON_SUFFIX
from azguard.requests import trace
from azguard.requests.calls import ServiceClock
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import fresh_op
from azguard.requests.service_codes import find_time
from azguard.tables import entities, writes
from azguard.tables.edm import PARTITION_KEY, ROW_KEY, Entity
from azguard.tables.entities import Stored
from azguard.tables.writes import EntityWrite, Verb
from azguard.wire.rows import Condition
from azguard.worker.settings import Claimed, DoneBefore, HeldByAnother, MessageFacts

CLAIMED = "claimed"
DONE = "done"
FAILED = "failed"
POISONED = "poisoned"
_STATES = (CLAIMED, DONE, FAILED, POISONED)
# The clocks of the service's machines differ, and the date of an answer is in whole seconds.
_SKEW_SECONDS = 3
# Each conflict means that another worker got on.
_MOST_CONFLICTS = 10
# Of a long key, what is kept for people to read.
_SHOWN_CHARACTERS = 1000
_NO_TABLE = "TableNotFound"
# What a key of a table may hold as it is. A tilde begins what stands for another byte.
_PLAIN = re.compile(r"[A-Za-z0-9._:-]")
# A key of a table holds 1 KiB, two bytes a character; more than this is kept as its hash.
_LONGEST_CHARACTERS = 300


@frozen
class OnceClaim(Claimed):
    """A claim with the version of its row that is ours."""

    target: Target
    #: The name of this claim in the row.
    claim: str
    row: Entity
    #: None if the answer that told it was lost: then it has to be read.
    etag: str | None
    lineage: str | None


# How the trace names what a claim found.
_STEPS = {OnceClaim: CLAIMED, DoneBefore: "done before", HeldByAnother: "held by another"}


@frozen
class OnceTable:
    """Claims in one table."""

    table: Target
    #: Who claims, for people: the host and the process.
    by: str
    #: Claims whose outcome was not known, by their rows. They are not used, so each may be taken over at once.
    _unused: dict[str, str] = field(default_factory=dict)
    #: Is set by each row that was written, and by the check.
    _clock: ServiceClock = field(default_factory=lambda: ServiceClock(times.read_boot_clock))

    def check(self, deadline: Deadline) -> None:
        """Refuse a table that is not there: with a wrong one, every key would be new. Note the time of the refusal.

        Raises:
            NotFound: there is no such table.
        """
        try:
            entities.get(self._locate("-", "-"), deadline)
        except NotFound as error:
            if error.service_code == _NO_TABLE:
                raise self._missing(error) from error
            if (refused_at := find_time(error)) is not None:
                self._clock.set(refused_at)

    def claim(
        self, key: str, message: MessageFacts, seconds: float, deadline: Deadline
    ) -> OnceClaim | DoneBefore | HeldByAnother:
        """Claim a key for so many seconds; see ``Claims``."""
        target = self._locate(message.queue, key)
        claim = fresh_op()
        trace.note("claiming", target, message=message.id, claim=claim, seconds=ceil(seconds))
        row: Entity = {
            PARTITION_KEY: target.address.parts[1],
            ROW_KEY: target.address.parts[2],
            "state": CLAIMED,
            "key": _to_shown(key),
            "claim": claim,
            "by": self.by,
            "seconds": ceil(seconds),
            "queue": message.queue,
            "message": message.id,
            "dequeue_count": message.dequeue_count,
        }
        if message.digest is not None:
            row["body"] = message.digest
        try:
            found: OnceClaim | DoneBefore | HeldByAnother = self._insert(key, target, row, deadline)
        except NotFound as error:
            raise self._missing(error) from error
        except Exists:
            found = self._take_over(key, target, row, deadline)
        except OutcomeUnknown:
            self._unused[target.address.name] = claim
            raise
        trace.note(_STEPS[type(found)], target, message=message.id, claim=claim)
        return found

    def extend(self, claimed: Claimed, seconds: float, deadline: Deadline) -> OnceClaim:
        return self._change_own(claimed, {"seconds": ceil(seconds)}, deadline)

    def finish(self, claimed: Claimed, deadline: Deadline) -> None:
        self._change_own(claimed, {"state": DONE}, deadline)

    def give_up(self, claimed: Claimed, reason: str, status: int | None, deadline: Deadline) -> None:
        self._change_own(claimed, {"state": FAILED, "reason": reason, "status": status}, deadline)

    def poison(
        self, claimed: Claimed, reason: str, status: int | None, deadline: Deadline, copy_id: str | None = None
    ) -> None:
        changes = {"state": POISONED, "reason": reason, "status": status, "poison_message": copy_id}
        self._change_own(claimed, changes, deadline)

    def _missing(self, error: NotFound) -> NotFound:
        return error.but(address=str(self.table.address), reason="once_table_missing")

    def _locate(self, queue: str, key: str) -> Target:
        parts = (self.table.address.container, find_partition(queue), escape(key))
        return Target(self.table.account, Address(Kind.ENTITY, parts))

    def _insert(self, key: str, target: Target, row: Entity, deadline: Deadline) -> OnceClaim:
        return replace(self._claim(key, _insert(target, row), deadline), is_first=True)

    def _take_over(
        self, key: str, target: Target, row: Entity, deadline: Deadline
    ) -> OnceClaim | DoneBefore | HeldByAnother:
        """Claim a key that has a row, if it may be claimed."""
        for _ in range(_MOST_CONFLICTS):
            found = _read(target, deadline)
            try:
                if found is None:
                    return self._insert(key, target, row, deadline)
                if (held := self._judge(key, found, row.get("body"), self._read_clock(deadline))) is not None:
                    return held
                claimed = self._claim(key, _replace(target, row, found.etag, str(found.lineage)), deadline)
                return replace(claimed, is_first=self._is_unused_insert(found))
            except (Exists, Changed, NotFound) as error:
                if error.service_code == _NO_TABLE:
                    raise
            except OutcomeUnknown:
                self._unused[target.address.name] = str(row["claim"])
                raise
        raise Unavailable(
            f"{target} was changed by others {_MOST_CONFLICTS} times while it was claimed", address=str(target.address)
        )

    def _judge(self, key: str, found: Stored, digest: Any, now: datetime | None) -> DoneBefore | HeldByAnother | None:
        """Return why a key may not be claimed by a message of this digest; None if it may."""
        row = found.entity
        if row.get("state") not in _STATES:
            raise self._make_foreign(key, row)  # Claimed, it would lose what it holds.
        if row.get("state") == DONE:
            is_other = None not in (digest, row.get("body")) and row["body"] != digest
            return DoneBefore(key, str(row.get("message", "")) if is_other else None)
        if row.get("state") != CLAIMED or self._is_unused(found):
            return None
        written = entities.read_timestamp(found) or writes.parse_timestamp(found.etag) or now
        if written is None:
            raise Unavailable(f"the service does not tell when the claim of {key!r} was written")
        try:
            until = written + timedelta(seconds=float(row.get("seconds", 0)) + _SKEW_SECONDS)
        except (ValueError, OverflowError):
            raise self._make_foreign(key, row) from None
        # A time that is not known proves nothing.
        return None if now is not None and now >= until else HeldByAnother(key, until, str(row.get("by", "")))

    def _read_clock(self, deadline: Deadline) -> datetime | None:
        if self._clock.read() is None:
            self.check(deadline)
        return self._clock.read()

    def _is_unused(self, found: Stored) -> bool:
        claim = found.entity.get("claim")
        return claim is not None and self._unused.get(str(found.entity[ROW_KEY])) == claim

    def _is_unused_insert(self, found: Stored) -> bool:
        """Return whether a row is a claim of ours that was never used, and nothing was there before it."""
        return self._is_unused(found) and found.lineage.reaches_creation and len(found.lineage.entries) == 1

    def _make_foreign(self, key: str, row: Entity) -> ConfigError:
        target = self._locate(str(row[PARTITION_KEY]), key)
        return ConfigError(
            f"{target} is a row that no worker wrote", address=str(target.address), reason="once_row_foreign"
        )

    def _change_own(self, claimed: Claimed, changes: Entity, deadline: Deadline) -> OnceClaim:
        own = _own(claimed)
        written = self._write_own(own, changes, deadline)
        step, seconds = str(changes.get("state", "extended")), changes.get("seconds")
        trace.note(step, own.target, claim=own.claim, seconds=seconds)
        return written

    def _write_own(self, own: OnceClaim, changes: Entity, deadline: Deadline) -> OnceClaim:
        """Write the row of a claim that is ours, also if a write of ours of unknown outcome has moved its version."""
        row = {**own.row, **changes}
        for _ in range(_MOST_CONFLICTS):
            if own.etag is not None:
                try:
                    return self._write(own.key, _replace(own.target, row, own.etag, own.lineage), deadline)
                except (Changed, NotFound) as error:
                    if error.service_code == _NO_TABLE:
                        raise
            found = _read(own.target, deadline)
            if found is None or found.entity.get("claim") != own.claim:
                raise _taken_over(own, found)
            own = replace(own, etag=found.etag, lineage=str(found.lineage))
            if found.entity.get("state") == DONE:
                # By an earlier write of ours, of which the outcome was not known. What is done stays done.
                return own
        raise Unavailable(f"{own.target} changed {_MOST_CONFLICTS} times", address=str(own.target.address))

    def _claim(self, key: str, made: EntityWrite, deadline: Deadline) -> OnceClaim:
        """Write the row of a new claim.

        Raises:
            Exists: an answer was lost, and by the look that found the claim another had taken it over.
        """
        claimed = self._write(key, made, deadline)
        if claimed.etag is not None:
            return claimed
        found = _read(made.target, deadline)
        if found is None or found.entity.get("claim") != claimed.claim:
            raise Exists(f"{made.target} was claimed by another since", str(made.target.address))
        return replace(claimed, etag=found.etag, lineage=str(found.lineage))

    def _write(self, key: str, made: EntityWrite, deadline: Deadline) -> OnceClaim:
        """Write a row, and return the claim that it is."""
        made = made.add_lineage()
        etag = writes.write(made, deadline).etag
        if (moment := writes.parse_timestamp(etag)) is not None:
            self._clock.set(moment)
        return OnceClaim(
            key=key,
            target=made.target,
            claim=str(made.entity["claim"]),
            row=made.entity,
            etag=etag,
            lineage=made.stamp,
        )


def find_partition(queue: str) -> str:
    """Return the partition of a queue's keys; its poison queue has the same."""
    return queue.removesuffix(POISON_SUFFIX) or queue


def _to_shown(key: str) -> str:
    """Return a key as people read it: what cannot be printed, or is too long, is left out."""
    return "".join(each if each.isprintable() else "\ufffd" for each in key[:_SHOWN_CHARACTERS])


def _own(claimed: Claimed) -> OnceClaim:
    assert isinstance(claimed, OnceClaim)
    return claimed


def _read(target: Target, deadline: Deadline) -> Stored | None:
    try:
        return entities.get(target, deadline)
    except NotFound as error:
        if error.service_code == _NO_TABLE:
            raise
        return None


def _insert(target: Target, row: Entity) -> EntityWrite:
    return EntityWrite(target, Verb.INSERT, row, Conditions(guard="if-none-match"), fresh_op())


def _replace(target: Target, row: Entity, etag: str, lineage: str | None) -> EntityWrite:
    conditions = Conditions({Condition.IF_MATCH.header: etag}, "if-match", etag, lineage=lineage)
    return EntityWrite(target, Verb.REPLACE, row, conditions, fresh_op())


def _taken_over(own: OnceClaim, found: Stored | None) -> Changed:
    by = "its row was deleted" if found is None else f"{found.entity.get('by', 'another')} has it now"
    return Changed(
        f"the claim of {own.key!r} was taken over: {by}",
        address=str(own.target.address),
        reason="claim_taken_over",
    )


@frozen
class KeyRule:
    """Where the key of a message stands: its id, or a value in its body, which a JMESPath expression finds."""

    expression: str | None = None

    def choose(self, body: bytes, message_id: str) -> str:
        """Return the key of a message.

        A text is the key as it is; anything else is the key as compact JSON. So 17 and "17" are one key.

        Raises:
            UsageError: its body has none: it is no JSON, or the value is missing, empty, true or false.
        """
        if self.expression is None:
            return message_id
        import jmespath

        try:
            content = json.loads(body)
        except (ValueError, RecursionError):
            raise UsageError(
                f"the body is not JSON, so {self.expression!r} finds no key in it", reason="once_body_not_json"
            ) from None
        try:
            found = jmespath.search(self.expression, content)
        except (*json_text.JMESPATH_FAILURES, RecursionError) as error:
            raise UsageError(
                f"{self.expression!r} finds no key in the body: {error}", reason="once_key_missing"
            ) from None
        if _is_missing(found):
            raise UsageError(f"{self.expression!r} finds no key in the body", reason="once_key_missing")
        return found if isinstance(found, str) else json.dumps(found, sort_keys=True, separators=(",", ":"))


def escape(key: str) -> str:
    """Return a key as the row key of a table: no two keys have the same one."""
    escaped = "".join(
        each if _PLAIN.fullmatch(each) else "".join(f"~{byte:02x}" for byte in each.encode("utf-8", "surrogatepass"))
        for each in key
    )
    if len(escaped) <= _LONGEST_CHARACTERS:
        return escaped
    # Two tildes stand in no other row key.
    return f"~~sha256~{hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _is_missing(found: Any) -> bool:
    """Return whether a value is no key: nothing, an empty one, true or false, or a list with such a part."""
    if isinstance(found, list):
        return not found or any(map(_is_missing, found))
    return found is None or found in ("", {}) or isinstance(found, bool)
