"""Measure how fast ``safe-update --where`` updates many entities, beside a loop over the Azure CLI.

    python -m benchmarks.many_entities [--entities N] [--loop N] [--az PATH]

The loop is what a shell script does: ``az storage entity merge``, once for each entity, without reading it first and
without any condition. It is measured over fewer entities, since each takes as long as the one before.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from azure.data.tables import TableClient

from azguard.emulators import background
from azguard.folders import Folders

TABLE = "speed"
# What the service takes in one transaction; only to fill the table.
_BATCH = 100
TARGET = 50.0


def main() -> None:
    """Measure both and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entities", type=int, default=5000, help="that azguard updates; 5,000 by default")
    parser.add_argument("--loop", type=int, default=20, help="that az merges; 20 by default, 0 leaves it out")
    parser.add_argument("--az", default="az", help="the Azure CLI")
    asked = parser.parse_args()
    with _world() as (environ, client):
        _fill(client, asked.entities)
        ours = [_rate(asked.entities, [_azguard("--increment", "n")], environ) for _ in range(3)]
        sys.stdout.write("azguard  " + ", ".join(f"{rate:.0f}" for rate in ours) + " entities/s\n")
        sys.stdout.flush()
        done = sum(entity["n"] == 4 for entity in client.list_entities())
        sys.stdout.write(f"         {done} of {asked.entities} entities were updated three times\n")
        if asked.loop:
            loop = _rate(asked.loop, [_az(asked.az, row) for row in range(asked.loop)], environ)
            ratio = sorted(ours)[1] / loop
            sys.stdout.write(f"az loop  {loop:.2f} entities/s\nratio    {ratio:.0f}     target ≥ {TARGET:g}\n")


@contextmanager
def _world() -> Iterator[tuple[Mapping[str, str], Any]]:
    """Run a private emulator with an empty table in it; yield the environment for commands, and the table."""
    emulator = Folders.of(os.environ).emulator
    with tempfile.TemporaryDirectory() as folder, background.run_private_azurite(emulator, os.environ) as running:
        client = TableClient.from_connection_string(running.connection_string, TABLE)
        client.create_table()
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("AZURE_", "AZGUARD_"))}
        yield (
            {
                **kept,
                "AZURE_STORAGE_CONNECTION_STRING": running.connection_string,
                "AZGUARD_CACHE_DIR": folder,
                "AZURE_CONFIG_DIR": folder,
                "AZURE_CORE_COLLECT_TELEMETRY": "no",
            },
            client,
        )


def _fill(client: Any, entities: int) -> None:
    for first in range(0, entities, _BATCH):
        rows = range(first, min(entities, first + _BATCH))
        made = [{"PartitionKey": "p", "RowKey": f"{row:06}", "n": 1, "status": "new"} for row in rows]
        client.submit_transaction([("create", entity) for entity in made])


def _azguard(*edits: str) -> Sequence[str]:
    where = ("--where", "PartitionKey eq 'p'")
    return (sys.executable, "-m", "azguard", "safe-update", f"table:{TABLE}", *where, *edits, "-o", "none")


def _az(az: str, row: int) -> Sequence[str]:
    entity = ("PartitionKey=p", f"RowKey={row:06}", "status=done")
    return (az, "storage", "entity", "merge", "--table-name", TABLE, "--entity", *entity, "-o", "none")


def _rate(entities: int, commands: Sequence[Sequence[str]], environ: Mapping[str, str]) -> float:
    """Run the commands one after the other; return entities per second."""
    begun = time.perf_counter()
    for command in commands:
        subprocess.run(command, env=dict(environ), check=True, stdin=subprocess.DEVNULL)
    return entities / (time.perf_counter() - begun)


if __name__ == "__main__":
    main()
