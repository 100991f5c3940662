"""What really happened to some blobs, held against what the callers were told.

The truth is the proxy's log: every write that the emulator committed, with the ETag it made, the ETag it replaced (the
condition it was sent with) and the op it carries (the newest entry of its lineage). From it comes one chain of versions
for each blob; everything that a caller was told has to agree with that chain.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from azguard.lineage import ABSENT, Lineage


class Kind(StrEnum):
    """What a write changed."""

    CONTENT = "content"
    METADATA = "metadata"
    PROPERTIES = "properties"


class End(StrEnum):
    """How an update ended for whoever asked for it."""

    COMMITTED = "committed"
    UNCHANGED = "unchanged"
    REFUSED = "not applied"  # an error that says so
    UNKNOWN = "unknown"
    KILLED = "killed"
    CRASHED = "crashed"  # ended without a word, though nobody killed it


# Exit statuses that promise that nothing was applied.
NOT_APPLIED = frozenset({42, 44, 49, 53, 65, 75})


@dataclass(frozen=True)
class Write:
    """One committed write. ETags are without quotes.

    ``replaced`` is ``-`` where there was nothing, and None for a write without a condition. ``op`` is None for a
    writer that is not azguard, and ``stamped`` is the lineage it left behind, whoever it was. ``run`` names the
    process; ``sent`` and ``answered`` are seconds since the epoch, and the write happened between the two.
    """

    blob: str
    etag: str
    replaced: str | None
    op: str | None
    run: str
    kind: Kind = Kind.CONTENT
    stamped: Lineage = field(default_factory=Lineage)
    sent: float = 0.0
    answered: float = 0.0
    fault: str = "none"

    def __str__(self) -> str:
        over = "blindly" if self.replaced is None else f"over {self.replaced}"
        whose = f"op {self.op}" if self.op else "not azguard"
        return f"{self.answered:.3f} {self.blob} {self.etag} {over}: {self.kind} by {self.run}, {whose}, {self.fault}"


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

    def __str__(self) -> str:
        said = f"exit {self.code}: {self.message}" if self.message else f"etag {self.etag}"
        return f"{self.ended:.3f} {self.blob} op {self.op} ({self.how}) in {self.run}: {self.end}; {said}"


@dataclass(frozen=True)
class Final:
    """What is there in the end. ``count``, ``hits`` and ``lines`` are None where nothing counts on them."""

    etag: str
    count: int | None = None
    hits: int | None = None
    lines: tuple[str, ...] | None = None


@dataclass(frozen=True)
class History:
    """One run: the truth, what was told, and what is there in the end, by the blob's name.

    ``issued`` are the ops that were asked for.
    """

    writes: Sequence[Write]
    told: Sequence[Told]
    finals: Mapping[str, Final]
    issued: frozenset[str]


@dataclass(frozen=True)
class Violation:
    """A rule that was broken, with the part of the history that shows it."""

    rule: str
    text: str
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class Findings:
    """What a check found.

    ``forgotten`` ops were applied again by a second run with the same key after the first had fallen out of the
    lineage: the documented limit of a key. ``unknown_committed`` of the ``unknown`` were applied in truth.
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
    for blob in sorted({write.blob for write in history.writes} | set(history.finals)):
        writes = [write for write in history.writes if write.blob == blob]
        chain = _chain(writes, history.finals.get(blob), found)
        _check_order(chain, found)
        _check_final(chain, known, history.finals.get(blob), found)
    _check_strangers(history.writes, known, found)
    forgotten = _check_ops(history, found)
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


def _chain(writes: Sequence[Write], final: Final | None, found: list[Violation]) -> list[Write]:
    """Return the writes of one blob in the order of their versions; whatever keeps them from being one is found."""
    _check_single(Counter(write.etag for write in writes), "etag twice", "etag", writes, found)
    replaced = Counter(write.replaced for write in writes if write.replaced is not None)
    _check_single(replaced, "fork", "replaced", writes, found)
    made = {write.etag for write in writes}
    for write in writes:
        if write.replaced not in (None, ABSENT) and write.replaced not in made:
            found.append(Violation("gap", f"{write.replaced} was replaced, and nobody made it", (str(write),)))
    chain = _followed(writes)
    if len(chain) < len(writes):
        missing = [write for write in writes if write not in chain]
        found.append(Violation("broken chain", f"{len(missing)} writes are beside the chain", _some(missing)))
    if chain and final is not None and chain[-1].etag != final.etag:
        text = f"the last version is {final.etag}, not {chain[-1].etag}"
        found.append(Violation("another end", text, _some(chain[-3:])))
    return chain


def _followed(writes: Sequence[Write]) -> list[Write]:
    """Walk from each version to the one that replaced it; a write without a condition goes on from an end."""
    by_parent = {write.replaced: write for write in reversed(writes) if write.replaced is not None}
    blind = sorted((write for write in writes if write.replaced is None), key=lambda write: write.answered)
    chain: list[Write] = []
    seen: set[str] = set()
    following = by_parent.get(ABSENT) or (blind.pop(0) if blind else None)
    while following is not None and following.etag not in seen:
        seen.add(following.etag)
        chain.append(following)
        following = by_parent.get(following.etag) or (blind.pop(0) if blind else None)
    return chain


