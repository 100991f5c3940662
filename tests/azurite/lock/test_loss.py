"""How a lock is lost while a command runs, on the service's own clock.

These take as long as the shortest lease, so all of them happen at the same time, and each test looks at one.
"""

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

import pytest
from azure.storage.blob import BlobLeaseClient

from tests.faults.rules import operation
from tests.support.cli_world import CliWorld, Ran
from tests.support.emulator_world import until
from tests.support.faultproxy import proxy
from tests.support.faultproxy.proxy import Chosen, Fault, Request
from tests.support.lock_world import Contender, Locks, Working, is_gone, locks, now
from tests.support.pages import Page
from tests.support.places import REPOSITORY
from tests.support.terminal_world import CTRL_Z, Seat, Seen, is_stopped, seated

LOCKS = Page(REPOSITORY / "docs" / "locks.md")
TERM = "15s"


@dataclass
class Scene:
    """A command under a lock that something happens to."""

    world: Locks
    lock: str
    working: Working
    heartbeat: Path
    contender: Contender
    first_beat: str = ""

    def lease(self) -> BlobLeaseClient:
        """Return the lease as the holder's, by its id."""
        environ = Path(f"/proc/{self.working.pid}/environ").read_bytes().split(b"\0")
        (lease_id,) = (each.partition(b"=")[2].decode() for each in environ if each.startswith(b"AZGUARD_LEASE_ID="))
        return BlobLeaseClient(self.world.blob(self.lock), lease_id)

    def break_now(self) -> None:
        """Break the lease as an operator does who cannot wait."""
        self.lease().break_lease(0)

    def all_gone(self) -> bool:
        """Return whether the processes of this scene have all ended."""
        return not any(self.folder in " ".join(each.words) for each in self.world.processes())

    def losses(self) -> str:
        """Return how often the lock was lost, as a scraper reads it."""
        lines = self.heartbeat.with_suffix(".prom").read_text().splitlines()
        (found,) = (line for line in lines if line.startswith("azguard_lock_losses_total"))
        return found.rpartition(" ")[2]

    @property
    def folder(self) -> str:
        """Return what marks the command lines of this scene."""
        return str(self.working.folder)


def stop(scene: Scene) -> None:
    scene.working.running.send(signal.SIGSTOP)


def kill(scene: Scene) -> None:
    scene.working.running.send(signal.SIGKILL)


def break_in_time(scene: Scene) -> None:
    scene.lease().break_lease()


def release(scene: Scene) -> None:
    scene.lease().release()


def delete(scene: Scene) -> None:
    scene.world.blob(scene.lock).delete_blob(lease=scene.lease())


def lease_anew(scene: Scene) -> None:
    scene.break_now()
    BlobLeaseClient(scene.world.blob(scene.lock), OTHER).acquire(60)


OTHER = "0e0e0e0e-0000-4000-8000-000000000000"
# What happens, to a command with which traits, under which options.
ACTS: dict[str, tuple[Callable[[Scene], None], str, tuple[str, ...]]] = {
    "stopped": (stop, "deaf family", ()),
    "killed": (kill, "deaf family", ()),
    "broken in time": (break_in_time, "deaf family", ("--grace", "1s")),
    "broken at once": (Scene.break_now, "deaf family", ("--grace", "1s")),
    "released": (release, "family", ("--grace", "1s")),
    "deleted": (delete, "", ("--grace", "1s")),
    "leased anew": (lease_anew, "", ("--grace", "1s")),
    "kill": (Scene.break_now, "family", ("--on-lost", "kill")),
    "continue": (Scene.break_now, "", ("--on-lost", "continue")),
}
# What ends at its lease's end, and azguard itself is hit: started as a user does, where the others are forked.
STARTED = ("stopped", "killed")
LONG, SHORT = "a long outage", "a short outage"
FORWARD, BACK = "the wall clock goes forward", "the wall clock goes back"
# What Python runs at its start: from the moment that a file is there, the time of day is another one.
MOVED = """
import datetime, os, time

def moved(real=time.time):
    return real() + (int(os.environ["MOVED_BY"]) if os.path.exists(os.environ["MOVED_SINCE"]) else 0)

class Moved(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(moved(), tz)

time.time, datetime.datetime = moved, Moved
"""


@dataclass
class Paused:
    """A command in a terminal, stopped by Ctrl-Z."""

    seat: Seat
    lock: str
    seen: Seen


