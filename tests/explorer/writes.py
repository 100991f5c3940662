"""Single writes of one blob, two at once: put, create, delete, append, copy.

Each is guarded by the version that its process has read. Exit 0 is applied once, a refusal never, and no version is
replaced that the process had not read.
"""

import io
from collections.abc import Callable, Hashable, Iterator
from typing import Any

from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.blobs import copies, deletes
from azguard.blobs.content import append_write, put_blob
from azguard.blobs.content.append_blob import Append
from azguard.blobs.content.upload import Settings, Upload
from azguard.blobs.copies import BlobCopy, CopySettings
from azguard.guards.resolve import POSITION, Conditions
from azguard.requests.lineage import KEY, new_op
from azguard.resources import properties
from tests.explorer.blob_service import Blob, BlobService
from tests.explorer.faults import USUAL, Fault
from tests.explorer.foreign import BEYOND, FOREIGN, PATH
from tests.explorer.player import Ended, Process, Program
from tests.explorer.scenario import Bound, Effect, Scenario, Services, Violation
from tests.explorer.updates import ONCE, REFUSED, Even, Ghost, stored, with_pair
from tests.explorer.wire import Asked
from tests.support.no_records import NoRecords

SOURCE = "site/source"
#: The network alone: beside a program that drops the lineage it cannot be known (``ONCE``).
TWICE = (Fault.TWICE,)
# A create can bring back what was deleted meanwhile, as docs/guarantees.md says.
_KEEPING = ("writes, and drops the metadata", "writes, and keeps the metadata")
_LEAST = (*_KEEPING, "deletes the blob")
_GROWS = ("writes, and keeps the metadata",)
_DEEP = {"create": Bound(faults=2, foreign=1), "append": Bound(faults=1, foreign=1, switches=1)}


class WriteRules:
    """What is true of each write; ``keeps`` says that it adds to what is there, and replaces nothing."""

    def __init__(self, *, keeps: bool = False) -> None:
        self._keeps = keeps

    def begin(self) -> Ghost:
        return Ghost()

    def find_given(self, ghost: Ghost, program: Program) -> tuple[tuple[str, str], ...]:
        return ()

    def see_sent(self, ghost: Ghost, who: str, asked: Asked) -> Ghost:
        return ghost

    def see_effect(self, ghost: Ghost, effect: Effect) -> Ghost:
        before: Blob | None = effect.before["blob"].blobs.get(PATH)
        after: Blob | None = effect.after["blob"].blobs.get(PATH)
        if before is not None and after is not None and before.etag == after.etag:
            return ghost
        if not self._keeps and (before.etag if before else "-") != dict(ghost.disk).get(effect.who):
            raise Violation(f"{effect.who} replaced a version that it had not read")
        old = b"" if before is None else before.content
        if self._keeps and after is not None and after.content == old:
            return ghost  # It made the blob that it appends to.
        if self._keeps and (after is None or after.content != old + effect.who.encode()):
            raise Violation(f"{effect.who} did more than append")
        if dict(ghost.applied).get(effect.who):
            raise Violation(f"{effect.who} was applied twice")
        ended = dict(ghost.ends).get(effect.who)
        if ended is not None and ended.status in REFUSED:
            raise Violation(f"{effect.who} ended {ended.status} ({ended.outcome}), and was applied afterwards")
        return ghost._replace(applied=with_pair(ghost.applied, effect.who, (effect.who,)))

    def see_foreign(self, ghost: Ghost, before: Services, after: Services) -> Ghost:
        return ghost

    def see_told(self, ghost: Ghost, who: str, event: tuple[Any, ...], now: float) -> Ghost:
        return ghost._replace(disk=with_pair(ghost.disk, who, event[1]))

    def see_kill(self, ghost: Ghost, who: str) -> Ghost:
        return ghost

    def see_end(self, ghost: Ghost, who: str, ended: Ended, services: Services, now: float) -> Ghost:
        is_applied = bool(dict(ghost.applied).get(who))
        if ended.status == 0 and not is_applied:
            raise Violation(f"{who} ended 0 ({ended.outcome}), and was not applied")
        if ended.status in REFUSED and is_applied:
            raise Violation(f"{who} ended {ended.status} ({ended.outcome}), and was applied")
        if ended.status not in (0, 74, *REFUSED):
            raise Violation(f"{who} ended {ended.status}: {ended.outcome}")
        return ghost._replace(ends=with_pair(ghost.ends, who, ended))

    def check_over(self, ghost: Ghost, services: Services, now: float) -> None:
        """Nothing is left of a single write but what it wrote."""

    def find_truth(self, ghost: Ghost, who: str) -> Hashable:
        return "applied" if dict(ghost.applied).get(who) else "not applied"


