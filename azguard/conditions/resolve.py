"""What the user asked for → what this operation may send.

The rules: an empty value is refused, a condition the service does not enforce is refused, two
that it does not evaluate together are refused, and a write with none of them is guarded by what was last read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from azguard.accounts.target import Target
from azguard.conditions import fences, lease_ids, remembered
from azguard.conditions import values as condition_values
from azguard.conditions.operations import (
    TABLE_ENTITY_UPDATE,
    Condition,
    Guard,
    Lease,
    Operation,
    Write,
    rejected_together,
    why_no_race,
    why_not,
    why_not_overwriting,
)
from azguard.conditions.seen import Remembered
from azguard.errors import Changed, UsageError

_EMPTY_HINT = "an unset shell variable looks like this; leave the option out to be guarded by what you last read"


@dataclass(frozen=True, slots=True)
class RequestedConditions:
    """The conditions as typed; None is not given."""

    if_match: str | None = None
    if_none_match: str | None = None
    if_modified_since: str | None = None
    if_unmodified_since: str | None = None
    if_tags: str | None = None
    source_if_match: str | None = None
    source_if_none_match: str | None = None
    source_if_modified_since: str | None = None
    source_if_unmodified_since: str | None = None
    source_if_tags: str | None = None
    if_append_position: str | None = None
    if_max_size: str | None = None
    if_sequence_number_le: str | None = None
    if_sequence_number_lt: str | None = None
    if_sequence_number_eq: str | None = None
    etag: str | None = None
    lease_id: str | None = None
    fence: str | None = None
    last_writer_wins: bool = False
    allow_race: bool = False

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "RequestedConditions":
        """Return the conditions among the options of a command line."""
        given: dict[str, Any] = {each.name: options.get(each.name) for each in fields(cls)}
        given |= {name: bool(given[name]) for name in ("last_writer_wins", "allow_race")}
        return cls(**given)


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a request carries, and what guards it.

    ``guard`` is the name results show: if-match, if-none-match, lease, fence, compare, conditions or none.
    ``expected_etag`` is the one version the write is for; ``lineage`` is that version's, where it is known. A write
    under a ``fence`` leaves it in a tag: see ``fences``.
    """

    headers: Mapping[str, str] = field(default_factory=dict)
    guard: str = "none"
    expected_etag: str | None = None
    lease_id: str | None = None
    lineage: str | None = None
    never_read: bool = False
    fence: int | None = None
    #: The type of the version that the write is for, if that is known here; it is not sent.
    blob_type: str | None = field(default=None, compare=False)

    @property
    def request_headers(self) -> dict[str, str]:
        """Return the request headers of the conditions and the lease.

        They are set on the request itself: the SDK's keyword arguments drop some of them silently.
        """
        lease = {"x-ms-lease-id": self.lease_id} if self.lease_id else {}
        return {**self.headers, **lease}

    @property
    def creates_only(self) -> bool:
        """Return whether the write is for a resource that does not exist yet."""
        return self.headers.get(Condition.IF_NONE_MATCH.header) == "*"


def resolve(
    operation: Operation, asked: RequestedConditions, target: Target, known: Remembered | None = None
) -> Conditions:
    """Return what ``operation`` sends for what was asked, given what this scope knows of the target.

    Raises:
        UsageError: an empty or malformed value, or a condition or combination this operation does not honour.
        Changed: the write needs a version, and this scope has never read one.
    """
    known = known or Remembered()
    check(operation, asked)
    values = _values(asked)
    lease_id = None if asked.lease_id is None else lease_ids.resolve_lease_id(asked.lease_id, known.lease)
    if asked.fence is not None:
        return _fenced(asked, [condition.flag for condition in values], lease_id, target)
    headers = {
        condition.header: condition_values.sent(operation, condition, value, known, target)
        for condition, value in values.items()
    }
    if asked.etag is not None:
        etag = condition_values.etag(asked.etag, "--etag", known, target)
        return _guarded(operation, headers, etag, lease_id, known, asked.allow_race)
    if asked.last_writer_wins and target.kind.service == "table" and Condition.IF_MATCH in operation.honours:
        headers = {Condition.IF_MATCH.header: "*"}  # without If-Match the service would create what is missing
    if not values and operation.guarded and not asked.last_writer_wins:
        return _by_default(operation, target, known, lease_id, asked.allow_race)
    expected = headers.get(Condition.IF_MATCH.header)
    expected = None if expected == "*" else expected
    return Conditions(
        headers=headers,
        guard=_guard_name({} if asked.last_writer_wins else headers, lease_id),
        expected_etag=expected,
        lease_id=lease_id,
        lineage=known.lineage(expected),
        blob_type=known.blob_type(expected),
    )


