"""The waiters of a lock: what they and an operator see, and what lost, late and repeated requests leave behind.

Where faults meet the acquisitions, these are threads of this process: what is tried is what they send.
"""

import signal
import threading
import uuid
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from azure.storage.blob import ContainerSasPermissions, generate_blob_sas, generate_container_sas

from azguard.accounts import account
from azguard.accounts.account import Target
from azguard.accounts.endpoints import EMULATOR_KEY, EMULATOR_NAME
from azguard.address import Address, Kind
from azguard.guards.resolve import Conditions
from azguard.leases import actions
from azguard.leases.owner_records import Moved
from azguard.leases.owners import Owner
from azguard.locks import lock_blobs, log, queue, waiter
from azguard.locks.acquire import LockAcquisition
from azguard.locks.lock_blobs import AcquireSettings, LockRecord, LockRequest
from azguard.locks.log import RELEASED
from azguard.requests.deadline import Deadline
from tests.faults.rules import operation
from tests.support import sdk_clients
from tests.support.cli_world import CliWorld
from tests.support.emulator_world import until
from tests.support.faultproxy import proxy
from tests.support.faultproxy.proxy import Chosen, Fault, Request
from tests.support.lock_world import NOTHING, Locks, Running
from tests.support.no_records import NoRecords


def wait_in_line(world: Locks, lock: str, *words: str, place: str) -> Running:
    """Begin a run, and wait until it has its place in the queue."""
    running = world.begin(lock, "--wait", "10m", *words)
    until(lambda: f"{place} in the queue" in running.err)
    return running


def blobs(world: Locks) -> list[str]:
    """Return the names of the locks of this world and of all blobs beside them, histories left out."""
    names = [each["name"] for each in world.cli.call("blob", "list", world.container).json]
    return [name for name in names if not name.endswith("!log")]


def test_waiters_are_shown_with_their_places_and_their_reasons(world: Locks) -> None:
    lock = world.new()
    holder = world.begin_working(lock)
    first = wait_in_line(world, lock, "--reason", "nightly", "--", "true", place="1st")
    second = wait_in_line(world, lock, "--", "true", place="2nd")
    shown = world.cli.call("lock", "show", lock).json
    waiters = [(each["place"], each["reason"], each["is_shared"]) for each in shown["waiters"]]
    assert (shown["state"], waiters) == ("held", [(1, "nightly", False), (2, None, False)])
    assert [each["address"] for each in world.cli.call("lock", "list", world.container).json] == [lock]
    assert [each["address"] for each in world.cli.call("lease", "list", world.container).json] == [lock]
    holder.finish(0)
    assert [each.ended().code for each in (holder, first, second)] == [0, 0, 0]
    assert (world.left(lock), blobs(world)) == (NOTHING, [lock.rpartition("/")[2]])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_waiter_that_is_ended_leaves_no_ticket(world: Locks, number: signal.Signals) -> None:
    lock = world.new()
    with world.taken(lock):
        waiter = wait_in_line(world, lock, "--", "true", place="1st")
        assert len(blobs(world)) == 2
        waiter.send(number)
        assert waiter.ended().code == 128 + number
        assert blobs(world) == [lock.rpartition("/")[2]]


def test_a_newcomer_does_not_take_a_free_lock_from_those_who_wait(world: Locks) -> None:
    lock = world.new()
    with world.taken(lock):
        waiter = wait_in_line(world, lock, "--", "true", place="1st")
        waiter.send(signal.SIGSTOP)
    ran = world.run(lock, "--no-wait", "--", "true")
    plain = world.run(lock, "--no-wait", "--no-fair", "--", "true")
    waiter.send(signal.SIGCONT)
    short = lock.removeprefix("blob:")
    assert (ran.code, f"{short} is free, and 1 waits for it already" in ran.err) == (75, True)
    assert (plain.code, waiter.ended().code) == (0, 0)


def test_a_lock_is_not_confused_with_one_whose_name_begins_like_its_own(world: Locks) -> None:
    lock = world.new()
    assert world.run(f"{lock}-prod", "--", "true").code == 0
    assert world.run(f"{lock}.slot2", "--", "true").code == 0
    with world.taken(f"{lock}-prod"):
        waiter = wait_in_line(world, f"{lock}-prod", "--", "true", place="1st")
        assert world.run(lock, "--no-wait", "--", "true").code == 0
    assert waiter.ended().code == 0


