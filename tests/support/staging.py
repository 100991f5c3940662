"""Set up a scenario of the walk over conditions, against the emulator."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import lru_cache

from azguard.accounts import account
from azguard.accounts.endpoints import EMULATOR_KEY, EMULATOR_NAME
from tests.support.cli_world import CliWorld
from tests.support.condition_stage import Stage
from tests.support.evidence import find_service
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Fault
from tests.support.queue_stage import QueueStage
from tests.support.scenarios import Scenario

_STAGES: Mapping[str, type[Stage]] = {"blob": Stage, "queue": QueueStage}


@contextmanager
def staged(scenario: Scenario, cli: CliWorld, ports: Mapping[str, int]) -> Iterator[Stage]:
    """Set a scenario up against the emulator on these ports, behind a proxy that records."""
    service = find_service(scenario.operation)
    with ExitStack() as stack:
        through = stack.enter_context(proxy.running(ports[service], lambda _: Fault.NONE))
        key = f"AccountName={EMULATOR_NAME};AccountKey={EMULATOR_KEY}"
        endpoint = f"http://127.0.0.1:{through.port}/{EMULATOR_NAME}"
        world = CliWorld(cli.root, f"{key};{service.title()}Endpoint={endpoint}")
        made = _STAGES[service](scenario, world, _direct(tuple(ports.items())), through, stack)
        made.prepare()
        yield made


@lru_cache(maxsize=1)
def _direct(ports: tuple[tuple[str, int], ...]) -> account.Account:
    """Return the account past every proxy; its connections stay open from one stage to the next."""
    return account.emulator(dict(ports))
