"""A machine of its own behind a proxy: runs the command lines of a row, and what the SDK does instead of one."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from azguard.accounts import account
from azguard.accounts.account import Account
from azguard.accounts.endpoints import EMULATOR_KEY, EMULATOR_NAME
from tests.support.cli_world import CliWorld

#: A command line, or what is done with the SDK in the containers, queues or shares of this name.
Step = str | Callable[[Account, str], None]


@dataclass(frozen=True)
class Machine:
    """A machine. ``at`` is a name of the cell's own: ``{at}`` in a command line and, for a table, ``{table}``."""

    cli: CliWorld
    direct: Account
    at: str

    def fill(self, command: str) -> list[str]:
        """Return the words of a command line with the names of the cell."""
        return command.format(at=self.at, table=self.at.replace("-", "")).split()

    def do(self, steps: Sequence[Step]) -> None:
        """Do one step after the other."""
        for step in steps:
            if not isinstance(step, str):
                step(self.direct, self.at)
                continue
            ran = self.cli.call(*self.fill(step))
            assert ran.code == 0, ran.err


def start(root: Path, ports: Mapping[str, int], direct: Account, at: str) -> Machine:
    """Return a machine with a folder of its own under ``root``, which asks the services on these ports."""
    folder = root / uuid.uuid4().hex
    folder.mkdir()
    named = [f"{each.title()}Endpoint=http://127.0.0.1:{port}/{EMULATOR_NAME}" for each, port in ports.items()]
    text = ";".join((f"AccountName={EMULATOR_NAME};AccountKey={EMULATOR_KEY}", *named))
    return Machine(CliWorld(folder, text).with_cache(), direct, at)


def connect(ports: Mapping[str, int]) -> Account:
    """Return the account past every proxy."""
    return account.emulator(dict(ports))
