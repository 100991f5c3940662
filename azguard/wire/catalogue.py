"""All operations by their names; and why one of them does not honour a condition.

No command stands for these: ``blob.put_append_blob``, ``blob.put_page_blob``, ``file.create``, ``file.copy``;
``container.list``, ``queue.list``, ``share.list``, ``directory.list``. Some of them are steps of a command.
"""

from collections.abc import Mapping
from types import MappingProxyType

from azguard.wire.operations import blobs, containers, queues, shares, tables
from azguard.wire.rows import FULL, Condition, Guard, Operation, Write

ALL: Mapping[str, Operation] = MappingProxyType(
    {
        row.name: row
        for service in (blobs, containers, tables, queues, shares)
        for value in vars(service).values()
        for row in (value if isinstance(value, list) else [value])
        if isinstance(row, Operation) and row.noun != "account"
    }
)


def why_not(operation: Operation, condition: Condition) -> str:
    """Return, in one sentence without its full stop, why the operation does not honour the condition."""
    if operation.noun in ("share", "directory", "file"):
        return "Azure Files evaluates no conditions, neither on reads nor on writes"
    if operation.noun == "queue":
        return _with_remark(operation, "the Queue service has no ETags and evaluates no conditions")
    if operation.write is Write.CREATES and condition is Condition.IF_NONE_MATCH:
        return f"{operation.title} never replaces anything, so it needs no create-only condition"
    if condition not in FULL:
        honouring = {row.title for row in ALL.values() if condition in row.honours}
        return f"only {_list(sorted(honouring))} {'honours' if len(honouring) == 1 else 'honour'} it"
    names = [str(each) for each in Condition if each in operation.honours]
    honours = f"only {_list(names)}" if names else "no conditions"
    return _with_remark(operation, f"{operation.title} honours {honours}")


def why_not_overwriting(operation: Operation) -> str:
    """Return, in one sentence without its full stop, why ``last_writer_wins`` changes nothing here."""
    if not operation.writes:
        return f"{operation.title} writes nothing"
    return _with_remark(operation, f"{operation.title} overwrites nothing")


def why_no_race(operation: Operation) -> str:
    """Return, in one sentence without its full stop, why ``allow_race`` changes nothing here."""
    if operation.guard is Guard.IF_MATCH:
        return "the service itself compares, so there is no race to allow"
    if operation.guard is Guard.VERSION:
        return "the request names the version, which never changes, so there is no race to allow"
    if operation.guard is Guard.LEASE:
        return "a lease keeps others out meanwhile, so there is no race to allow"
    return f"with {operation.title} no version is compared"


def _with_remark(operation: Operation, sentence: str) -> str:
    return f"{sentence}; {operation.remark}" if operation.remark else sentence


def _list(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
