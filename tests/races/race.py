"""One race: a proxy with faults before an emulator, processes at work and what troubles them, and the verdict."""

import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from azguard.accounts import account
from azguard.accounts.endpoints import EMULATOR_KEY
from azguard.emulators.azurite_process import Azurite
from azguard.requests.lineage import bare
from tests.races import calls, history, log
from tests.races.chain import Final, Violation
from tests.races.foreign import KEEPS, WIPES, Foreigner, blob
from tests.races.history import End, Findings, History
from tests.races.job import CONTAINER, COUNT, LINES, Jobs
from tests.races.log import FOREIGN
from tests.races.slots import Board, Command, Place, Slot, Worker, queues_in
from tests.races.trouble import Trouble
from tests.races.weather import Weather
from tests.support import forked
from tests.support.faultproxy import proxy
from tests.traces import records, rules

# The emulator's garbage collector freezes it, quadratically in the writes it has seen.
MOST_WRITES = 1800
# How long one request may stay unanswered, and one update take, in seconds.
ANSWER_SECONDS, UPDATE_SECONDS = 0.5, 20.0
_SETTLE_SECONDS = 6.0
_TICK_SECONDS = 0.1
# How an update ends that has found its write.
_FOUND = ("committed", "applied_before")
# Of a race that may end before its time.
_ENOUGH_KILLS, _ENOUGH_FOREIGN = 4, 5
FOREIGN_CHOICES = {"none": (), "half": (KEEPS, WIPES), "keep": (KEEPS,), "wipe": (WIPES,)}


@dataclass(frozen=True)
class Settings:
    """What a race is like. ``share`` is that of the writes that meet a fault; of the reads, half as many do.

    ``foreign`` is one of FOREIGN_CHOICES; ``half`` is both kinds, in half of the time. Every ``commands``-th process
    is a command line of one update; ``hurried`` is the share of the updates that have
    little time. ``kill_every`` and ``stop_every`` are in seconds, 0 is never. After ``enough`` writes a race may end
    before its time, once it has had its kills and its foreign writes, too; 0 is never.
    """

    seed: str
    processes: int = 8
    share: float = 0.25
    kill_every: float = 3.0
    stop_every: float = 5.0
    foreign: str = "none"
    hosts: int = 1
    commands: int = 4
    hurried: float = 0.2
    enough: int = 0


@dataclass
class Tally:
    """What a race came to: the findings, and how much happened."""

    findings: Findings | None = None
    counts: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    violations: list[Violation] = field(default_factory=list)
    story: list[str] = field(default_factory=list)


def run(
    settings: Settings, seconds: float, emulator: Azurite, watch: Callable[[str], None] = lambda text: None
) -> Tally:
    """Race for so long, or until the emulator has seen enough writes, and check what happened.

    ``watch`` is told now and then how far it is.
    """
    forked.server()  # starts what forks, once, before the threads of the slots ask for it
    trouble = Trouble(f"{settings.seed} trouble", settings.kill_every, settings.stop_every)
    wiped = WIPES in FOREIGN_CHOICES[settings.foreign]
    weather = Weather(f"{settings.seed} weather", settings.share, trouble.on_arrival, trouble.on_answer, wiped=wiped)
    board = Board()
    port = emulator.ports["blob"]
    with tempfile.TemporaryDirectory(prefix="azguard-race-") as folder, _container(port):
        with proxy.running(port, weather.decide, record=weather.record) as between:
            _prepare(between.port)
            began = time.monotonic()
            slots = _slots(settings, between.port, Path(folder), board)
            foreigner = _foreigner(settings, between.port, lambda: time.monotonic() - began)
            with _at_work(slots, foreigner, trouble, board):
                while time.monotonic() - began < seconds and weather.writes_sent < MOST_WRITES:
                    if _is_enough(settings, weather, trouble, foreigner):
                        break
                    time.sleep(_TICK_SECONDS)  # the processes tell by no event that they have ended
                    watch(_progress(board, weather, trouble))
            lasted = time.monotonic() - began
            # Zombies: whatever is still held arrives now, when all callers have long been told.
            is_settled = weather.settled(_SETTLE_SECONDS)
        steps = records.read(slots[0].place.trace)
        # The proxy has ended: nothing can arrive any more.
        finals = _finals(port, board, wiped=bool(foreigner and foreigner.counts[WIPES]))
    written = log.writes(weather.log)
    # Without its run, no write can be told from one that was killed: what excuses and what accuses would both be dead.
    assert [each for each in written if each.op and not each.run] == []
    settled = [(str(each["op"]), each.at) for each in steps if each.step == "settled" and each["outcome"] in _FOUND]
    findings = history.check(
        History(written, board.told, finals, frozenset(board.issued), settings.hosts == 1, settled)
    )
    tally = Tally(findings, faults=weather.faults, ends=_ends(board), violations=list(findings.violations))
    broken = rules.Checker(steps, records.to_events(weather.log)).check()
    tally.violations += [Violation(each.rule, rules.RULES[each.rule], each.neighbours) for each in broken]
    if not findings.forgotten:
        tally.violations += calls.check(board.told, board.reads, finals, calls.list_wipes(written))
    tally.story = sorted([*log.story(weather.log), *map(str, board.told), *map(str, steps)])
    tally.counts.update(
        **trouble.summary(),
        seconds=round(lasted),
        emulators=1,
        steps=len(steps),
        reads=len(board.reads),
        ops=len(board.issued),
        requests=len(weather.log),
        doubts=sum(told.doubts for told in board.told),
        conflicts=sum(told.conflicts for told in board.told),
        unsettled=0 if is_settled else len(weather.held),
        unanswered=sum(a.sent is not None and a.status is None and a.request.writes for a in weather.log),
    )
    return tally


