"""The versions of a blob as one chain, and what was made of it in the end."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from azguard.requests.lineage import ABSENT, Lineage


class Kind(StrEnum):
    """What a write changed."""

    CONTENT = "content"
    METADATA = "metadata"
    PROPERTIES = "properties"


@dataclass(frozen=True)
class Write:
    """One committed write. ETags are without quotes.

    ``replaced`` is ``-`` where there was nothing, and None for a write without a condition. ``op`` is None for a
    writer that is not azguard, and ``stamped`` is the lineage that any writer left behind. ``run`` names the
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
class Final:
    """What is there in the end. ``count``, ``hits`` and ``lines`` are None where nothing counts on them."""

    etag: str
    count: int | None = None
    hits: int | None = None
    lines: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Violation:
    """A rule that was broken, with the part of the history that shows it."""

    rule: str
    text: str
    evidence: tuple[str, ...] = ()


def chained(writes: Sequence[Write], final: Final | None, found: list[Violation]) -> list[Write]:
    """Return the writes of one blob in the order of their versions; whatever keeps them from being one is found."""
    _check_single(Counter(write.etag for write in writes), "etag twice", "etag", writes, found)
    replaced = Counter(write.replaced for write in writes if write.replaced is not None)
    _check_single(replaced, "fork", "replaced", writes, found)
    made = {write.etag for write in writes}
    unknown = [write for write in writes if write.replaced not in (None, ABSENT) and write.replaced not in made]
    found += [Violation("gap", f"{each.replaced} was replaced, and no write made it", (str(each),)) for each in unknown]
    chain = _followed(writes)
    if len(chain) < len(writes):
        missing = [write for write in writes if write not in chain]
        found.append(Violation("broken chain", f"{len(missing)} writes are beside the chain", some(missing)))
    if chain and final is not None and chain[-1].etag != final.etag:
        text = f"the last version is {final.etag}, not {chain[-1].etag}"
        found.append(Violation("another end", text, some(chain[-3:])))
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
            found.append(Violation(rule, f"{etag}: {times} writes", some(part)))


def check_order(chain: Sequence[Write], found: list[Violation]) -> None:
    """A write that was answered before another was sent comes first: real time and the chain agree."""
    latest: Write | None = None
    for write in chain:
        if latest is not None and write.answered < latest.sent:
            text = f"{write.etag} comes after {latest.etag}, and was answered before that was sent"
            found.append(Violation("order", text, some((latest, write))))
        if latest is None or write.sent > latest.sent:
            latest = write


def check_final(chain: Sequence[Write], known: set[str], final: Final | None, found: list[Violation]) -> None:
    """Every update adds one, or its line, to what is there in the end."""
    if final is None:
        return
    ours = [write for write in chain if write.op in known]
    content = [write for write in ours if write.kind is Kind.CONTENT]
    hits = sum(write.kind is Kind.METADATA for write in ours)
    for name, value, expected in (("count", final.count, len(content)), ("hits", final.hits, hits)):
        if value is not None and value != expected:
            text = f"{name} is {value} in the end, and the chain has {expected}"
            found.append(Violation("another value", text, some(chain[-3:])))
    if final.lines is not None:
        _check_lines(chain, content, final.lines, found)


def _check_lines(
    chain: Sequence[Write], content: Sequence[Write], lines: Sequence[str], found: list[Violation]
) -> None:
    """The lines in the end are the ops of the chain, in its order."""
    expected = [write.op for write in content]
    if list(lines) == expected:
        return
    different = (index for index, (one, other) in enumerate(zip(lines, expected, strict=False)) if one != other)
    first = next(different, min(len(lines), len(expected)))
    position = chain.index(content[first]) if first < len(content) else len(chain) - 1
    text = f"{len(lines)} lines in the end, and the chain has {len(expected)}; line {first} is another"
    found.append(Violation("another value", text, some(chain[max(0, position - 2) : position + 6])))


def some(writes: Sequence[Write], most: int = 8) -> tuple[str, ...]:
    """Return the first of these writes as evidence."""
    return tuple(str(write) for write in writes[:most])
