"""Every cell of the table in ``tests.faults.ages``: what is young is left alone and what is old is taken, by any clock.

All that is judged is made at once, and gets old while the young is judged. The cells share one gateway for each service
and clock.
"""

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass

import pytest

from azguard.emulators.azurite_process import Azurite
from tests.faults import machines
from tests.faults.ages import AGES, Age, Clock
from tests.faults.machines import Machine
from tests.support import files_world
from tests.support.cli_world import CliWorld, Ran
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Chosen
from tests.support.faultproxy.proxy import Proxy

pytestmark = pytest.mark.xdist_group("fault gateways")
_AT_A_TIME = 4
_PAUSE_SECONDS = 1.0


@dataclass(frozen=True, eq=False)
class Cell:
    """A row under one clock, and the machines of the two."""

    age: Age
    clock: Clock
    holder: Machine
    judge: Machine

    def judge_at(self, moment: float) -> Ran:
        """Run the command, not before that moment."""
        time.sleep(max(0.0, moment - time.monotonic()))  # the age that is judged is of the service's clock
        noun, verb, *rest = self.judge.fill(self.age.command)
        # A busy machine is no fault.
        words = (noun, verb, "--timeout", "60s", *rest)
        if self.age.keeps is None:
            return self.judge.cli.fork(*words)
        self.age.keeps(self.holder.direct, self.holder.at)
        running = self.judge.cli.begin_fork(*words)
        while running.poll() is None:
            self.age.keeps(self.holder.direct, self.holder.at)
            time.sleep(_PAUSE_SECONDS)  # the age that is judged is of the service's clock
        out, err = running.communicate(b"", 10)
        return Ran(running.wait(), out, err.decode())

    def look(self, ran: Ran) -> str:
        """Return what is to be seen afterwards."""
        seen = self.holder.cli.call(*self.holder.fill(self.age.look)) if self.age.look else ran
        return seen.out.strip()


@pytest.fixture(scope="module")
def judged(
    tmp_path_factory: pytest.TempPathFactory, azurite: Azurite, files_connection_string: str
) -> Iterator[Mapping[Cell, "Future[Ran]"]]:
    """Judge all cells, those first for which nothing has to get old."""
    root = tmp_path_factory.mktemp("ages")
    ports = {**azurite.ports, "file": files_world.port(CliWorld(root, files_connection_string))}
    direct = machines.connect(ports)
    with ExitStack() as stack:
        behind = {
            seconds: {each: stack.enter_context(_run_gateway(port, seconds)).port for each, port in ports.items()}
            for seconds in {clock.ahead_seconds for clock in Clock}
        }
        made: dict[Cell, float] = {}
        for age, clock in [(row, clock) for row in sorted(AGES, key=lambda row: row.seconds) for clock in row.clocks]:
            at = f"{age.name}-{clock.value.replace(' ', '-')}"
            wrong = machines.start(root, behind[clock.ahead_seconds], direct, at)
            right = machines.start(root, ports, direct, at)
            holder, judge = (wrong, right) if clock.is_holders else (right, wrong)
            holder.do(age.before)
            made[Cell(age, clock, holder, judge)] = time.monotonic()
        pool = stack.enter_context(ThreadPoolExecutor(_AT_A_TIME))
        yield {cell: pool.submit(cell.judge_at, moment + cell.age.seconds) for cell, moment in made.items()}
        pool.shutdown(cancel_futures=True)


def _run_gateway(port: int, ahead_seconds: int) -> AbstractContextManager[Proxy]:
    return proxy.running(port, lambda request: Chosen(ahead_seconds=ahead_seconds))


@pytest.mark.parametrize("age", AGES, ids=[age.name for age in AGES])
def test_an_age_is_judged_right_by_any_clock(judged: Mapping[Cell, "Future[Ran]"], age: Age) -> None:
    cells = {cell: future.result() for cell, future in judged.items() if cell.age == age}
    told = {cell.clock.value: (ran.code, cell.look(ran), ran.err) for cell, ran in cells.items()}
    wrong = {clock: found for clock, found in told.items() if found[:2] != (age.code, age.shows)}
    assert wrong == {}, "\n".join(
        f"{clock}: exit {code}, {shown!r}\n{err}" for clock, (code, shown, err) in wrong.items()
    )