def _check_single(
    counts: Mapping[str, int], rule: str, name: str, writes: Iterable[Write], found: list[Violation]
) -> None:
    for etag, times in counts.items():
        if times > 1:
            part = [write for write in writes if getattr(write, name) == etag]
            found.append(Violation(rule, f"{etag}: {times} writes", _some(part)))


def _check_order(chain: Sequence[Write], found: list[Violation]) -> None:
    """A write that was answered before another was sent comes first: real time and the chain agree."""
    latest: Write | None = None
    for write in chain:
        if latest is not None and write.answered < latest.sent:
            text = f"{write.etag} comes after {latest.etag}, and was answered before that was sent"
            found.append(Violation("order", text, _some((latest, write))))
        if latest is None or write.sent > latest.sent:
            latest = write


def _check_final(chain: Sequence[Write], known: set[str], final: Final | None, found: list[Violation]) -> None:
    """Every update adds one, or its line, to what is there in the end."""
    if final is None:
        return
    ours = [write for write in chain if write.op in known]
    content = [write for write in ours if write.kind is Kind.CONTENT]
    for name, value, expected in (
        ("count", final.count, len(content)),
        ("hits", final.hits, sum(write.kind is Kind.METADATA for write in ours)),
        ("lines", final.lines, tuple(write.op for write in content)),
    ):
        if value is not None and value != expected:
            shown = (value, expected) if name != "lines" else (len(value or ()), len(content))  # type: ignore[arg-type]
            text = f"{name} is {shown[0]} in the end, and the chain has {shown[1]}"
            found.append(Violation("another value", text, _some(chain[-3:])))


def _check_strangers(writes: Iterable[Write], known: set[str], found: list[Violation]) -> None:
    strange = [write for write in writes if write.op and write.op not in known and write.kind is not Kind.METADATA]
    for write in strange:
        found.append(Violation("nobody's op", f"{write.op} was written, and nobody asked for it", (str(write),)))


def _check_ops(history: History, found: list[Violation]) -> int:
    """Each op at most once; as often as its callers were told. Return how many keys were forgotten."""
    writes: dict[str, list[Write]] = defaultdict(list)
    for write in history.writes:
        if write.op:
            writes[write.op].append(write)
    forgotten = 0
    for told in history.told:
        made = writes[told.op]
        own = [write for write in made if write.run == told.run]
        _check_told(told, made, own, found)
    for op in {told.op for told in history.told}:
        made = writes[op]
        excused = len(made) > 1 and _was_forgotten(op, made)
        forgotten += excused
        if len(made) > 1 and not excused:
            evidence = (*_some(made), *(str(told) for told in history.told if told.op == op))
            found.append(Violation("applied twice", f"op {op} is in the chain {len(made)} times", evidence))
    return forgotten


def _was_forgotten(op: str, made: Sequence[Write]) -> bool:
    """Return whether each further write was another run's, over a version that had forgotten the op."""
    runs = {write.run for write in made}
    first = min(made, key=lambda write: write.answered)
    later = (write for write in made if write is not first)
    return len(runs) == len(made) and all(op not in Lineage(write.stamped.entries[1:]) for write in later)


def _check_told(told: Told, made: Sequence[Write], own: Sequence[Write], found: list[Violation]) -> None:
    evidence = (str(told), *_some(made))
    if told.end is End.COMMITTED and not made:
        found.append(Violation("false commit", f"op {told.op} is said to be committed, and is not", evidence))
    if told.end is End.COMMITTED and told.etag is not None and told.etag not in {write.etag for write in made}:
        found.append(Violation("false ETag", f"op {told.op} is said to have made {told.etag}", evidence))
    if told.end in (End.REFUSED, End.UNCHANGED) and own:
        found.append(Violation("false refusal", f"op {told.op} is said to be not applied, and is", evidence))
    if told.end is End.REFUSED and told.code not in NOT_APPLIED:
        found.append(Violation("strange answer", f"op {told.op} ended with exit {told.code}", evidence))
    if told.end is End.UNCHANGED:
        found.append(Violation("strange answer", f"op {told.op} is said to change nothing", evidence))


def _check_words(history: History, found: list[Violation]) -> None:
    """Nobody is left without a word, unless killed."""
    told_of = {told.op for told in history.told}
    for op in sorted(history.issued - told_of):
        found.append(Violation("no word", f"nothing was ever said about op {op}"))
    for told in history.told:
        wordless = told.end in (End.REFUSED, End.UNKNOWN) and not told.message
        if told.end is End.CRASHED or wordless:
            found.append(Violation("no word", f"op {told.op} ended without a message", (str(told),)))


def _some(writes: Sequence[Write], most: int = 8) -> tuple[str, ...]:
    return tuple(str(write) for write in writes[:most])
