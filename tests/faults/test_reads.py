"""Every row of the table in ``tests.faults.reads``: what was true before is not told again."""

import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from azguard.emulators.azurite_process import Azurite
from tests.faults import machines
from tests.faults.reads import READS, Read
from tests.faults.rules import operation
from tests.support import files_world
from tests.support.cli_world import CliWorld
from tests.support.emulator_world import until
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Chosen, Fault, ProxiedAnswer, Request

# Beside the ages, on one worker, which needs one emulator of files for all of them.
pytestmark = pytest.mark.xdist_group("fault gateways")
_BY_NAME = {read.name: read for read in READS}


@dataclass
class Gateway:
    """Keeps the answers to the first run, and gives them to the second: each once, or ``every`` time."""

    every: bool = False
    keeps: bool = False
    kept: dict[tuple[str, str], bytes] = field(default_factory=dict)

    def decide(self, request: Request) -> Fault | Chosen:
        """Return what happens to a request."""
        asked = (operation(request), request.path)
        if self.keeps or asked not in self.kept:
            return Chosen(keeps=self.keeps, echoes=self.keeps)
        return Chosen(Fault.STORED_BEFORE, stored=self.kept[asked] if self.every else self.kept.pop(asked))

    def record(self, answer: ProxiedAnswer) -> None:
        """Keep an answer."""
        if answer.raw:
            self.kept[operation(answer.request), answer.request.path] = answer.raw


def play(root: Path, ports: Mapping[str, int], row: Read, *, every: bool) -> tuple[int, str]:
    """Read, let another change it, and read again; return the status of that and what it printed."""
    gateway, direct = Gateway(every), machines.connect(ports)
    at = f"{row.name}-{'every' if every else 'once'}"
    with ExitStack() as stack:
        behind = {
            each: stack.enter_context(proxy.running(port, gateway.decide, record=gateway.record)).port
            for each, port in ports.items()
        }
        reader = machines.start(root, behind, direct, at)
        reader.do(row.before)
        gateway.keeps = True
        reader.do((row.command,))
        gateway.keeps = False
        machines.start(root, ports, direct, at).do(row.change)
        assert gateway.kept, "it asked for nothing"
        ran = reader.cli.call(*reader.fill(row.command), *(("--timeout", "1s") if every else ()))
    return ran.code, ran.out.strip()


@pytest.fixture
def ports(azurite: Azurite, tmp_path: Path, files_connection_string: str) -> dict[str, int]:
    """Return the ports of all services."""
    return {**azurite.ports, "file": files_world.port(CliWorld(tmp_path, files_connection_string))}


@pytest.mark.parametrize("name", _BY_NAME)
def test_what_was_true_before_is_not_told_again(tmp_path: Path, ports: dict[str, int], name: str) -> None:
    row = _BY_NAME[name]
    assert play(tmp_path, ports, row, every=False) == (row.code, row.shows)


@pytest.mark.parametrize("name", ["blob-get", "status", "lock-check", "entity-get", "file-show"])
def test_a_gateway_that_knows_the_past_alone_is_as_good_as_none(
    tmp_path: Path, ports: dict[str, int], name: str
) -> None:
    code, _ = play(tmp_path, ports, _BY_NAME[name], every=True)
    assert code == 53


def test_renewals_that_are_answered_from_before_keep_no_command_running(azurite: Azurite, tmp_path: Path) -> None:
    gateway, ports = Gateway(every=True, keeps=True), {"blob": azurite.ports["blob"]}
    direct = machines.connect(ports)
    with proxy.running(ports["blob"], gateway.decide, record=gateway.record) as between:
        holder = machines.start(tmp_path, {"blob": between.port}, direct, "renewals")
        holder.do(("container create {at}",))
        lock = ("blob:renewals/lock", "--lease-duration", "15s", "--grace", "1s", "--wait", "1s")
        running = holder.cli.begin_fork("lock", "run", *lock, "--", "sleep", "60")
        until(lambda: any(named == "PUT lease:renew" for named, _ in gateway.kept))
        gateway.keeps = False
        machines.start(tmp_path, ports, direct, "renewals").do(("lock break blob:{at}/lock --yes",))
        broken_at = time.monotonic()
        _, err = running.communicate(b"", 60)
    # At the end of the lease that was renewed last, less the grace; another could hold it from the break on.
    assert (running.wait(), time.monotonic() - broken_at < 25) == (77, True), err
