"""How many writes of one blob the emulator takes in a second, from the cheapest client there is.

What a contention benchmark measures above this is not the writers' doing. ``python -m benchmarks.raw_puts``
"""

import asyncio
import os
import sys
import time
from datetime import UTC, datetime, timedelta

from azguard.accounts import account
from azguard.accounts.endpoints import EMULATOR_KEY, EMULATOR_NAME
from azguard.emulators import background
from azguard.folders import Folders

CONNECTIONS = (1, 4, 16)
# Together below 2,000 writes: Azurite's garbage collector freezes it quadratically in their number.
_WRITES = 600
_BODY = b'{"count": 0}\n'


def measure() -> dict[int, float]:
    """Return the unconditional writes per second, without any latency, by number of connections."""
    with background.run_private_azurite(Folders.of(os.environ).emulator, os.environ) as mine:
        request = _request(mine.ports["blob"])
        return {
            connections: asyncio.run(_writes_per_second(mine.ports["blob"], request, connections))
            for connections in CONNECTIONS
        }


def _request(port: int) -> bytes:
    """Return the bytes of one Put Blob, signed once for all."""
    from azure.storage.blob import AccountSasPermissions, BlobServiceClient, ResourceTypes, generate_account_sas

    url = account.emulator({"blob": port}).endpoint("blob")
    BlobServiceClient(url, credential=EMULATOR_KEY).create_container("raw")
    sas = generate_account_sas(
        EMULATOR_NAME,
        EMULATOR_KEY,
        ResourceTypes(object=True),
        AccountSasPermissions(write=True, create=True),
        datetime.now(UTC) + timedelta(hours=1),
    )
    head = (
        f"PUT /{EMULATOR_NAME}/raw/count.json?{sas} HTTP/1.1\r\n"
        f"Host: 127.0.0.1:{port}\r\nx-ms-blob-type: BlockBlob\r\nx-ms-version: 2021-12-02\r\n"
        f"Content-Length: {len(_BODY)}\r\n\r\n"
    )
    return head.encode() + _BODY


async def _writes_per_second(port: int, request: bytes, connections: int) -> float:
    each = _WRITES // connections
    began = time.monotonic()
    async with asyncio.TaskGroup() as writers:
        for _ in range(connections):
            writers.create_task(_write(port, request, each))
    return each * connections / (time.monotonic() - began)


async def _write(port: int, request: bytes, times: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(times):
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 201"):
            raise SystemExit(head.decode("latin-1"))
    writer.close()


if __name__ == "__main__":
    for connections, rate in measure().items():
        sys.stdout.write(f"{connections:3} connections: {rate:6.0f} writes/s\n")