class Network:
    """What is between azguard and the service: while it is frozen no request goes on, and nothing is answered."""

    def __init__(self) -> None:
        self.goes_on = threading.Event()
        self.goes_on.set()
        #: When each lock was asked for or renewed last before the outage, by the name of its blob.
        self.leased: dict[str, float] = {}

    def decide(self, request: Request) -> Chosen:
        if self.goes_on.is_set() and operation(request) in ("PUT lease:acquire", "PUT lease:renew"):
            self.leased[request.path.partition("?")[0].rpartition("/")[2]] = now()
        self.goes_on.wait()
        return Chosen(Fault.NONE)


@dataclass
class Stage:
    """All scenes, by name."""

    scenes: dict[str, Scene] = field(default_factory=dict)
    paused: list[Paused] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    network: Network = field(default_factory=Network)

    def add(
        self, name: str, world: Locks, traits: str, options: tuple[str, ...], term: str = TERM, moved: str | None = None
    ) -> None:
        """Begin a command under a lock of its own."""
        lock, heartbeat = world.new(), world.cli.root / f"{name}.heartbeat"
        words = ("--lease-duration", term, "--heartbeat-file", str(heartbeat), *options)
        words += ("--metrics", str(heartbeat.with_suffix(".prom")))
        env = None if moved is None else movable(world, name, moved)
        begun = replace(world, starts=name in STARTED or moved is not None)
        working = begun.start_working(lock, *words, traits=traits, env=env)
        self.scenes[name] = Scene(world, lock, working, heartbeat, Contender(world.blob(lock)))

    def pause(self, seat: Seat) -> None:
        """Begin a command in a terminal, and stop it by Ctrl-Z."""
        lock = seat.world.new()
        seen = seat.work(lock, "--lease-duration", TERM)
        seat.shell.type(CTRL_Z)
        seat.shell.wait_for("Stopped")
        self.paused.append(Paused(seat, lock, seen))

    def contend(self) -> None:
        """Ask for the locks of those scenes that have a contender, until it is over."""
        patient = [self.scenes[name].contender for name in (*STARTED, BACK)]
        began = asked = now()
        while not self.over.wait(0.1):
            self.scenes["broken in time"].contender.ask()
            # A lease that is renewed no more ends no sooner than ten seconds later: then the moment counts.
            if now() - began > 8 or now() - asked > 0.5:
                asked = now()
                for each in patient:
                    each.ask()


