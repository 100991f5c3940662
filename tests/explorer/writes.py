"""Single writes of one blob, two at once: put, create, delete, append, copy, and a write between two runs of one op-id.

Each is guarded by the version that its process has read. Exit 0 is applied once, a refusal never, no version is
replaced that the process had not read, and the version that it says it has made is its own.
"""

import io
from collections.abc import Callable, Hashable, Iterator
from functools import partial
from typing import Any

from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.blobs import copies, deletes, headers
from azguard.blobs.content import append_write, put_blob
from azguard.blobs.content.append_blob import Append, Proof
from azguard.blobs.content.upload import Settings, Upload
from azguard.blobs.copies import BlobCopy, CopySettings
from azguard.blobs.updates import BlobContent
from azguard.guards.resolve import POSITION, Conditions
from azguard.guards.versions import BLOCK_BLOB
from azguard.requests.lineage import KEY
from azguard.requests.results import Written
from azguard.resources import properties
from tests.explorer.blob_service import Blob, BlobService
from tests.explorer.faults import USUAL, Fault
from tests.explorer.foreign import BEYOND, FOREIGN, KEYS_LEFT, PATH, TRIMS, change_blob
from tests.explorer.player import Ended, Process, Program
from tests.explorer.scenario import (
    STOPPED,
    STOPPED_BESIDE,
    Bound,
    Effect,
    Foreign,
    Rules,
    Scenario,
    Services,
    Violation,
)
from tests.explorer.updates import (
    ONCE,
    REFUSED,
    Even,
    Ghost,
    UpdateRules,
    asker,
    op_of,
    stored,
    updater,
    with_pair,
)
from tests.support.no_records import NoRecords

SOURCE = "site/source"
#: The network alone: beside a program that drops the lineage it cannot be known (``ONCE``).
TWICE = (Fault.TWICE,)
# A create can bring back what was deleted meanwhile, as docs/guarantees.md says.
_KEEPING = ("writes, and drops the metadata", "writes, and keeps the metadata")
_LEAST = (*_KEEPING, "deletes the blob")
_GROWS = ("writes, and keeps the metadata",)
_DELETES = (*_LEAST, "creates the blob")
# Under which the rules remember the version that a process has made.
_MADE = "made by "
_LINE = b"x"
# So long that it is put in blocks: see ``player``.
_BLOCK_BYTES = 33


class WriteRules(Rules):
    """What is true of each write; ``keeps`` says that it adds to what is there, and replaces nothing.

    ``is_guarded`` says that it is for the version that was read; ``line`` is what each appends, if not its name.
    """

    def __init__(self, *, keeps: bool = False, is_guarded: bool = True, line: bytes | None = None) -> None:
        self._keeps = keeps
        self._is_guarded = is_guarded and not keeps
        self._line = line

    def begin(self) -> Ghost:
        return Ghost()

    def find(self, services: Services) -> Blob | None:
        """Return what is written, as a blob."""
        found: Blob | None = services["blob"].blobs.get(PATH)
        return found

    def see_effect(self, ghost: Ghost, effect: Effect) -> Ghost:
        before, after = self.find(effect.before), self.find(effect.after)
        if before is after or (before is not None and after is not None and before.etag == after.etag):
            return ghost
        if self._is_guarded and (before.etag if before else "-") != dict(ghost.disk).get(effect.who):
            raise Violation(f"{effect.who} replaced a version that it had not read")
        if effect.asked.header("x-ms-copy-source") and after is not None:
            source: Blob = effect.before["blob"].blobs[SOURCE]
            if _without_lineage(source) != _without_lineage(after):
                raise Violation(f"{effect.who} copied the content of one version, and the metadata of another")
        if effect.asked.asks("comp") == "blocklist" and after is not None and after.content != _fill(effect.who):
            raise Violation(f"{effect.who} committed blocks of another")
        old = b"" if before is None else before.content
        if self._keeps and after is not None and after.content == old:
            return ghost  # It made the blob that it appends to.
        if self._keeps and (after is None or after.content != old + (self._line or effect.who.encode())):
            raise Violation(f"{effect.who} did more than append")
        if dict(ghost.applied).get(effect.who):
            raise Violation(f"{effect.who} was applied twice")
        ended = dict(ghost.ends).get(effect.who)
        if ended is not None and ended.status in REFUSED:
            raise Violation(f"{effect.who} ended {ended.status} ({ended.outcome}), and was applied afterwards")
        made = None if after is None else after.etag
        ghost = ghost._replace(disk=with_pair(ghost.disk, _MADE + effect.who, made))
        return ghost._replace(applied=with_pair(ghost.applied, effect.who, (effect.who,)))

    def see_told(self, ghost: Ghost, who: str, event: tuple[Any, ...], now: float) -> Ghost:
        kind, etag = event
        if kind == "read":
            return ghost._replace(disk=with_pair(ghost.disk, who, etag))
        if etag is not None and etag != dict(ghost.disk).get(_MADE + who):
            raise Violation(f"{who} says that it has made a version that another has made")
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

    def find_truth(self, ghost: Ghost, who: str, what: str) -> Hashable:
        return "applied" if dict(ghost.applied).get(who) else "not applied"