@pytest.mark.parametrize("permission", ["rwc", "rwcl", "blob"])
def test_without_the_right_to_keep_tickets_a_lock_is_waited_for_all_the_same(world: Locks, permission: str) -> None:
    lock = world.new()
    assert world.run(lock, "--", "true").code == 0
    name = lock.rpartition("/")[2]
    signing: dict[str, Any] = {"account_key": EMULATOR_KEY, "expiry": "2099-01-01T00:00:00Z"}
    if permission == "blob":
        token = generate_blob_sas(EMULATOR_NAME, world.container, name, permission="rwc", **signing)
    else:
        allowed = ContainerSasPermissions.from_string(permission)
        token = generate_container_sas(EMULATOR_NAME, world.container, permission=allowed, **signing)
    url = f"http://127.0.0.1:{world.cli.port}/{EMULATOR_NAME}/{world.container}/{name}?{token}"
    with world.taken(lock):
        waiter = world.begin(url, "--wait", "1m", "--", "true")
        until(lambda: "waiting for" in waiter.err)
    ran = waiter.ended()
    assert (ran.code, ran.err.count("others may be served first"), blobs(world)) == (0, 1, [name])


def test_a_lock_whose_name_leaves_no_room_for_a_ticket_is_waited_for_without_a_queue(world: Locks) -> None:
    lock = f"blob:{world.container}/{'n' * 1020}"
    with world.taken(lock):
        waiter = world.begin(lock, "--wait", "1m", "--", "true")
        until(lambda: "is leased" in waiter.err)
    assert waiter.ended().code == 0


MAKE, SIGN, DELETE = "PUT blob", "PUT properties", "DELETE blob"
FAULTS = [Fault.DROP, Fault.FAIL_AFTER, Fault.LATE, Fault.ZOMBIE, Fault.RESET, Fault.FAIL_BEFORE, Fault.REPLAYED]
CASES = [(what, fault) for what in (MAKE, SIGN, DELETE) for fault in FAULTS]
_WAIT_SECONDS = 120.0
# So long a waiter is not passed over: on a busy machine one can be asleep for longer than the product waits for it.
_PATIENCE_SECONDS = 100.0
# A waiter is in two threads: its own, and that of the case.
_AT_A_TIME = 12


@dataclass
class Network:
    """Spoils the first request of each kind that is planned for a blob; ``held`` says when a late one is passed on."""

    planned: dict[tuple[str, str], Fault] = field(default_factory=dict)
    held: Mapping[str, threading.Event] = field(default_factory=dict)
    met: list[tuple[str, str]] = field(default_factory=list)
    _deciding: threading.Lock = field(default_factory=threading.Lock)

    def decide(self, request: Request) -> Chosen:
        name = request.path.partition("?")[0].rpartition("/")[2].replace("%21", "!")
        with self._deciding:
            fault = self.planned.pop((name, operation(request)), Fault.NONE)
            if fault is not Fault.NONE:
                self.met.append((name, operation(request)))
        return Chosen(fault, self.held[name].is_set if name in self.held and fault is not Fault.NONE else None)


@dataclass
class Run:
    """One that acquires a lock, says so, and releases it."""

    name: str
    lock: Target
    served: list[str]
    said: list[str] = field(default_factory=list)
    fence: int = 0

    def settings(self) -> AcquireSettings:
        return AcquireSettings(
            owner=Owner(self.name, "host", 1, "sh", None),
            seconds=60,
            create=True,
            patience=Deadline(30.0),
            records=NoRecords(),
            say=self.said.append,
            tell=lambda text: None,
            uniform=Random(self.name).uniform,
        )

    def work(self) -> None:
        held = LockAcquisition(LockRequest(self.lock), self.settings(), Deadline(_WAIT_SECONDS)).run()
        self.served.append(self.name)
        self.fence = held.fence
        actions.release(held.target, Conditions(lease_id=held.lease_id), Deadline(_WAIT_SECONDS))

    def start(self) -> threading.Thread:
        thread = threading.Thread(target=self.work)
        thread.start()
        until(lambda: "in the queue" in " ".join(self.said), _WAIT_SECONDS)
        return thread


