"""The value of a condition, or a lease id, as it was typed → as it is sent."""

import re

from azguard.accounts.account import Target
from azguard.errors import UsageError
from azguard.guards import versions
from azguard.guards.versions import Remembered
from azguard.times import parse_http_date
from azguard.wire.rows import Condition, Operation

_LAST = "@last"
# Conditions by what their value is; the others are tags conditions.
_ETAGS = frozenset(each for each in Condition if each.endswith("-match"))
_DATES = frozenset(each for each in Condition if each.endswith("-since"))
_SIZES = frozenset({Condition.APPEND_POSITION, Condition.MAX_SIZE})
# The service reads such a header as a number of 64 bits.
_MOST_BYTES = 2**63 - 1
_NUMBERS = frozenset(each for each in Condition if each.startswith("if-sequence-number-"))
HELD = "@held"
_GUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def resolve(operation: Operation, condition: Condition, value: str, known: Remembered, target: Target) -> str:
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
        return etag(operation, value, condition.argument, known, target)
    if condition not in operation.wildcards:
        raise UsageError(
            f"{condition} '*' means nothing here: only a write that creates can require absence",
            argument=condition.argument,
            reason="wildcard_without_effect",
        )
    return value


def etag(operation: Operation, value: str, argument: str, known: Remembered, target: Target) -> str:
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
    """Return a tags condition as it is typed: the service reads it, but a header must carry it unchanged."""
    from azguard.documents.metadata import is_value

    if not is_value(value):
        raise UsageError(f"{value!r} cannot stand in a header", argument=argument, reason="tags_condition_malformed")
    return value


def _size(value: str, argument: str) -> str:
    """Return a size in bytes, as the service takes it."""
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
            raise UsageError(
                "@held: this scope holds no such lease",
                argument="lease_id",
                reason="lease_not_held_here",
            )
        return held
    return parse_guid(asked, "lease_id")


def is_guid(text: str) -> bool:
    """Return whether the service takes a text for a lease id."""
    return _GUID.fullmatch(text) is not None


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