def _without_lineage(blob: Blob) -> tuple[object, ...]:
    return blob.content, tuple(pair for pair in blob.metadata if pair[0] != KEY)


#: Does one write, guarded by the version that was read.
Write = Callable[[Process, Target, Conditions], Written]


def _writer(name: str, write: Write, *, reads: bool = True, after: str | None = None) -> Program:
    def main(process: Process) -> str:
        target = _target(process)
        conditions = Conditions({"If-None-Match": "*"}, "if-none-match")
        if reads:
            found = properties.fetch(target, Conditions(), process.deadline(30))
            lineage = (found.metadata or {}).get(KEY)
            conditions = Conditions({"If-Match": found.etag}, "if-match", found.etag, lineage=lineage)
        process.tell("read", conditions.expected_etag or "-")
        process.tell("wrote", write(process, target, conditions).etag)
        return "committed"

    return Program(name, main, after=after)


def _target(process: Process, path: str = PATH) -> Target:
    return Target(process.account, Address(Kind.BLOB, tuple(path.split("/", 1))))


def _put(process: Process, target: Target, conditions: Conditions) -> Written:
    return _put_content(process, target, conditions, process.name.encode(), Settings())


def _put_content(
    process: Process, target: Target, conditions: Conditions, content: bytes, settings: Settings
) -> Written:
    upload = Upload(target, settings, conditions, process.deadline(30), op_of(process.name))
    return put_blob.put(upload.add_lineage(), io.BytesIO(content), lambda done: None)


def _fill(name: str) -> bytes:
    """Return the content that a process puts in blocks: the first is full, and the second is not."""
    return name.encode() * (_BLOCK_BYTES + 1)


def _put_blocks(process: Process, target: Target, conditions: Conditions) -> Written:
    return _put_content(process, target, conditions, _fill(process.name), Settings())


def _put_over_any(process: Process, target: Target, _: Conditions) -> Written:
    return _put(process, target, Conditions())


def _delete(process: Process, target: Target, conditions: Conditions) -> Written:
    return deletes.delete(target, conditions, None, process.deadline(30))


def _delete_any(process: Process, target: Target, _: Conditions) -> Written:
    return _delete(process, target, Conditions())


def _append(process: Process, target: Target, _: Conditions) -> Written:
    return _append_line(process, target, process.name.encode())


def _append_same(process: Process, target: Target, _: Conditions) -> Written:
    return _append_line(process, target, _LINE)


def _append_under_lease(process: Process, target: Target, _: Conditions) -> Written:
    return _append_line(process, target, process.name.encode(), Proof.LEASE, 1.0)


def _append_line(
    process: Process, target: Target, line: bytes, proof: Proof = Proof.NONE, seconds: float = 30.0
) -> Written:
    given = Append(
        target=target,
        conditions=Conditions(guard=POSITION),
        deadline=process.deadline(seconds),
        proof=proof,
        create=Settings(),
        contention_seconds=1.0,
        chance=Even(),
    )
    return append_write.append(given, iter([line]), NoRecords())