@dataclass(frozen=True)
class Ground:
    """Where the cases are played: the service, and the way to it that spoils requests."""

    container: str
    port: int
    between: int
    network: Network

    def lock(self, name: str, *, is_spoilt: bool = False) -> Target:
        port = self.between if is_spoilt else self.port
        return Target(account.emulator({"blob": port}), Address(Kind.BLOB, (self.container, name)))

    def tickets(self, name: str) -> list[int]:
        return [each.number for each in queue.look(self.lock(name), Deadline(_WAIT_SECONDS)).tickets]

    def contend(self, name: str, plan: tuple[str, Fault]) -> list[str]:
        """Let two come one after the other, of which the first one meets the fault; return who was served."""
        self.network.planned[f"{name}!0000000001", plan[0]] = plan[1]
        lease = str(uuid.uuid4())
        deadline = Deadline(_WAIT_SECONDS)
        while lock_blobs.create_lock_blob(self.lock(name), deadline) is None:
            pass  # the first one made the container
        actions.acquire(self.lock(name), lease, 60, Conditions(), deadline)
        served: list[str] = []
        first = Run("first", self.lock(name, is_spoilt=True), served).start()
        second = Run("second", self.lock(name), served).start()
        if plan[0] == SIGN:
            until(lambda: (f"{name}!0000000001", SIGN) in self.network.met, _WAIT_SECONDS)
        actions.release(self.lock(name), Conditions(lease_id=lease), deadline)
        first.join()
        second.join()
        return served


@pytest.fixture(scope="module")
def ground(connection_string: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """Yield a container, and a network that spoils what is planned."""
    world = CliWorld(tmp_path_factory.mktemp("queue-faults"), connection_string)
    network = Network()
    with proxy.running(world.port, network.decide) as between:
        yield Ground(world.container(), world.port, between.port, network)


@pytest.fixture(scope="module")
def served(ground: Ground) -> Mapping[tuple[str, Fault], list[str]]:
    """Return who was served in each case, in order. Cases wait more than they work, so some are played at a time."""
    with (
        patch.object(waiter, "_LEFT_SECONDS", _PATIENCE_SECONDS),
        patch.object(queue, "SILENT_SECONDS", _PATIENCE_SECONDS),
        patch.object(queue, "DEAD_SECONDS", _PATIENCE_SECONDS),
        ThreadPoolExecutor(_AT_A_TIME) as pool,
    ):
        played = pool.map(lambda case: ground.contend(name_case(*case), case), CASES)
        return dict(zip(CASES, played, strict=True))


def name_case(what: str, fault: Fault) -> str:
    return f"{what} {fault.value}".lower().replace(" ", "-").replace(":", "-")


@pytest.mark.timeout(180)
@pytest.mark.parametrize(("what", "fault"), CASES)
def test_no_place_in_the_queue_is_lost_nor_given_twice_nor_kept(
    ground: Ground, served: Mapping[tuple[str, Fault], list[str]], what: str, fault: Fault
) -> None:
    name = name_case(what, fault)
    assert (served[what, fault], ground.tickets(name)) == (["first", "second"], [])
    assert (f"{name}!0000000001", what) in ground.network.met


@pytest.mark.timeout(180)
def test_a_ticket_that_is_made_after_its_waiter_was_served_holds_nobody_up_for_ever(ground: Ground) -> None:
    name, lands = "late-ticket", threading.Event()
    ground.network.held = {f"{name}!0000000001": lands}
    assert ground.contend(name, (MAKE, Fault.ZOMBIE)) == ["first", "second"]
    lands.set()
    until(lambda: ground.tickets(name) == [1], _WAIT_SECONDS)
    later: list[str] = []
    Run("later", ground.lock(name), later).work()
    assert later == ["later"]


RECORD = LockRecord(
    fence=7,
    owner=Owner("ops", "host", 1, "sh", "2026-11-22T10:00:00Z"),
    before=None,
    fence_before=None,
    moved=Moved("0x1", "0x2", None, ""),
)
NEXT = replace(
    RECORD,
    fence=8,
    owner=replace(RECORD.owner, since="2026-11-22T11:00:00Z"),
    before=RECORD.owner,
    fence_before=7,
)


@pytest.mark.parametrize("what", ["PUT appendblock", "PUT blob"])
@pytest.mark.parametrize("fault", FAULTS)
def test_the_history_has_each_holder_once_whatever_is_lost(ground: Ground, what: str, fault: Fault) -> None:
    name = f"history-{name_case(what, fault)}"
    through, direct = ground.lock(name, is_spoilt=True), ground.lock(name)
    if what == "PUT appendblock":
        sdk_clients.blob(log.find_log(direct).account, log.find_log(direct).address).create_append_blob()
    ground.network.planned[f"{name}!log", what] = fault
    log.append(through, log.build_line(through, RECORD, 1.0, None), lambda text: None)
    assert (f"{name}!log", what) in ground.network.met
    log.append(direct, log.build_line(direct, NEXT, 1.0, None), lambda text: None)
    found = [(each.fence, each.outcome) for each in log.read(direct, Deadline(_WAIT_SECONDS), 9).lines]
    # A line that never arrived is known from the next holder's.
    assert ([fence for fence, _ in found], found[1][1]) == ([7, 8], RELEASED)
