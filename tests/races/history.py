"""What really happened to some blobs, held against what the callers were told.

The truth is the proxy's log: every write that the emulator committed, with the ETag it made, the ETag it replaced (the
condition it was sent with) and the op it carries (the newest entry of its lineage). From it comes one chain of versions
for each blob; everything that a caller was told has to agree with that chain.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from azguard.requests.lineage import Lineage
from tests.races.chain import Final, Kind, Violation, Write, chained, check_final, check_order, some


class End(StrEnum):
    """How an update ended for its caller."""

    COMMITTED = "committed"
    UNCHANGED = "unchanged"
    REFUSED = "not applied"  # an error that says so
    UNKNOWN = "unknown"
    KILLED = "killed"
    CRASHED = "crashed"  # ended without a word, though it was not killed


# Exit statuses that promise that nothing was applied.
NOT_APPLIED = frozenset({42, 44, 49, 53, 65, 75})


@dataclass(frozen=True)
class Told:
    """What one caller was told about one update; an op that is run again after a kill is told about again."""

    op: str
    blob: str
    run: str
    end: End
    code: int | None = None
    message: str = ""
    etag: str | None = None
    how: str = ""
    began: float = 0.0
    ended: float = 0.0
    doubts: int = 0
    conflicts: int = 0
    #: What was read, or what the update made of it: a number, or a list of lines.
    value: Any = None

    def __str__(self) -> str:
        said = f"exit {self.code}: {self.message}" if self.message else f"etag {self.etag}"
        return f"{self.ended:.3f} {self.blob} op {self.op} ({self.how}) in {self.run}: {self.end}; {said}"


@dataclass(frozen=True)
class History:
    """One run: the truth, what was told, and what is there in the end, by the blob's name.

    ``issued`` are the ops that were asked for. With ``one_host`` every run of a key could know of the runs before it,
    whatever the lineage forgot, unless one of these had found its write: then nothing of it is kept on its machine.
    """

    writes: Sequence[Write]
    told: Sequence[Told]
    finals: Mapping[str, Final]
    issued: frozenset[str]
    one_host: bool = False
    #: When a run found that its op was committed, by its trace: it may have been killed before it could say so.
    settled: Sequence[tuple[str, float]] = ()


@dataclass(frozen=True)
class Findings:
    """What a check found.

    ``forgotten`` ops were applied again by a second run with the same key after the first had fallen out of the
    lineage, on another host: the documented limit of a key. ``unknown_committed`` of the ``unknown`` were applied in
    truth.
    """

    violations: tuple[Violation, ...]
    commits: int
    fences: int
    foreign: int
    unknown: int
    unknown_committed: int
    forgotten: int


def check(history: History) -> Findings:
    """Hold what was told against what happened."""
    known = {told.op for told in history.told} | history.issued
    fences = [write for write in history.writes if write.op and write.op not in known and write.kind is Kind.METADATA]
    found: list[Violation] = []
    equal: dict[str, set[str]] = defaultdict(set)
    for blob in sorted({write.blob for write in history.writes} | set(history.finals)):
        writes = [write for write in history.writes if write.blob == blob]
        chain = chained(writes, history.finals.get(blob), found)
        _note_equals(chain, equal)
        check_order(chain, found)
        check_final(chain, known, history.finals.get(blob), found)
    _check_strangers(history.writes, known, found)
    forgotten = _check_ops(history, equal, found)
    _check_words(history, found)
    unknown = [told for told in history.told if told.end is End.UNKNOWN]
    made = {(write.op, write.run) for write in history.writes}
    return Findings(
        violations=tuple(found),
        commits=sum(write.op in known for write in history.writes),
        fences=len(fences),
        foreign=sum(write.op is None for write in history.writes),
        unknown=len(unknown),
        unknown_committed=sum((told.op, told.run) in made for told in unknown),
        forgotten=forgotten,
    )


def _check_strangers(writes: Iterable[Write], known: set[str], found: list[Violation]) -> None:
    strange = [write for write in writes if write.op and write.op not in known and write.kind is not Kind.METADATA]
    found += [
        Violation("stray op", f"{each.op} was written, and no job asked for it", (str(each),)) for each in strange
    ]


def _note_equals(chain: Iterable[Write], equal: dict[str, set[str]]) -> None:
    """Note the ETags under which the content that an op made can be read.

    The other writers of a race leave the content as it is. One that leaves everything as it is makes a version that
    cannot be told from the op's own, and need not be: as a guard it is as good.
    """
    op = ""
    for write in chain:
        op = write.op or op
        equal[op].add(write.etag)


def _check_ops(history: History, equal: Mapping[str, set[str]], found: list[Violation]) -> int:
    """Each op at most once; as often as its callers were told. Return how many keys were forgotten."""
    writes: dict[str, list[Write]] = defaultdict(list)
    left = {(write.blob, write.etag): write.stamped for write in history.writes}
    for write in history.writes:
        if write.op:
            writes[write.op].append(write)
    forgotten = 0
    for told in history.told:
        made = writes[told.op]
        _check_told(told, made, equal.get(told.op, set()), found)
    for op in {told.op for told in history.told}:
        made = writes[op]
        is_kept = history.one_host and not _was_settled(op, made, history.settled)
        excused = len(made) > 1 and not is_kept and _was_forgotten(op, made, left)
        forgotten += excused
        if len(made) > 1 and not excused:
            evidence = (*some(made), *(str(told) for told in history.told if told.op == op))
            found.append(Violation("applied twice", f"op {op} is in the chain {len(made)} times", evidence))
    return forgotten


def _was_settled(op: str, made: Sequence[Write], settled: Iterable[tuple[str, float]]) -> bool:
    """Return whether a run had found its write before any other run of the op sent one."""
    later = sorted(write.sent for write in made)[1:]
    return bool(later) and any(each == op and at < later[0] for each, at in settled)


def _was_forgotten(op: str, made: Sequence[Write], left: Mapping[tuple[str, str], Lineage]) -> bool:
    """Return whether each further write was another run's, over a version that had forgotten the op.

    ``left`` is the lineage of each version, its keys included.
    """
    runs = {write.run for write in made}
    first = min(made, key=lambda write: write.answered)
    later = [write for write in made if write is not first]
    seen = any(
        op in Lineage(write.stamped.entries[1:]) or op in left.get((write.blob, write.replaced or ""), Lineage())
        for write in later
    )
    return len(runs) == len(made) and not seen


def _check_told(told: Told, made: Sequence[Write], equal: set[str], found: list[Violation]) -> None:
    evidence = (str(told), *some(made))
    own = [write for write in made if write.run == told.run]
    if told.end is End.COMMITTED and not made:
        found.append(Violation("false commit", f"op {told.op} is said to be committed, and is not", evidence))
    if told.end is End.COMMITTED and told.etag is not None and told.etag not in equal:
        found.append(Violation("false ETag", f"op {told.op} is said to have made {told.etag}", evidence))
    if told.end in (End.REFUSED, End.UNCHANGED) and own:
        found.append(Violation("false refusal", f"op {told.op} is said to be not applied, and is", evidence))
    if told.end is End.REFUSED and told.code not in NOT_APPLIED:
        found.append(Violation("strange answer", f"op {told.op} ended with exit {told.code}", evidence))
    if told.end is End.UNCHANGED:
        found.append(Violation("strange answer", f"op {told.op} is said to change nothing", evidence))


def _check_words(history: History, found: list[Violation]) -> None:
    """No caller is left without a word, unless killed."""
    told_of = {told.op for told in history.told}
    silent = sorted(history.issued - told_of)
    found += [Violation("no word", f"nothing was ever said about op {op}") for op in silent]
    for told in history.told:
        wordless = told.end in (End.REFUSED, End.UNKNOWN) and not told.message
        if told.end is End.CRASHED or wordless:
            found.append(Violation("no word", f"op {told.op} ended without a message", (str(told),)))