def _is_enough(settings: Settings, weather: Weather, trouble: Trouble, foreigner: Foreigner | None) -> bool:
    killed = not settings.kill_every or trouble.summary()["kills"] >= _ENOUGH_KILLS
    met = foreigner is None or sum(foreigner.counts.values()) >= _ENOUGH_FOREIGN
    return 0 < settings.enough <= weather.writes_sent and killed and met


@contextmanager
def _at_work(slots: Sequence[Slot], foreigner: Foreigner | None, trouble: Trouble, board: Board) -> Iterator[None]:
    """Have all at work for the length of a ``with`` block, and finish what is begun."""
    try:
        for slot in slots:
            slot.start()
        trouble.start(slots)
        if foreigner is not None:
            foreigner.start()
        yield
    finally:
        trouble.end()
        board.closing.set()
        stuck = [slot for slot in slots if not slot.join(3 * UPDATE_SECONDS)]
        for slot in stuck:
            slot.close()
        if foreigner is not None:
            foreigner.end()
        assert not stuck, f"{[slot.run for slot in stuck]} did not end"


def _slots(settings: Settings, port: int, folder: Path, board: Board) -> list[Slot]:
    caches = queues_in(folder, settings.hosts)
    made: list[Slot] = []
    for number in range(settings.processes):
        kind = Command if settings.commands and number % settings.commands == settings.commands - 1 else Worker
        seed = f"{settings.seed} slot {number}"
        jobs = Jobs(seed, UPDATE_SECONDS, ANSWER_SECONDS, settings.hurried, reads=kind is Worker)
        made.append(kind(Place(number, port, caches[number % settings.hosts]), board, jobs))
    return made


def _foreigner(settings: Settings, port: int, elapsed: Callable[[], float]) -> Foreigner | None:
    kinds = FOREIGN_CHOICES[settings.foreign]
    if not kinds:
        return None
    # In half of the time: five seconds with, five seconds without.
    active = (lambda: elapsed() % 10 > 5) if settings.foreign == "half" else (lambda: True)
    return Foreigner(f"{settings.seed} foreigner", port, kinds, active)


@contextmanager
def _container(port: int) -> Iterator[None]:
    """Have the container of a race for the length of a ``with`` block."""
    from azure.storage.blob import ContainerClient

    endpoint = account.emulator({"blob": port}).endpoint("blob")
    with ContainerClient(endpoint, CONTAINER, credential=EMULATOR_KEY, retry_total=0) as container:
        container.create_container()
        try:
            yield
        finally:
            container.delete_container()


def _prepare(port: int) -> None:
    start = f"{FOREIGN}.start"
    blob(port, COUNT, start).upload_blob(b'{"count": 0}', metadata={"hits": "0"})
    blob(port, LINES, start).upload_blob(b"")


def _finals(port: int, board: Board, *, wiped: bool) -> dict[str, Final]:
    """Read what is there in the end, past the proxy."""
    from azure.core.exceptions import ResourceNotFoundError

    finals = {}
    for name in sorted({told.blob for told in board.told} | {COUNT, LINES}):
        try:
            found = blob(port, name, FOREIGN).download_blob()
        except ResourceNotFoundError:
            continue  # None managed to create it.
        content, metadata = found.readall(), found.properties.metadata
        finals[name] = Final(
            etag=bare(found.properties.etag),
            count=None if name == LINES else json.loads(content)["count"],
            hits=int(metadata["hits"]) if name == COUNT and not wiped else None,
            lines=tuple(content.decode().splitlines()) if name == LINES else None,
        )
    return finals


def _ends(board: Board) -> Counter[str]:
    ends: Counter[str] = Counter()
    for told in board.told:
        ends[str(told.end) if told.end is not End.REFUSED else f"not applied, exit {told.code}"] += 1
    return ends


def _progress(board: Board, weather: Weather, trouble: Trouble) -> str:
    ends = Counter(told.end for told in list(board.told))
    shown = ", ".join(f"{count} {end}" for end, count in sorted(ends.items()))
    killed = ", ".join(f"{count} {name}" for name, count in trouble.summary().items())
    return f"{shown}; {killed}; {len(weather.log)} requests, {weather.writes_sent} writes"