@pytest.fixture(scope="module")
def stage(connection_string: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Yield the scenes, under way."""
    made = Stage()
    with ExitStack() as stack:
        world = stack.enter_context(locks(CliWorld(tmp_path_factory.mktemp("lost"), connection_string)))
        for name, (_, traits, options) in ACTS.items():
            made.add(name, world, traits, options)
        made.add(FORWARD, world, "", (), moved="7200")
        made.add(BACK, world, "deaf", (), moved="-7200")
        for _ in range(2):
            made.pause(stack.enter_context(seated(world)))
        between = stack.enter_context(proxy.running(world.cli.port, made.network.decide))
        frozen = stack.enter_context(
            locks(CliWorld(tmp_path_factory.mktemp("out"), connection_string).through(between.port))
        )
        made.add(LONG, frozen, "deaf family", ())
        made.add(SHORT, frozen, "", ("--grace", "1s"), term="30s")
        for scene in made.scenes.values():
            scene.working.wait_until_it_works()
            scene.first_beat = scene.heartbeat.read_text()
        for name, (act, _, _) in ACTS.items():
            act(made.scenes[name])
        for name in (FORWARD, BACK):
            (world.cli.root / f"{name}.moved").touch()
        stop(made.scenes[BACK])
        threads = [
            threading.Thread(target=made.contend),
            threading.Thread(target=freeze, args=(made.network, made.scenes[LONG])),
        ]
        for thread in threads:
            thread.start()
        yield made
        made.over.set()
        for thread in threads:
            thread.join()


def movable(world: Locks, name: str, seconds: str) -> dict[str, str]:
    """Return variables under which a run's time of day moves once a file of that name is there."""
    folder = world.cli.root / f"{name}.site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(MOVED)
    path = os.pathsep.join((str(folder), world.cli.environ()["PYTHONPATH"]))
    return {"PYTHONPATH": path, "MOVED_BY": seconds, "MOVED_SINCE": str(world.cli.root / f"{name}.moved")}


def freeze(network: Network, scene: Scene) -> None:
    """Freeze a network until a command under a lock behind it has ended."""
    network.goes_on.clear()
    try:
        until(lambda: is_gone(scene.working.pid))
    finally:
        network.goes_on.set()


def lost(ran: Ran) -> tuple[int, str]:
    """Return what tells a loss: the exit status, and the first line of the error."""
    lines = [line for line in ran.err.splitlines() if line.startswith("error: ")]
    return ran.code, lines[0] if lines else ran.err


LOST = (77, "error: the lock was lost while the command ran")


def exclusive_for(scene: Scene) -> float:
    """Return how long the command had been gone when another was granted the lock, in seconds."""
    until(lambda: scene.contender.granted_at is not None, 60)
    assert scene.contender.granted_at is not None
    return scene.contender.granted_at - scene.working.last_life()


def test_while_azguard_is_stopped_the_command_is_ended_before_anybody_else_has_the_lock(stage: Stage) -> None:
    scene = stage.scenes["stopped"]
    left = exclusive_for(scene)
    scene.working.running.send(signal.SIGCONT)
    assert (lost(scene.working.ended()), scene.working.signals()) == (LOST, ["SIGTERM"] * 2)
    assert left > 0
    assert (scene.heartbeat.exists(), scene.world.state(scene.lock), scene.all_gone()) == (False, "leased", True)
    assert scene.losses() == "1"


def test_after_kill_9_of_azguard_the_lock_is_free_when_its_lease_ends_and_the_command_is_gone(stage: Stage) -> None:
    scene = stage.scenes["killed"]
    assert exclusive_for(scene) > 0
    assert (scene.working.ended().code, scene.all_gone()) == (-signal.SIGKILL, True)
    # It was had when the lease ended, and not before; it had been taken before its first heartbeat.
    assert scene.contender.granted_at is not None
    assert scene.contender.granted_at - first_life(scene) > 10


def first_life(scene: Scene) -> float:
    """Return when the command began, on the clock of leases."""
    return float((scene.working.folder / "beats").read_text().split("\n", 1)[0])


def test_a_break_that_gives_time_ends_the_command_before_anybody_else_has_the_lock(stage: Stage) -> None:
    scene = stage.scenes["broken in time"]
    # azguard gives it back as soon as the command is gone.
    assert exclusive_for(scene) > 0
    assert (lost(scene.working.ended()), scene.working.signals()) == (LOST, ["SIGTERM"] * 2)


@pytest.mark.parametrize("name", ["broken at once", "released", "deleted", "leased anew"])
def test_a_lock_that_is_lost_ends_the_command_and_all_it_started(stage: Stage, name: str) -> None:
    scene = stage.scenes[name]
    ran = scene.working.ended()
    traits = ACTS[name][1]
    assert lost(ran) == LOST
    assert (scene.working.signals(), scene.all_gone()) == (["SIGTERM"] * (2 if "family" in traits else 1), True)
    status = 137 if "deaf" in traits else 143
    assert f"  the command's own exit status: {status}" in ran.err.splitlines()
    assert (scene.heartbeat.exists(), scene.lock in scene.world.held(), scene.losses()) == (False, False, "1")
    if "deaf" in traits:
        assert 0.9 < scene.working.last_life() - scene.working.signalled_at("SIGTERM") < 4


def test_the_lease_of_the_next_holder_is_not_touched(stage: Stage) -> None:
    scene = stage.scenes["leased anew"]
    scene.working.ended()
    BlobLeaseClient(scene.world.blob(scene.lock), OTHER).renew()


def test_on_lost_kill_gives_no_grace(stage: Stage) -> None:
    scene = stage.scenes["kill"]
    ran = scene.working.ended()
    assert (lost(ran), scene.working.signals(), scene.all_gone()) == (LOST, [], True)
    assert "  the command's own exit status: 137" in ran.err.splitlines()


def test_on_lost_continue_warns_and_exits_77_when_the_command_has_ended(stage: Stage) -> None:
    scene = stage.scenes["continue"]
    until(lambda: "warning: the lock is lost, and the command goes on" in scene.working.running.err)
    assert (scene.heartbeat.exists(), is_gone(scene.working.pid), scene.working.signals()) == (False, False, [])
    scene.working.finish(0)
    ran = scene.working.ended()
    assert (lost(ran), "  the command's own exit status: 0" in ran.err.splitlines()) == (LOST, True)


def test_an_outage_longer_than_the_lease_ends_the_command_in_time(stage: Stage) -> None:
    scene = stage.scenes[LONG]
    ran = scene.working.ended()
    leased = stage.network.leased[scene.lock.rpartition("/")[2]]
    life = scene.working.last_life() - leased
    asked = scene.working.signalled_at("SIGTERM") - leased
    # The term less the grace of five seconds and a reserve of one, which a busy machine may use up.
    assert (lost(ran), scene.working.signals()) == (LOST, ["SIGTERM"] * 2)
    assert "  it could not be renewed in time" in ran.err.splitlines()
    assert [line for line in ran.err.splitlines() if line.startswith("  the last renewal failed: ")]
    assert asked < 12
    assert life < 15
    assert (scene.heartbeat.exists(), scene.all_gone(), scene.losses()) == (False, True, "1")


def test_an_outage_shorter_than_the_lease_is_survived(stage: Stage) -> None:
    scene = stage.scenes[SHORT]
    stage.scenes[LONG].working.ended()  # the outage is over by then
    until(lambda: scene.heartbeat.read_text() != scene.first_beat)
    scene.working.finish(0)
    ran = scene.working.ended()
    assert (ran.code, ran.err, scene.working.signals(), scene.world.state(scene.lock)) == (0, "", [], "available")


def test_a_lock_is_renewed_and_kept_when_the_time_of_day_jumps_forward(stage: Stage) -> None:
    scene = stage.scenes[FORWARD]
    until(lambda: scene.heartbeat.read_text() != scene.first_beat)
    before, after = (datetime.fromisoformat(json.loads(text)["renewed"]) for text in beats(scene))
    scene.working.finish(0)
    assert ((after - before).total_seconds() > 7000, scene.working.ended().code) == (True, 0)


def beats(scene: Scene) -> tuple[str, str]:
    """Return the first and the latest heartbeat."""
    return scene.first_beat, scene.heartbeat.read_text()


def test_a_command_is_ended_in_time_when_the_time_of_day_jumps_back(stage: Stage) -> None:
    scene = stage.scenes[BACK]
    left = exclusive_for(scene)
    scene.working.running.send(signal.SIGCONT)
    assert (lost(scene.working.ended()), left > 0) == (LOST, True)


def test_the_page_about_locks_says_of_azguard_what_happens_here(stage: Stage) -> None:
    taken = [stage.scenes[name] for name in ("broken in time", "broken at once", "released", "deleted", LONG)]
    killed, stopped = stage.scenes["killed"], stage.scenes["stopped"]
    beside = [max(0.0, -exclusive_for(each)) for each in (stage.scenes["broken in time"], killed, stopped)]
    stopped.working.running.send(signal.SIGCONT)
    (status,) = {scene.working.ended().code for scene in (*taken, stopped)}
    gone = all(is_gone(scene.working.pid) for scene in taken)
    all_gone = all(scene.all_gone() for scene in taken)
    assert [
        str(status),
        _yes(gone),
        _yes(all_gone),
        f"{beside[0]:g} s",
        _yes(killed.all_gone()),
        f"{beside[1]:g} s",
        f"{beside[2]:g} s",
    ] == [cells[2].strip() for cells in (line.split("|") for line in LOCKS.table("lost")[2:])]


def _yes(truth: bool) -> str:
    return "yes" if truth else "no"


def test_who_was_stopped_for_longer_than_the_lease_goes_on_if_nobody_had_the_lock(stage: Stage) -> None:
    one = stage.paused[0]
    until(lambda: one.seat.world.state(one.lock) == "expired")
    assert (is_stopped(one.seen.pid), one.seen.went_on()) == (True, False)
    one.seat.shell.type("fg; echo now=$?\n")
    until(one.seen.went_on)
    assert one.seat.world.state(one.lock) == "leased"
    one.seen.finish(0)
    one.seat.shell.wait_for("now=0")
    assert one.seat.world.state(one.lock) == "available"


def test_who_was_stopped_while_somebody_else_had_the_lock_never_goes_on(stage: Stage) -> None:
    other = stage.paused[1]
    until(lambda: other.seat.world.state(other.lock) == "expired")
    BlobLeaseClient(other.seat.world.blob(other.lock)).acquire(60)
    last = other.seen.beats()
    other.seat.shell.forget()
    other.seat.shell.type("fg; echo now=$?\n")
    other.seat.shell.wait_for("now=77")
    assert (other.seen.beats(), is_gone(other.seen.pid), other.seen.went_on()) == (last, True, False)
    assert "the lock was lost while the command ran" in other.seat.shell.shown
