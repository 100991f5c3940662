"""The value of a condition as it was typed → as it is sent."""

import re

from azguard.accounts.target import Target
from azguard.conditions import etags, remembered
from azguard.conditions.operations import Condition, Operation
from azguard.conditions.seen import Remembered
from azguard.errors import UsageError
from azguard.times import parse_http_date

_LAST = "@last"
# Conditions by what their value is; tags conditions are sent as they are.
_ETAGS = frozenset(each for each in Condition if each.endswith("-match"))
_DATES = frozenset(each for each in Condition if each.endswith("-since"))
_NUMBERS = frozenset(each for each in Condition if each not in _ETAGS | _DATES and not each.endswith("if-tags"))


def sent(operation: Operation, condition: Condition, value: str, known: Remembered, target: Target) -> str:
    """Return the value of the header of a condition.

    Raises:
        UsageError: it is malformed, or means nothing on this operation.
        Changed: ``@last`` of something this scope never read.
    """
    if condition in _DATES:
        return parse_http_date(value, condition.flag)
    if condition in _NUMBERS:
        return _number(value, condition.flag)
    if condition not in _ETAGS:
        return value
    if value != "*":
        return etag(value, condition.flag, known, target)
    if condition not in operation.wildcards:
        raise UsageError(f"{condition.flag} '*' means nothing here: only a write that creates can require absence")
    return value


def etag(value: str, option: str, known: Remembered, target: Target) -> str:
    """Return an ETag as it is sent; ``@last`` is the version that this scope last read.

    Raises:
        UsageError: it is none.
        Changed: ``@last`` of something this scope never read.
    """
    if value == _LAST:
        if option.startswith("--source-"):
            raise UsageError(f"{option}: @last is of what is written, not of its source", hint="name the ETag itself")
        if known.last is None:
            raise remembered.never_read(target, (remembered.how_to_see(target),))
        return remembered.version(known.last, target)
    return (
        etags.parse_entity_etag(value, option)
        if target.kind.service == "table"
        else etags.parse_blob_etag(value, option)
    )


def _number(value: str, option: str) -> str:
    if not re.fullmatch(r"[0-9]{1,19}", value):
        raise UsageError(f"{option}: {value!r} is not a whole number")
    return value