def _copy(process: Process, target: Target, conditions: Conditions) -> Written:
    given = BlobCopy(
        target=target,
        source=_target(process, SOURCE),
        settings=CopySettings(),
        conditions=conditions,
        deadline=process.deadline(30),
        op=op_of(process.name),
    )
    return copies.copy(given)


def _put_between(process: Process, *, over_any: bool = False) -> str:
    """Put what is there with a letter more, over the version that was read, or over any."""
    target, deadline = _target(process), process.deadline(30)
    found = BlobContent(target).read(deadline)
    settings = Settings("application/octet-stream", metadata={"owner": "them"})
    conditions = Conditions(
        {"If-Match": str(found.etag)}, "if-match", found.etag, lineage=str(found.lineage), blob_type=BLOCK_BLOB
    )
    given = Conditions() if over_any else conditions
    _put_content(process, target, given, found.content + process.name.encode(), settings)
    return "committed"


def _set_metadata_between(process: Process) -> str:
    """Set the metadata that are there."""
    headers.replace_metadata(_target(process), {"owner": "them"}, Conditions(), NoRecords, process.deadline(30))
    return "set"


class BetweenRules(UpdateRules):
    """What is true of updates of one key, and of a single write between them."""

    def _check_other(self, ghost: Ghost, who: str, ended: Ended, services: Services) -> None:
        self._check_status(ghost, who, ended, 0, 42, 53, 74)


def _write_source(services: Services, now: float) -> Services:
    blobs: BlobService = services["blob"]
    return {**services, "blob": blobs.write(SOURCE, now, content=b"d", metadata=(("of", "d"),))}


def _create(services: Services, now: float) -> Services | None:
    blobs: BlobService = services["blob"]
    return None if PATH in blobs.blobs else {**services, "blob": blobs.write(PATH, now, content=b"n")}


def _put_back(services: Services, now: float) -> Services | None:
    """Write the metadata that were there at first, as a program does that has read them and compares nothing."""
    first: Blob = stored()["blob"].blobs[PATH]
    return change_blob(content=b"sf", metadata=first.metadata)(_create(services, now) or services, now)


_FOREIGN: dict[str, Foreign] = {
    **FOREIGN,
    "writes the source": _write_source,
    "creates the blob": _create,
    "appends what A appends": change_blob(content=lambda blob: blob.content + b"A"),
}


_PLAIN, _USUAL, _TWO = Bound(faults=1), Bound(faults=1, foreign=1), Bound(faults=2, foreign=1)


