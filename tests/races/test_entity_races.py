"""Eight processes increment one entity, over a network that loses, delays and repeats; all that is said is true.

Each update leaves its op in the entity, in the order of the commits: what is there in the end is the truth.
"""

import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import pytest

from azguard.accounts import account
from azguard.address import Address, Kind
from azguard.emulators.azurite_process import Azurite
from tests.faults.rules import operation
from tests.races.weather import Weather
from tests.support import sdk_clients, thorough
from tests.support.faultproxy import proxy
from tests.support.forked_process import ForkedProcess

# Many processes that contend: one such race at a time.
pytestmark = [pytest.mark.xdist_group("other-races"), pytest.mark.thorough]

_PROCESSES, _HOSTS, _UPDATES, _SHARE = 8, 2, thorough.count(8, 4), 0.25


@dataclass(frozen=True)
class Raced:
    """What a race came to: the ops in the entity, its count, what was told, and what the proxy saw."""

    ops: tuple[str, ...]
    n: int
    told: Sequence[dict[str, Any]]
    etags: tuple[str | None, ...]
    ledger: frozenset[str]
    faults: int


@pytest.mark.parametrize("guard", ["lineage", "ledger"])
def test_increments_of_one_entity_are_exact(guard: str, tmp_path: Path, seed: str, race_azurite: Azurite) -> None:
    raced = _race(race_azurite, guard, tmp_path, seed)
    done = {told["op"] for told in raced.told if told["code"] == 0}
    unknown = {told["op"] for told in raced.told if told["code"] == 74}
    assert (len(raced.ops), len(set(raced.ops))) == (raced.n, raced.n)
    assert done <= set(raced.ops) <= done | unknown
    told_etags = [told["etag"] for told in raced.told if told["etag"] is not None]
    assert Counter(told_etags) - Counter(raced.etags) == Counter() or guard == "ledger"
    assert raced.ledger == (frozenset(raced.ops) if guard == "ledger" else frozenset())
    assert len(raced.told) == _PROCESSES * _UPDATES
    assert raced.faults > _PROCESSES


def _race(emulator: Azurite, guard: str, folder: Path, seed: str) -> Raced:
    weather = Weather(f"{seed} {guard}", _SHARE)
    table = f"race{guard}"
    with sdk_clients.table(account.emulator(emulator.ports), Address(Kind.TABLE, (table,))) as client:
        client.create_table()
        with proxy.running(emulator.ports["table"], weather.decide, record=weather.record) as between:
            processes = [_begin(number, between.port, (table, guard), folder, seed) for number in range(_PROCESSES)]
            outputs = [process.communicate(timeout=240)[0] for process in processes]
            weather.settled(6.0)
        assert [process.returncode for process in processes] == [0] * _PROCESSES
        final = client.get_entity("p", "r")
        rows = client.query_entities("RowKey ge '~op~' and outcome eq 'committed'")
        ledger = frozenset(str(row["RowKey"]).removeprefix("~op~") for row in rows)
    writes = [
        each for each in weather.log if each.committed and operation(each.request) in ("PUT entity", "POST entity")
    ]
    return Raced(
        ops=tuple(str(final["ops"]).split()),
        n=int(final["n"]),
        told=[json.loads(line) for output in outputs for line in output.splitlines()],
        etags=tuple(each.etag for each in writes),
        ledger=ledger,
        faults=sum(weather.faults.values()) - weather.faults["none"],
    )


def _begin(number: int, port: int, what: tuple[str, str], folder: Path, seed: str) -> ForkedProcess:
    words = (str(port), *what, str(_UPDATES), f"{seed} process {number}")
    environ = {
        **os.environ,
        "AZGUARD_CACHE_DIR": str(folder / f"host-{number % _HOSTS}"),
        "AZURE_HTTP_USER_AGENT": f"race/{number}",
    }
    return ForkedProcess(words, folder, environ, module="tests.races.entity_worker", stdin=DEVNULL, stderr=None)
