"""What the holders of a lock left in their log, held against what a lock promises."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tests.races.lock_section import READER

# What follows the name of a lock in those of the blobs beside it.
_MARK = "!"


class What(StrEnum):
    """An event in the log of the sections."""

    ENTER = "enter"
    LEAVE = "leave"
    GONE = "gone"  # a later section found that this one's processes are no more
    OVERLAP = "overlap"  # this section saw others inside


@dataclass(frozen=True)
class Event:
    """A line of the log. ``rest`` is lock and fence of an entry, and whom an overlap is with; ``at`` is in seconds."""

    at: float
    what: What
    run: str
    rest: tuple[str, ...] = ()

    @classmethod
    def parse(cls, line: str) -> "Event":
        """Read a line that a section wrote."""
        at, what, run, *rest = line.split()
        return cls(float(at), What(what), run, tuple(rest))

    @property
    def is_reader(self) -> bool:
        """Return whether the section reads under the lock, beside other readers."""
        return self.run.startswith(READER)

    @property
    def lock(self) -> str:
        """Return the lock of an entry, under which a reader has a blob of its own."""
        return self.rest[0].partition(_MARK)[0]

    @property
    def fence(self) -> int:
        """Return the fence of an entry."""
        return int(self.rest[1])

    def __str__(self) -> str:
        return f"{self.at:.3f} {self.what} {self.run} {' '.join(self.rest)}".rstrip()


@dataclass(frozen=True)
class Lease:
    """What the service did: it granted a run the lease on a lock, or (not ``granted``) released it. ``at`` as above."""

    at: float
    run: str
    lock: str
    granted: bool = True


@dataclass(frozen=True)
class Ran:
    """A lock run as its caller saw it: exit status, its last words, when it began and ended, and was killed if it was.

    Times are in seconds since the epoch.
    """

    run: str
    status: int
    words: str = ""
    began: float = 0.0
    ended: float = 0.0
    killed: float | None = None

    def __str__(self) -> str:
        how = f"killed at {self.killed:.3f}" if self.killed is not None else f"ended with {self.status}"
        return f"{self.ended:.6f} {self.run}, begun at {self.began:.3f}, {how}"


@dataclass(frozen=True)
class Violation:
    """A promise that was not kept, with the lines that show it."""

    rule: str
    text: str
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class Findings:
    """What a history comes to. ``most`` is how many were ever inside at once; ``waits`` how long a lock that was held
    by a killed run took until it was granted again, in seconds.
    """

    violations: tuple[Violation, ...]
    entries: int
    most: int
    locks: int
    waits: tuple[float, ...]


@dataclass(frozen=True)
class History:
    """All that is known of a race: the sections' log, how the runs ended, and what the service did for them.

    ``left`` are the runs whose sections had processes left when all was over.
    """

    events: Sequence[Event]
    ran: Sequence[Ran]
    leases: Sequence[Lease] = ()
    left: Sequence[str] = ()


def check(history: History, slots: int, free_within: float) -> Findings:
    """Hold a history against the promises.

    Not more than ``slots`` inside at once, unless all of them are readers; fences that rise with each entry, and a
    reader has that of a writer before it; every run that was not killed ran its section once, from beginning to end,
    and ended with 0; who was killed holds up others for ``free_within`` seconds at most.
    """
    events, ran = history.events, history.ran
    entries = [event for event in events if event.what is What.ENTER]
    crowds = _crowds(events)
    kills = [each.killed for each in ran if each.killed is not None]
    waits = [(each.run, wait) for each in ran for wait in _waits(history.leases, each, kills)]
    waits += [(each.run, wait) for each in ran for wait in _waits_for_reader(events, each, kills)]
    found = (
        *_overlaps(events, crowds, slots),
        *_fences(entries),
        *_runs(events, ran),
        *(Violation("left running", f"processes of {run} run for ever") for run in history.left),
        *(
            Violation("held up", f"{wait:.1f} s after it was killed, its lock was free again", (run,))
            for run, wait in waits
            if wait > free_within
        ),
    )
    return Findings(
        violations=found,
        entries=len(entries),
        most=max((len(crowd) for _, crowd in crowds), default=0),
        locks=len({entry.lock for entry in entries}),
        waits=tuple(wait for _, wait in waits),
    )


def _crowds(events: Iterable[Event]) -> list[tuple[Event, frozenset[str]]]:
    """Return each entry with who was inside then."""
    inside: set[str] = set()
    found = []
    for event in events:
        if event.what is What.ENTER:
            inside.add(event.run)
            found.append((event, frozenset(inside)))
        elif event.what in (What.LEAVE, What.GONE):
            inside.discard(event.run)
    return found


def _overlaps(
    events: Iterable[Event], crowds: Iterable[tuple[Event, frozenset[str]]], slots: int
) -> Iterable[Violation]:
    for event in events:
        if event.what is What.OVERLAP:
            yield Violation("overlap", f"{event.run} saw {' and '.join(event.rest)} inside", (str(event),))
    for event, crowd in crowds:
        if len(crowd) > slots and not all(run.startswith(READER) for run in crowd):
            yield Violation("overlap", f"{', '.join(sorted(crowd))} were inside at once", (str(event),))


def _fences(entries: Iterable[Event]) -> Iterable[Violation]:
    writers: dict[str, Event] = {}
    highest: dict[str, Event] = {}
    for entry in entries:
        before = (writers if entry.is_reader else highest).get(entry.lock)
        if before is not None and before.fence >= entry.fence + entry.is_reader:
            text = f"{entry.lock} has fence {entry.fence} after {before.fence}"
            yield Violation("fence", text, (str(before), str(entry)))
        if not entry.is_reader:
            writers[entry.lock] = entry
        highest[entry.lock] = max(highest.get(entry.lock, entry), entry, key=lambda each: each.fence)


def _runs(events: Sequence[Event], ran: Iterable[Ran]) -> Iterable[Violation]:
    entered = Counter(event.run for event in events if event.what is What.ENTER)
    left = Counter(event.run for event in events if event.what is What.LEAVE)
    for each in ran:
        evidence = (str(each), *each.words.splitlines())
        if entered[each.run] > 1:
            yield Violation("ran twice", f"the section of {each.run} ran {entered[each.run]} times", evidence)
        if each.killed is not None:
            continue
        if each.status != 0:
            yield Violation("status", f"{each.run} ended with {each.status}", evidence)
        elif (entered[each.run], left[each.run]) != (1, 1):
            yield Violation("not run", f"{each.run} ended with 0, and its section did not run to its end", evidence)


def _waits(leases: Sequence[Lease], killed: Ran, kills: Sequence[float]) -> Iterable[float]:
    """Yield for each lock that a run held when it was killed how long no other could acquire it.

    That counts from the last kill of any run: a waiter that is killed holds up those behind it.
    """
    if killed.killed is None:
        return
    last = {lease.lock: lease for lease in leases if lease.run == killed.run}
    for held in (lease for lease in last.values() if lease.granted):
        others = (lease for lease in leases if lease.lock == held.lock and lease.run != killed.run and lease.granted)
        after = next((lease.at for lease in others if lease.at > held.at), None)
        if after is not None:
            yield after - max(at for at in kills if at < after)


def _waits_for_reader(events: Sequence[Event], killed: Ran, kills: Sequence[float]) -> Iterable[float]:
    """Yield how long the next writer waited for a reader that was killed inside.

    That counts from the last kill of any run, or from the last section that ended.
    """
    if killed.killed is None or not killed.run.startswith(READER):
        return
    own = {event.what for event in events if event.run == killed.run}
    if What.ENTER not in own or What.LEAVE in own:
        return
    after = [each for each in events if each.what is What.ENTER and not each.is_reader and each.at > killed.killed]
    if after:
        leaves = (event.at for event in events if event.what is What.LEAVE)
        yield after[0].at - max(at for at in (*kills, *leaves) if at < after[0].at)
