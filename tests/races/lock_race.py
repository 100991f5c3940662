"""One race for a lock: an emulator, a proxy before it, contenders, and the verdict on what their sections saw."""

import os
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from azguard.accounts import account
from azguard.accounts.endpoints import EMULATOR_KEY
from azguard.emulators.azurite_process import Azurite
from tests.faults.rules import operation
from tests.races import lock_history, lock_order, lock_section
from tests.races.lock_contenders import CONTAINER, Contender, Ground, Killer, Sections
from tests.races.lock_history import Event, Findings, History, Lease, Ran, Violation, What
from tests.races.log import blob_of, run_of
from tests.races.weather import Weather
from tests.support import forked
from tests.support.faultproxy import proxy
from tests.support.faultproxy.proxy import Chosen, ProxiedAnswer, Request
from tests.traces import records, rules

# Until a lock that has come free is asked for again, and the command is started on a busy machine.
_NOTICE_SECONDS = 20.0
# A request that is lost is waited for so long, and an acquire that arrives late makes a lease without a holder.
_FAULT_SECONDS = 10.0
_WATCH_SECONDS = 0.5
# The grace of a lock run that was killed, and all the time that its end needs on a busy machine.
_ENDING_SECONDS = 60.0


@dataclass(frozen=True)
class Settings:
    """What a race is like: so many contenders, each of whom runs so many sections, and more until one was killed.

    ``share`` is that of the requests that change something and meet a fault; of the reads, half as many do.
    ``kill_every`` is in seconds, 0 is never. ``term`` is that of the leases, in seconds. The first ``plain`` contenders
    do not know of the queue. The last ``readers`` contenders read under the lock, beside each other.
    """

    seed: str
    contenders: int = 8
    sections: int = 50
    slots: int = 1
    share: float = 0.0
    kill_every: float = 0.0
    term: int = 15
    kind: Sections = field(default_factory=Sections)
    plain: int = 0
    readers: int = 0


@dataclass
class Tally:
    """What a race came to: the findings, and how much happened. ``story`` is all of it, in order."""

    findings: Findings
    ran: Sequence[Ran]
    counts: Counter[str]
    kills: Counter[str]
    faults: Counter[str]
    seconds: float
    story: list[str] = field(default_factory=list)


def run(settings: Settings, most: float, emulator: Azurite, watch: Callable[[str], None] = lambda text: None) -> Tally:
    """Race until every section has run, ``most`` seconds at most, and check what happened."""
    with tempfile.TemporaryDirectory(prefix="azguard-lock-race-") as name, _no_lock_left(emulator):
        folder = Path(name)
        (folder / "inside").mkdir()
        weather = Weather(f"{settings.seed} weather", settings.share)
        killer = Killer(f"{settings.seed} killer", settings.kill_every, folder / "log")

        def decide(request: Request) -> Chosen:
            killer.on_arrival(request)
            return weather.decide(request)

        def record(answer: ProxiedAnswer) -> None:
            weather.record(answer)
            killer.on_answer(answer)

        with proxy.running(emulator.ports["blob"], decide, record=record) as between:
            ground = _ground(settings, between.port, folder)
            contenders = _contenders(settings, ground)
            began = time.monotonic()
            with _at_work(contenders, killer):
                _wait(contenders, began + most, watch)
            seconds = time.monotonic() - began
        tally = _tally(settings, contenders, folder, weather, killer, seconds)
        return _check_steps(tally, records.read(ground.trace), weather)


@contextmanager
def _no_lock_left(emulator: Azurite) -> Iterator[None]:
    """Delete the container of the lock after a ``with`` block; the contenders have created it."""
    from azure.core.exceptions import ResourceNotFoundError
    from azure.storage.blob import ContainerClient

    try:
        yield
    finally:
        endpoint = account.emulator(emulator.ports).endpoint("blob")
        with ContainerClient(endpoint, CONTAINER, credential=EMULATOR_KEY) as client, suppress(ResourceNotFoundError):
            client.delete_container()


def _ground(settings: Settings, port: int, folder: Path) -> Ground:
    forked.server()  # starts what forks, once, before the threads of the contenders ask for it
    return Ground(port, folder, settings.slots, _words(settings))


def _words(settings: Settings) -> list[str]:
    slots = ["--slots", str(settings.slots)] if settings.slots > 1 else []
    return [*slots, "--wait", "1h", "--lease-duration", f"{settings.term}s", "--timeout", "30s", "-v", "-o", "json"]