def scenarios() -> Iterator[Scenario]:
    """Yield the scenarios of single writes."""
    nothing: Services = {"blob": BlobService()}
    log: Services = {"blob": BlobService().write(PATH, 0.0, content=b"s", kind="AppendBlob")}
    source: BlobService = stored()["blob"]
    copied: Services = {"blob": source.write(SOURCE, 0.0, content=b"c", metadata=(("of", "c"),))}
    appended: dict[str, Any] = {"rules": WriteRules(keeps=True), "reads": False, "stopped": STOPPED_BESIDE}
    created: dict[str, Any] = {"short": _USUAL, "reads": False, "others": _KEEPING, "deep": _TWO}
    deleted: dict[str, Any] = {"short": _USUAL, "others": _DELETES, "alphabet": USUAL}
    given: tuple[tuple[str, Write, Services, dict[str, Any]], ...] = (
        ("put", _put, stored(), {}),
        ("create", _put, nothing, created),
        ("delete", _delete, stored(), deleted),
        ("append", _append, log, {**appended, "others": _GROWS, "bound": _PLAIN, "deep": _USUAL._replace(switches=1)}),
        ("copy", _copy, copied, {}),
    )
    for name, write, services, more in given:
        yield _scenario(name, write, services, **more)
        yield _scenario(f"{name}, again", write, services, **{**more, "short": None, "deep": _TWO}, is_again=True)
    turns = _PLAIN._replace(switches=1)
    yield _scenario(
        "put, of blocks", _put_blocks, stored(), others=(), bound=turns, short=turns, stopped=STOPPED_BESIDE
    )
    alone: dict[str, Any] = {"others": (*_LEAST, "wipes the metadata"), "is_alone": True}
    yield _scenario("put, of blocks, alone", _put_blocks, stored(), **alone)
    twice: dict[str, Any] = {"others": (), "alphabet": TWICE, "bound": _PLAIN}
    yield _scenario("put, sent twice", _put, stored(), **twice)
    yield _scenario("create, sent twice", _put, nothing, **{**twice, "reads": False})
    free: dict[str, Any] = {"rules": WriteRules(is_guarded=False), "others": _DELETES}
    yield _scenario("put over any version", _put_over_any, stored(), **free)
    yield _scenario("delete of any version", _delete_any, stored(), **free)
    moved: dict[str, Any] = {"others": ("writes the source",), "short": _USUAL, "is_alone": True}
    yield _scenario("copy, of a source that changes", _copy, copied, **moved)
    same: dict[str, Any] = {"rules": WriteRules(keeps=True, line=_LINE), "reads": False, "others": ()}
    yield _scenario("append, equal lines", _append_same, log, **same, bound=_PLAIN)
    yield _scenario(
        "append, under a lease",
        _append_under_lease,
        log,
        **{**appended, "is_alone": True},
        others=("breaks the lease", "appends what A appends"),
        alphabet=(Fault.LATE,),
        bound=Bound(faults=1, foreign=2),
    )
    for name, run, other in (("put", _put_between, None), ("metadata", _set_metadata_between, "writes")):
        between = Program("P", run, after="A", other=other, own="P")
        programs = updater("A", op="K"), between, updater("B", op="K", after="P")
        yield Scenario(
            name=f"op-id, {name} between",
            programs=programs,
            services=stored(conceals=True),
            rules=BetweenRules(programs),
            bound=Bound(faults=1, foreign=1, kills=1),
            short=_USUAL,
            foreign=KEYS_LEFT,
            beyond={**BEYOND, **TRIMS, **KEYS_LEFT},
            alphabet=ONCE,
            has_own_clocks=True,
        )
    over_any = Program("P", partial(_put_between, over_any=True), after="A", own="P")
    programs = updater("A", op="K"), over_any, asker("C", "K", after="P")
    yield Scenario(
        name="op-id, asked after a put over any version",
        programs=programs,
        services=stored(conceals=True),
        rules=UpdateRules(programs, knows=False),
        bound=_PLAIN,
        short=_PLAIN,
        # What arrives late may come right before the put, which compares nothing.
        alphabet=tuple(each for each in ONCE if each is not Fault.LATE),
        has_own_clocks=True,
    )


def _scenario(
    name: str,
    write: Write,
    services: Services,
    *,
    others: tuple[str, ...] = _LEAST,
    rules: WriteRules | None = None,
    bound: Bound = _USUAL,
    short: Bound | None = _PLAIN,
    deep: Bound | None = None,
    stopped: Bound = STOPPED,
    alphabet: tuple[Fault, ...] = ONCE,
    reads: bool = True,
    is_again: bool = False,
    is_alone: bool = False,
) -> Scenario:
    """Return the scenario of two writers at once, of one that is run again once it has ended, or of one alone."""
    foreign = {name: _FOREIGN[name] for name in others}
    second = _writer("B", write, reads=reads, after="A" if is_again else None)
    first = _writer("A", write, reads=reads)
    return Scenario(
        name=name,
        programs=(first,) if is_alone else (first, second),
        services=services,
        rules=rules or WriteRules(),
        bound=bound,
        deep=deep,
        stopped=stopped,
        short=short,
        foreign=foreign,
        beyond={**BEYOND, **foreign, "puts back the blob that it had read at first": _put_back},
        alphabet=alphabet,
        is_symmetric=not is_again and not is_alone,
        has_own_clocks=True,
    )
