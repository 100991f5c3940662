"""What Terraform's azurerm backend does to its state, as a program: ``stand_in_terraform.py CONTAINER/NAME END``.

It takes an infinite lease whose id is the id of its lock info, and writes that info into the metadata under the lease.
``END`` is what happens then: ``unlock``, ``die`` by SIGKILL, ``fail`` with the lock left, ``hang`` until it is ended,
``interrupted``, which ends with 1 and without unlocking when it gets SIGTERM.
"""

import base64
import getpass
import json
import os
import signal
import socket
import sys
import uuid
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import NoReturn

from azure.core.exceptions import ResourceNotFoundError
from azure.storage.blob import BlobClient, BlobLeaseClient


def lock_info(lock_id: str, who: str | None = None, created: datetime | None = None) -> dict[str, str]:
    """Return the metadata with Terraform's lock info; by default of this user and machine, taken now."""
    info = {
        "ID": lock_id,
        "Operation": "OperationTypeApply",
        "Info": "",
        "Who": who or f"{getpass.getuser()}@{socket.gethostname()}",
        "Version": "1.9.8",
        "Created": (created or datetime.now(UTC)).isoformat().replace("+00:00", "123Z"),
        "Path": "tfstate/prod",
    }
    return {"terraformlockid": base64.b64encode(json.dumps(info).encode()).decode()}


def take(client: BlobClient, who: str | None = None, created: datetime | None = None) -> BlobLeaseClient:
    """Lock a state, which is made if it is missing."""
    try:
        client.get_blob_properties()
    except ResourceNotFoundError:
        client.upload_blob(b"")
    lease = BlobLeaseClient(client, str(uuid.uuid4()))
    lease.acquire(-1)
    client.set_blob_metadata(lock_info(lease.id, who, created), lease=lease.id)
    return lease


def _give_up(_number: int, _frame: FrameType | None) -> NoReturn:
    os._exit(1)


def main(address: str, end: str) -> int:
    """Lock the state, and end as asked."""
    client = BlobClient.from_connection_string(os.environ["AZURE_STORAGE_CONNECTION_STRING"], *address.split("/", 1))
    if end == "interrupted":
        signal.signal(signal.SIGTERM, _give_up)
    lease = take(client)
    Path("locked").write_text(lease.id)
    if end == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if end in ("hang", "interrupted"):
        while True:
            signal.pause()
    if end == "unlock":
        client.set_blob_metadata({}, lease=lease.id)
        lease.release()
    return int(end == "fail")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