def check(operation: Operation, asked: RequestedConditions) -> None:
    """Refuse what the operation does not honour, whatever it is done to.

    Raises:
        UsageError: an empty value, or a condition or combination that would be ignored; says why.
    """
    _refuse_empty(asked)
    _refuse_unhonoured(operation, asked, _values(asked))
    _refuse_without_effect(operation, asked)


def _values(asked: RequestedConditions) -> dict[Condition, str]:
    every = ((condition, getattr(asked, condition.replace("-", "_"))) for condition in Condition)
    return {condition: value for condition, value in every if value is not None}


def _refuse_empty(asked: RequestedConditions) -> None:
    for each in fields(asked):
        value = getattr(asked, each.name)
        if isinstance(value, str) and not value.strip():
            raise UsageError(f"--{each.name.replace('_', '-')} is empty", hint=_EMPTY_HINT)


def _refuse_unhonoured(operation: Operation, asked: RequestedConditions, values: Mapping[Condition, str]) -> None:
    flags = [condition.flag for condition in values]
    if asked.last_writer_wins and not operation.overwrites:
        reason = why_not_overwriting(operation)
        raise UsageError(f"--last-writer-wins changes nothing here: {reason}", hint="leave it out")
    if asked.last_writer_wins and (flags or asked.etag is not None):
        raise UsageError(
            f"--last-writer-wins and {(flags or ['--etag'])[0]} contradict each other",
            hint="leave one of them out",
        )
    if asked.etag is not None and flags:
        raise UsageError(
            f"--etag and {flags[0]} do not go together",
            hint="--etag is a guard of its own; leave one of them out",
        )
    if asked.etag is not None and not operation.writes:
        reads = Condition.IF_MATCH in operation.honours
        raise UsageError(
            f"--etag guards writes, and {operation.title} writes nothing",
            hint="on a read, use --if-match" if reads else "leave it out",
        )
    if asked.etag is not None and operation.guard is Guard.NONE:
        raise UsageError(
            f"--etag cannot be kept here: {why_not(operation, Condition.IF_MATCH)}",
            hint="nothing can tie it to a version: --last-writer-wins, if it is to be done whatever is there"
            if operation.write is Write.CHANGES
            else "leave it out",
        )
    for condition in values:
        if condition not in operation.honours:
            raise UsageError(
                f"{condition.flag} is not enforced here: {why_not(operation, condition)}",
                hint="use --etag, which azguard keeps by other means where it can"
                if condition is Condition.IF_MATCH and operation.guard is not Guard.NONE
                else "leave it out",
            )
    pair = rejected_together(operation, set(values))
    if pair is not None:
        raise UsageError(
            f"{pair[0].flag} and {pair[1].flag} do not go together here: "
            "the service rejects the pair, or evaluates only one of them",
            hint="leave one of them out",
        )