def _contenders(settings: Settings, ground: Ground) -> list[Contender]:
    without_queue = replace(ground, words=[*ground.words, "--no-fair"])
    reading = replace(ground, words=[*ground.words, "--shared"], name=lock_section.READER)
    others = settings.contenders - settings.plain - settings.readers
    grounds = [without_queue] * settings.plain + [ground] * others + [reading] * settings.readers
    contenders: list[Contender] = []

    def is_enough() -> bool:
        # A race of a few seconds may be through before the first kill strikes.
        return not settings.kill_every or any(ran.killed is not None for each in contenders for ran in list(each.ran))

    for number, each in enumerate(grounds):
        contenders.append(Contender(number, each, settings.seed, settings.sections, settings.kind, is_enough))
    return contenders


@contextmanager
def _at_work(contenders: Sequence[Contender], killer: Killer) -> Iterator[None]:
    """Have all at work for the length of a ``with`` block; those that are late are ended."""
    try:
        for contender in contenders:
            contender.start()
        killer.start(contenders)
        yield
    finally:
        killer.end()
        for contender in contenders:
            contender.close()
        for contender in contenders:
            contender.join(_FAULT_SECONDS)


def _wait(contenders: Sequence[Contender], until: float, watch: Callable[[str], None]) -> None:
    for contender in contenders:
        while not contender.join(_WATCH_SECONDS):
            done = [ran for each in contenders for ran in each.ran]
            watch(f"{len(done)} runs, {sum(ran.killed is not None for ran in done)} killed")
            assert time.monotonic() < until, f"{contender.run} is not through"


def _tally(
    settings: Settings, contenders: Sequence[Contender], folder: Path, weather: Weather, killer: Killer, seconds: float
) -> Tally:
    left = _left_running(folder / "inside")
    lines = (folder / "log").read_text(encoding="utf-8").splitlines()
    events = [Event.parse(line) for line in lines]
    ran = [each for contender in contenders for each in contender.ran]
    free_within = settings.term + _NOTICE_SECONDS + (settings.term + _FAULT_SECONDS if settings.share else 0)
    leases = [lease for answer in weather.log if (lease := _lease(answer)) is not None]
    findings = lock_history.check(History(events, ran, leases, left), settings.slots, free_within)
    overtaking = tuple(lock_order.find_overtaking(weather.log, ran))
    findings = replace(findings, violations=findings.violations + overtaking)
    killed = [each for each in ran if each.killed is not None]
    entered = {event.run for event in events if event.what is What.ENTER}
    counts = Counter(
        runs=len(ran),
        entries=findings.entries,
        killed=len(killed),
        requests=len(weather.log),
    )
    counts["killed with a section begun"] = sum(each.run in entered for each in killed)
    story = sorted([*lines, *map(_line, weather.log), *map(str, ran)])
    return Tally(findings, ran, counts, killer.counts, weather.faults, seconds, story)


def _check_steps(tally: Tally, steps: list[records.Step], weather: Weather) -> Tally:
    """Return a tally with what the steps of all contenders break of the rules."""
    broken = rules.Checker(steps, records.to_events(weather.log)).check()
    found = tuple(Violation(each.rule, rules.RULES[each.rule], each.neighbours) for each in broken)
    tally.counts["steps"] = len(steps)
    return replace(tally, findings=replace(tally.findings, violations=tally.findings.violations + found))


def _lease(answer: ProxiedAnswer) -> Lease | None:
    """Return what an answer says about a lease, if it says that something was done."""
    action = answer.request.headers.get("x-ms-lease-action")
    if not answer.committed or action not in ("acquire", "release"):
        return None
    lock = str(blob_of(answer.request))
    return Lease(answer.answered or 0.0, run_of(answer.request), lock, granted=action == "acquire")


def _left_running(inside: Path) -> list[str]:
    """Return whose processes are left when all is over, and end them; those of the last to be killed have a moment."""
    until = time.monotonic() + _ENDING_SECONDS
    while left := [link for link in inside.iterdir() if lock_section.alive(str(link))]:
        if time.monotonic() > until:
            break
        time.sleep(_WATCH_SECONDS)  # the runs tell by no event that they have ended
    for link in left:
        for pid in lock_section.alive(str(link)):
            os.kill(pid, signal.SIGKILL)
    return [link.name for link in left]


def _line(answer: ProxiedAnswer) -> str:
    """Return a request as a line that sorts among those of the sections."""
    request, code = answer.request, answer.headers.get("x-ms-error-code", "")
    what = f"{operation(request)} {answer.status or 'no answer'} {code}".rstrip()
    return f"{answer.answered or answer.sent or 0.0:.6f} {run_of(request)}: {what}, {answer.fault.value}"
