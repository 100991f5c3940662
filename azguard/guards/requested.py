"""The conditions that a caller names, as text. One that the operation would ignore is refused before any request."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from azguard.errors import UsageError
from azguard.wire.catalogue import find_rejected_pair, why_no_race, why_not, why_not_overwriting
from azguard.wire.rows import Condition, Guard, Lease, Operation, Write


@dataclass(frozen=True)
class RequestedConditions:
    """The conditions as the caller gives them; None is not given."""

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
    append_position: str | None = None
    max_size: str | None = None
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
        """Return the conditions among named arguments, such as the options of a command line."""
        given: dict[str, Any] = {each.name: options.get(each.name) for each in fields(cls)}
        given |= {name: bool(given[name]) for name in ("last_writer_wins", "allow_race")}
        return cls(**given)

    @cached_property
    def values(self) -> Mapping[Condition, str]:
        """Return the values of the conditions that the service evaluates, as far as they are given."""
        every = ((condition, getattr(self, condition.argument)) for condition in Condition)
        return {condition: value for condition, value in every if value is not None}


#: What a create-only write means.
CREATE_ONLY = RequestedConditions(if_none_match="*")


def check(operation: Operation, asked: RequestedConditions) -> None:
    """Refuse what the operation does not honour, whatever it is done to.

    Raises:
        UsageError: an empty value, or a condition or combination that would be ignored; says why.
    """
    _refuse_empty(asked)
    _refuse_unhonoured(operation, asked, asked.values)
    _refuse_without_effect(operation, asked)


def _refuse_empty(asked: RequestedConditions) -> None:
    for each in fields(asked):
        value = getattr(asked, each.name)
        if isinstance(value, str) and not value.strip():
            raise UsageError(f"{each.name} is empty", argument=each.name, reason="condition_empty")


def _refuse_unhonoured(operation: Operation, asked: RequestedConditions, values: Mapping[Condition, str]) -> None:
    first = next((each for each in values if not each.of_source), None)
    if asked.last_writer_wins:
        _check_last_writer_wins(operation, asked, first)
    if asked.etag is not None:
        _check_etag(operation, first)
    for condition in values:
        if condition not in operation.honours:
            raise _not_enforced(operation, condition)
    pair = find_rejected_pair(operation, set(values))
    if pair is not None:
        raise UsageError(
            f"{pair[0]} and {pair[1]} do not go together here: the service rejects the pair, "
            "or evaluates only one of them",
            argument=pair[0].argument,
            reason="conditions_rejected_together",
            values={"other": pair[1]},
        )


def _check_last_writer_wins(operation: Operation, asked: RequestedConditions, first: Condition | None) -> None:
    if not operation.overwrites:
        raise _without_effect(
            "last_writer_wins changes nothing here",
            why_not_overwriting(operation),
            argument="last_writer_wins",
            reason="last_writer_wins_without_effect",
        )
    if first is not None or asked.etag is not None:
        other = "etag" if first is None else first.argument
        raise UsageError(
            f"last_writer_wins and {other} contradict each other",
            argument=other,
            reason="last_writer_wins_with_condition",
        )


def _check_etag(operation: Operation, first: Condition | None) -> None:
    if first is not None:
        raise UsageError(f"etag and {first} do not go together", argument=first.argument, reason="etag_with_condition")
    if not operation.writes:
        raise UsageError(
            f"etag guards writes, and {operation.title} writes nothing",
            argument="etag",
            reason="etag_on_conditional_read" if Condition.IF_MATCH in operation.honours else "etag_on_read",
            values={"operation": operation.title},
        )
    if operation.guard is Guard.NONE:
        raise _without_effect(
            "etag cannot be kept here",
            why_not(operation, Condition.IF_MATCH),
            argument="etag",
            reason="etag_not_kept_on_change" if operation.write is Write.CHANGES else "etag_not_kept",
        )


def _not_enforced(operation: Operation, condition: Condition) -> UsageError:
    has_etag = condition is Condition.IF_MATCH and operation.guard is not Guard.NONE
    return _without_effect(
        f"{condition} is not enforced here",
        why_not(operation, condition),
        argument=condition.argument,
        reason="if_match_not_enforced" if has_etag else "condition_not_enforced",
    )


def _without_effect(what: str, why: str, *, argument: str, reason: str) -> UsageError:
    return UsageError(f"{what}: {why}", argument=argument, reason=reason, values={"why": why})


def _refuse_without_effect(operation: Operation, asked: RequestedConditions) -> None:
    """Refuse what is no header's condition and means nothing to this operation."""
    if asked.allow_race and operation.guard is not Guard.COMPARE:
        raise _without_effect(
            "allow_race changes nothing here",
            why_no_race(operation),
            argument="allow_race",
            reason="allow_race_without_effect",
        )
    if asked.lease_id is not None and not operation.names_lease:
        raise _without_effect(
            "lease_id is not enforced here",
            _why_no_lease_id(operation),
            argument="lease_id",
            reason="condition_not_enforced",
        )
    if asked.fence is not None and not operation.fences:
        raise _without_effect(
            "fence is not enforced here",
            _why_no_fence(operation),
            argument="fence",
            reason="fence_not_enforced",
        )


def _why_no_fence(operation: Operation) -> str:
    if operation.writes and Condition.IF_TAGS in operation.honours:
        return f"{operation.title} sets no index tags, and a fence is kept in one"
    return "only writes of a blob's content or tags, and its deletion, keep it"


def _why_no_lease_id(operation: Operation) -> str:
    if operation.lease is Lease.SUBJECT:
        return "acquiring and breaking a lease go without its id"
    return f"{operation.title} takes no lease id"