def _refuse_without_effect(operation: Operation, asked: RequestedConditions) -> None:
    """Refuse what is no header's condition and means nothing to this operation."""
    if asked.allow_race and operation.guard is not Guard.COMPARE:
        raise UsageError(f"--allow-race changes nothing here: {why_no_race(operation)}", hint="leave it out")
    if asked.lease_id is not None and not operation.names_lease:
        reason = (
            "acquiring and breaking a lease go without its id"
            if operation.lease is Lease.SUBJECT
            else f"{operation.title} takes no lease id"
        )
        raise UsageError(f"--lease-id is not enforced here: {reason}", hint="leave it out")
    if asked.fence is not None and not operation.fences:
        raise UsageError(
            "--fence is not enforced here: only blob put, blob delete and safe-update keep it", hint="leave it out"
        )


def _by_default(
    operation: Operation, target: Target, known: Remembered, lease_id: str | None, allow_race: bool
) -> Conditions:
    """Return the guard of a write that names no condition. A lease id goes along; it replaces no version."""
    if known.guard is not None and operation.guard is not Guard.NONE:
        if known.other is not None:
            raise remembered.two_versions(target, known)
        if known.guard.partial and operation is TABLE_ENTITY_UPDATE:
            raise Changed(
                f"only a part of {target} was read here, and replacing it would lose the rest",
                address=str(target.address),
                hint=f"read it whole: azguard entity get {target}; or use merge; or name the version: --etag ETAG",
            )
        return _guarded(operation, {}, remembered.version(known.guard, target), lease_id, known, allow_race)
    if operation.creates:
        only = {Condition.IF_NONE_MATCH.header: "*"} if Condition.IF_NONE_MATCH in operation.honours else {}
        return Conditions(only, "if-none-match", lease_id=lease_id, never_read=True)
    if operation.guard is Guard.NONE:
        raise UsageError(
            f"nothing in the service can guard {operation.title}, so it is never done by default",
            address=str(target.address),
            hint="say --last-writer-wins to do it all the same",
        )
    alone = "say --last-writer-wins" + (", so that the lease alone guards it" if lease_id is not None else "")
    raise remembered.never_read(target, (remembered.how_to_see(target), alone))


def _guarded(
    operation: Operation,
    headers: Mapping[str, str],
    etag: str,
    lease_id: str | None,
    known: Remembered,
    allow_race: bool,
) -> Conditions:
    if operation.guard is Guard.COMPARE and not allow_race:
        raise UsageError(
            "--etag cannot be kept atomically here: another writer may come between the comparison and the write",
            hint="add --allow-race to accept that",
        )
    sent = {**headers, Condition.IF_MATCH.header: etag} if operation.guard is Guard.IF_MATCH else dict(headers)
    return Conditions(
        headers=sent,
        guard=operation.guard.value,
        expected_etag=etag,
        lease_id=lease_id,
        lineage=known.lineage(etag),
        blob_type=known.blob_type(etag),
    )


def _fenced(asked: RequestedConditions, flags: Sequence[str], lease_id: str | None, target: Target) -> Conditions:
    if asked.last_writer_wins:
        raise UsageError("--fence and --last-writer-wins contradict each other", hint="leave one of them out")
    others = [*flags, *(["--etag"] if asked.etag is not None else [])]
    if others:
        raise UsageError(
            f"--fence and {others[0]} do not go together: beside another condition the fence could be ignored",
            hint="leave one of them out; --lease-id may go along with --fence",
        )
    if target.address.snapshot or target.address.version:
        raise UsageError(
            f"--fence is not for {target}: a snapshot or version keeps the fence it was made with", hint="leave it out"
        )
    fence = fences.parse(asked.fence or "")
    return Conditions(fences.condition(fence), "fence", lease_id=lease_id, fence=fence)


def _guard_name(headers: Mapping[str, str], lease_id: str | None) -> str:
    if Condition.IF_MATCH.header in headers:
        return "if-match"
    if Condition.IF_NONE_MATCH.header in headers:
        return "if-none-match"
    if headers:
        return "conditions"
    return "lease" if lease_id is not None else "none"