#: Does one write, guarded by the version that was read.
Write = Callable[[Process, Target, Conditions], object]


def _writer(name: str, write: Write, *, reads: bool = True, after: str | None = None) -> Program:
    def main(process: Process) -> str:
        target = Target(process.account, Address(Kind.BLOB, tuple(PATH.split("/", 1))))
        conditions = Conditions({"If-None-Match": "*"}, "if-none-match")
        if reads:
            found = properties.fetch(target, Conditions(), process.deadline(30))
            lineage = (found.metadata or {}).get(KEY)
            conditions = Conditions({"If-Match": found.etag}, "if-match", found.etag, lineage=lineage)
        process.tell("read", conditions.expected_etag or "-")
        write(process, target, conditions)
        return "committed"

    return Program(name, main, after=after)


def _put(process: Process, target: Target, conditions: Conditions) -> None:
    upload = Upload(target, Settings(), conditions, process.deadline(30), new_op(process.make(12)))
    put_blob.put(upload.add_lineage(), io.BytesIO(process.name.encode()), lambda done: None)


def _delete(process: Process, target: Target, conditions: Conditions) -> None:
    deletes.delete(target, conditions, None, process.deadline(30))


def _append(process: Process, target: Target, conditions: Conditions) -> None:
    given = Append(
        target=target,
        conditions=Conditions(guard=POSITION),
        deadline=process.deadline(30),
        create=Settings(),
        contention_seconds=1.0,
        chance=Even(),
    )
    append_write.append(given, iter([process.name.encode()]), NoRecords())


def _copy(process: Process, target: Target, conditions: Conditions) -> None:
    source = Target(target.account, Address(Kind.BLOB, tuple(SOURCE.split("/", 1))))
    given = BlobCopy(
        target=target,
        source=source,
        settings=CopySettings(),
        conditions=conditions,
        deadline=process.deadline(30),
        op=new_op(process.make(12)),
    )
    copies.copy(given)


def scenarios() -> Iterator[Scenario]:
    """Yield the scenarios of single writes."""
    nothing: Services = {"blob": BlobService()}
    log: BlobService = BlobService().write(PATH, 0.0, content=b"s", kind="AppendBlob")
    source: BlobService = stored()["blob"]
    given: tuple[tuple[str, Write, Services, bool], ...] = (
        ("put", _put, stored(), True),
        ("create", _put, nothing, False),
        ("delete", _delete, stored(), True),
        ("append", _append, {"blob": log}, False),
        ("copy", _copy, {"blob": source.write(SOURCE, 0.0, content=b"c")}, True),
    )
    for name, write, services, reads in given:
        yield _scenario(name, write, services, reads=reads)
        yield _scenario(name, write, services, reads=reads, is_again=True)
    yield _scenario("put, sent twice", _put, stored(), alphabet=TWICE)
    yield _scenario("create, sent twice", _put, nothing, reads=False, alphabet=TWICE)


def _scenario(
    name: str,
    write: Write,
    services: Services,
    *,
    reads: bool = True,
    is_again: bool = False,
    alphabet: tuple[Fault, ...] | None = None,
) -> Scenario:
    """Return the scenario of two writers at once, or of one that is run again once it has ended."""
    second = _writer("B", write, reads=reads, after="A" if is_again else None)
    others = (_LEAST if reads else _KEEPING) if write is not _append else _GROWS
    usual = Bound(faults=1, foreign=0 if write is _append or alphabet is TWICE else 1)
    return Scenario(
        name=f"{name}, again" if is_again else name,
        programs=(_writer("A", write, reads=reads), second),
        services=services,
        rules=WriteRules(keeps=write is _append),
        bound=usual,
        deep=Bound(faults=2, foreign=1) if is_again else _DEEP.get(name),
        short=None if is_again else Bound(faults=1, foreign=0 if write in (_append, _copy, _put) else 1),
        foreign={} if alphabet is TWICE else {name: FOREIGN[name] for name in others},
        beyond=BEYOND,
        alphabet=alphabet or (USUAL if write is _delete else ONCE),
        is_symmetric=not is_again,
        has_own_clocks=True,
    )
