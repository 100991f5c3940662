"""All operations by their names; and why one of them does not honour a condition.

No command stands for these: ``blob.put_append_blob``, ``blob.put_page_blob``, ``file.create``, ``file.copy``;
``container.list``, ``queue.list``, ``share.list``, ``directory.list``. Some of them are steps of a command.
"""

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from azguard.wire.operations import blobs, containers, queues, shares, tables
from azguard.wire.rows import FULL, SOURCE_FULL, Condition, Guard, Operation, Write

ALL: Mapping[str, Operation] = MappingProxyType(
    {
        row.name: row
        for service in (blobs, containers, tables, queues, shares)
        for row in vars(service).values()
        if isinstance(row, Operation) and row.noun != "account"
    }
)


class Contradiction(NamedTuple):
    """Arguments of one operation that do not go together."""

    arguments: tuple[str, ...]
    #: What goes with none of the arguments; empty where no two of the arguments go together.
    others: tuple[str, ...]
    #: The reason, in a sentence without its full stop.
    why: str

    def find(self, given: Collection[str]) -> tuple[str, str] | None:
        """Return two of the arguments that were given and do not go together; None if they all do."""
        one = [name for name in self.arguments if name in given]
        other = [name for name in self.others if name in given] if self.others else one[1:]
        return (one[0], other[0]) if one and other else None


def list_contradictions(operation: Operation) -> tuple[Contradiction, ...]:
    """Return which arguments of conditions and guards must not stand together on an operation.

    Of two standard conditions the service refuses both (400 MultipleConditionHeadersNotSupported) or evaluates
    one. What it makes of a tags condition beside another is unknown on writes, and the emulator then ignores
    the tags. Conditions on a source follow the same rule among themselves. Append position, size and sequence
    number are evaluated beside the others.

    https://learn.microsoft.com/rest/api/storageservices/specifying-conditional-headers-for-blob-service-operations
    """
    return tuple(each for each in _contradict(operation) if each.others or len(each.arguments) > 1)


def _contradict(operation: Operation) -> Iterator[Contradiction]:
    own = [condition.argument for condition in Condition if not condition.of_source]
    for one, others, why in (
        ("last_writer_wins", [*own, "etag", "allow_race"], "one asks for a guard, the other for none"),
        ("fence", [*own, "etag", "last_writer_wins"], "beside another condition the fence could be ignored"),
        ("etag", own, "each of the two is a guard of its own"),
    ):
        if one in operation.asks:
            yield Contradiction((one,), tuple(name for name in others if name in operation.asks), why)
    if not operation.combines:
        for family in (FULL, SOURCE_FULL):
            arguments = tuple(each.argument for each in Condition if each in family & operation.honours)
            yield Contradiction(arguments, (), "the service rejects the pair, or evaluates only one of them")


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
    if operation.guard is Guard.LEASE:
        return "a lease keeps others out meanwhile, so there is no race to allow"
    return f"with {operation.title} no version is compared"


def _with_remark(operation: Operation, sentence: str) -> str:
    return f"{sentence}; {operation.remark}" if operation.remark else sentence


def _list(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
