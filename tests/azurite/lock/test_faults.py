"""``lock run`` when an answer is lost: the command runs once, its fence is the lock's, and the lock is free again."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from azure.storage.blob import BlobLeaseClient

from tests.faults.rules import operation
from tests.support.cli_world import CliWorld, Ran, command
from tests.support.faultproxy import proxy
from tests.support.faultproxy.proxy import Chosen, Fault, Request
from tests.support.lock_world import Locks, locks

# The requests of a run, in their order; the renewal is the one that a short lease needs while its command runs.
ACQUIRE, STAMP, RENEW, RELEASE = "PUT lease:acquire", "PUT metadata", "PUT lease:renew", "PUT lease:release"
FAULTS = [Fault.DROP, Fault.FAIL_AFTER, Fault.LATE, Fault.ZOMBIE, Fault.RESET]
CASES = [(what, fault) for what in (ACQUIRE, STAMP, RENEW, RELEASE) for fault in FAULTS]
# Those that wait for a renewal leave the processors to the others.
_AT_A_TIME = 10


class Network:
    """Spoils the first request of each lock that the lock's case names."""

    def __init__(self) -> None:
        self.planned: dict[str, tuple[str, Fault]] = {}
        self.met: dict[str, Fault] = {}
        self._deciding = threading.Lock()

    def decide(self, request: Request) -> Chosen:
        name = request.path.partition("?")[0].rpartition("/")[2]
        with self._deciding:
            what, fault = self.planned.get(name, ("", Fault.NONE))
            if name in self.met or operation(request) != what:
                return Chosen(Fault.NONE)
            self.met[name] = fault
            return Chosen(fault)


@dataclass(frozen=True)
class Played:
    """A case that was played: what the run left, and then the state of the lease and the fence."""

    ran: Ran
    state: str
    fence: int


@pytest.fixture(scope="module")
def played(
    connection_string: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[tuple[str, Fault], Played]]:
    """Yield every case, played."""
    network = Network()
    with (
        locks(CliWorld(tmp_path_factory.mktemp("faults"), connection_string)) as direct,
        proxy.running(direct.cli.port, network.decide) as between,
        ThreadPoolExecutor(_AT_A_TIME) as pool,
    ):
        world = Locks(direct.cli.through(between.port), direct.container, direct.mark)

        def play(case: tuple[str, Fault]) -> Played:
            lock = direct.new()
            direct.blob(lock).upload_blob(b"", metadata={"azguardfence": "41"})
            network.planned[lock.rpartition("/")[2]] = case
            # The renewal comes after five seconds; all else happens in any run.
            script = f'echo "$AZGUARD_FENCE"; sleep {6 if case[0] == RENEW else 0}; exit 3'
            ran = world.run(lock, "--lease-duration", "60s", "--", "sh", "-c", script)
            return Played(ran, direct.state(lock), direct.fence(lock))

        # Those that take longest first.
        order = sorted(CASES, key=lambda case: case[0] != RENEW)
        found = dict(zip(order, pool.map(play, order), strict=True))
        assert len(network.met) == len(CASES)
        yield found


@pytest.mark.parametrize(("what", "fault"), CASES)
def test_a_lost_answer_changes_nothing(played: dict[tuple[str, Fault], Played], what: str, fault: Fault) -> None:
    found = played[what, fault]
    # Who is answered too slowly asks again, and has a fence of its own each time; the last is the one that counts.
    assert found == Played(Ran(3, f"{found.fence}\n".encode(), ""), "available", max(42, found.fence))


@pytest.mark.parametrize("fault", [Fault.DROP, Fault.FAIL_AFTER])
def test_what_was_read_guards_the_write_inside_although_the_answer_to_the_record_was_lost(
    connection_string: str, tmp_path: Path, fault: Fault
) -> None:
    network = Network()
    (tmp_path / "new").write_text("2")
    with (
        locks(CliWorld(tmp_path, connection_string)) as direct,
        proxy.running(direct.cli.port, network.decide) as between,
    ):
        world = Locks(direct.cli.through(between.port), direct.container, direct.mark)
        lock = direct.new()
        blob = lock.removeprefix("blob:")
        world.cli.call("blob", "put", blob, stdin=b"1")
        network.planned[lock.rpartition("/")[2]] = (STAMP, fault)
        ran = world.run(lock, "--", *command("blob", "put", blob, "-f", str(tmp_path / "new"), "--query", "guard"))
        assert (network.met.popitem()[1], ran.code, ran.out) == (fault, 0, '"if-match"\n'), ran.err


def test_a_lock_that_another_holds_after_the_command_was_not_lost(connection_string: str, tmp_path: Path) -> None:
    taken: list[str] = []

    def take(request: Request) -> Chosen:
        """Release the lock as a first copy of the request would, and acquire it for another."""
        if operation(request) == RELEASE and not taken:
            lease = BlobLeaseClient(direct.blob(lock))
            lease.break_lease(0)
            lease.acquire(15)
            taken.append(lease.id)
        return Chosen(Fault.NONE)

    with (
        locks(CliWorld(tmp_path, connection_string)) as direct,
        proxy.running(direct.cli.port, take) as between,
    ):
        lock = direct.new()
        ran = Locks(direct.cli.through(between.port), direct.container, direct.mark).run(
            lock, "--", "sh", "-c", "exit 3"
        )
        assert (len(taken), ran.code, ran.err, direct.state(lock), direct.held()) == (1, 3, "", "leased", [])
