"""The conditions that a caller names, as text. One that the operation would ignore is refused before any request."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from azguard.errors import UsageError
from azguard.wire.catalogue import list_contradictions, why_no_race, why_not, why_not_overwriting
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
    def given(self) -> tuple[str, ...]:
        """Return the names of those that are given."""
        return tuple(each.name for each in fields(self) if getattr(self, each.name) not in (None, False))

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
    refuse_ignored(operation, asked)
    for each in list_contradictions(operation):
        pair = each.find(asked.given)
        if pair is not None:
            raise UsageError(
                f"{pair[0]} and {pair[1]} do not go together: {each.why}",
                argument=pair[0],
                reason="conditions_contradict",
                values={"other": pair[1], "why": each.why},
            )


def refuse_ignored(operation: Operation, asked: RequestedConditions) -> None:
    """Refuse each condition by itself that is empty, or that means nothing to the operation.

    Raises:
        UsageError: says why.
    """
    for name in asked.given:
        value = getattr(asked, name)
        if isinstance(value, str) and not value.strip():
            raise UsageError(f"{name} is empty", argument=name, reason="condition_empty")
    for name in asked.given:
        if name not in operation.asks:
            raise _explain_ignored(operation, name)


def _explain_ignored(operation: Operation, name: str) -> UsageError:
    match name:
        case "last_writer_wins":
            return _without_effect(name, "changes nothing here", why_not_overwriting(operation))
        case "allow_race":
            return _without_effect(name, "changes nothing here", why_no_race(operation))
        case "lease_id":
            return _without_effect(name, "is not enforced here", _why_no_lease_id(operation))
        case "fence":
            return _without_effect(name, "is not enforced here", _why_no_fence(operation))
        case "etag":
            return _explain_etag(operation)
    condition = next(each for each in Condition if each.argument == name)
    has_etag = condition is Condition.IF_MATCH and operation.guard is not Guard.NONE
    ignored = _without_effect(name, "is not enforced here", why_not(operation, condition))
    return ignored.but(reason="if_match_not_enforced") if has_etag else ignored


def _explain_etag(operation: Operation) -> UsageError:
    if not operation.writes:
        return UsageError(
            f"etag guards writes, and {operation.title} writes nothing",
            argument="etag",
            reason="etag_on_conditional_read" if Condition.IF_MATCH in operation.honours else "etag_on_read",
            values={"operation": operation.title},
        )
    ignored = _without_effect("etag", "cannot be kept here", why_not(operation, Condition.IF_MATCH))
    return ignored.but(reason="etag_not_kept_on_change") if operation.write is Write.CHANGES else ignored


def _without_effect(name: str, what: str, why: str) -> UsageError:
    values = {"what": what, "why": why}
    return UsageError(f"{name} {what}: {why}", argument=name, reason="condition_ignored", values=values)


def _why_no_fence(operation: Operation) -> str:
    if operation.writes and Condition.IF_TAGS in operation.honours:
        return f"{operation.title} sets no index tags, and a fence is kept in one"
    return "only writes of a blob's content or tags, and its deletion, keep it"


def _why_no_lease_id(operation: Operation) -> str:
    if operation.lease is Lease.SUBJECT:
        return "acquiring and breaking a lease go without its id"
    return f"{operation.title} takes no lease id"
