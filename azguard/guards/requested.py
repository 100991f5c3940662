"""The conditions that a caller names, as text: one that the operation would ignore is refused, the others are read.

Then lease ids and the values of conditions, from as they were typed to as they are sent.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import fields
from functools import cached_property
from typing import Any

from azguard.accounts.account import Target
from azguard.errors import UsageError
from azguard.frozen import frozen
from azguard.guards import versions
from azguard.guards.versions import Remembered
from azguard.times import parse_http_date
from azguard.wire.rows import Condition, Guard, Lease, Operation, Write, list_contradictions


@frozen
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
        return cls(**{name: value for name, value in options.items() if value is not None and name in _NAMES})

    @cached_property
    def given(self) -> tuple[str, ...]:
        """Return the names of the given conditions."""
        return tuple(name for name in _NAMES if getattr(self, name) not in (None, False))

    @cached_property
    def values(self) -> Mapping[Condition, str]:
        """Return the values of the conditions that the service evaluates, as far as they are given."""
        every = ((condition, getattr(self, condition.argument)) for condition in Condition)
        return {condition: value for condition, value in every if value is not None}


_NAMES = [each.name for each in fields(RequestedConditions)]
#: What a create-only write means.
CREATE_ONLY = RequestedConditions(if_none_match="*")


def check(operation: Operation, asked: RequestedConditions) -> None:
    """Refuse the conditions that the operation honours on no resource.

    Raises:
        UsageError: an empty value, or a condition or combination that would be ignored; says why.
    """
    refuse_ignored(operation, asked)
    if len(asked.given) < len(("one", "another")):
        return
    for each in list_contradictions(operation):
        pair = each.find(asked.given)
        if pair is not None:
            raise UsageError(
                f"{pair[0]} and {pair[1]} do not go together: {each.why}",
                argument=pair[0],
                reason="conditions_contradict",
                values={"other": pair[1], "why": each.why},
            )


def refuse_ignored(operation: Operation, asked: RequestedConditions, others: Collection[str] = ()) -> None:
    """Refuse each condition by itself that is empty, or that means nothing to the operation.

    ``others`` are those that another form of it asks for.

    Raises:
        UsageError: says why.
    """
    for name in asked.given:
        value = getattr(asked, name)
        if isinstance(value, str) and not value.strip():
            raise UsageError(f"{name} is empty", argument=name, reason="condition_empty")
    for name in asked.given:
        if name not in operation.asks and name not in others:
            raise _explain_ignored(operation, name)


def _explain_ignored(operation: Operation, name: str) -> UsageError:
    from azguard.wire.catalogue import why_no_race, why_not, why_not_overwriting  # which knows all operations

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
    from azguard.wire.catalogue import why_not

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


_LAST = "@last"
# Conditions by what their value is; the others are tags conditions.
_ETAGS = frozenset(each for each in Condition if each.endswith("-match"))
_DATES = frozenset(each for each in Condition if each.endswith("-since"))
_SIZES = frozenset({Condition.APPEND_POSITION, Condition.MAX_SIZE})
# The service reads such a header as a number of 64 bits.
_MOST_BYTES = 2**63 - 1
_NUMBERS = frozenset(each for each in Condition if each.startswith("if-sequence-number-"))
HELD = "@held"
_GUID = r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"


def resolve_value(operation: Operation, condition: Condition, value: str, known: Remembered, target: Target) -> str:
    """Return the value of the header of a condition."""
    if condition in _DATES:
        return parse_http_date(value, condition.argument)
    if condition in _SIZES:
        return _size(value, condition.argument)
    if condition in _NUMBERS:
        return _number(value, condition.argument)
    if condition not in _ETAGS:
        return _tags_condition(value, condition.argument)
    if value != "*":
        return resolve_etag(operation, value, condition.argument, known, target)
    if condition not in operation.wildcards:
        raise UsageError(
            f"{condition} '*' means nothing here: only a write that creates can require absence",
            argument=condition.argument,
            reason="wildcard_without_effect",
        )
    return value


def resolve_etag(operation: Operation, value: str, argument: str, known: Remembered, target: Target) -> str:
    """Return an ETag as it is sent; ``@last`` is the version that this scope last read, or deleted."""
    if value == _LAST:
        if argument.startswith("source_"):
            raise UsageError(
                "@last is of what is written, not of its source", argument=argument, reason="last_of_source"
            )
        last = known.last if operation.creates else known.last or known.deleted
        if last is None:
            raise versions.never_read(target, operation.part, reason="never_read")
        return versions.version_of(last, target)
    if target.kind.service == "table":
        return versions.parse_table_etag(target.kind, value, argument)
    return versions.parse_blob_etag(value, argument)


def _tags_condition(value: str, argument: str) -> str:
    # The service reads it; a header must carry it unchanged.
    from azguard.documents.metadata import is_value

    if not is_value(value):
        raise UsageError(f"{value!r} cannot stand in a header", argument=argument, reason="tags_condition_malformed")
    return value


def _size(value: str, argument: str) -> str:
    from azguard.times import parse_size

    found = parse_size(value)
    if found is None or found > _MOST_BYTES:
        raise UsageError(f"{value!r} is not a number of bytes", argument=argument, reason="size_malformed")
    return str(found)


def _number(value: str, argument: str) -> str:
    if not re.fullmatch(r"[0-9]{1,19}", value):
        raise UsageError(f"{value!r} is not a whole number", argument=argument, reason="number_malformed")
    return value


def resolve_lease_id(asked: str | None, held: str | None) -> str | None:
    """Return the lease id to send; ``@held`` is ``held``, the one this scope holds.

    Raises:
        UsageError: it is empty or no GUID, or nothing is held.
    """
    if asked is None:
        return None
    if asked == HELD:
        if held is None:
            raise UsageError("@held: this scope holds no such lease", argument="lease_id", reason="lease_not_held_here")
        return held
    return parse_guid(asked, "lease_id")


def is_guid(text: str) -> bool:
    """Return whether the service takes a text for a lease id."""
    return re.fullmatch(_GUID, text) is not None


def parse_guid(text: str, argument: str) -> str:
    """Return the text if the service takes it for a lease id.

    Raises:
        UsageError: it is empty or no GUID.
    """
    if not text.strip():
        raise UsageError(f"{argument} is empty", argument=argument, reason="lease_id_empty")
    if not is_guid(text):
        raise UsageError(f"{text!r} is not a GUID", argument=argument, reason="lease_id_malformed")
    return text
