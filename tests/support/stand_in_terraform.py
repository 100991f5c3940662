"""What Terraform's azurerm backend does to its state, as a program: ``stand_in_terraform.py URL END``, with a SAS.

It takes an infinite lease whose id is the id of its lock info, and writes that info into the metadata under the lease.
``END`` is what happens then: ``unlock``, ``die`` by SIGKILL, ``fail`` with the lock left, ``hang`` until it is ended,
``interrupted``, which ends with 1 and without unlocking when it gets SIGTERM. It sends its requests without the SDK,
whose import would take most of its time.
"""

import base64
import getpass
import json
import os
import signal
import socket
import sys
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from types import FrameType
from typing import NoReturn


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


def take(url: str, who: str | None = None, created: datetime | None = None) -> str:
    """Lock a state, which is made if it is missing; return the id of the lease."""
    if _send("HEAD", url) == HTTPStatus.NOT_FOUND:
        _send("PUT", url, {"blob-type": "BlockBlob"})
    lease = str(uuid.uuid4())
    taken = {"lease-action": "acquire", "lease-duration": "-1", "proposed-lease-id": lease}
    assert _send("PUT", f"{url}&comp=lease", taken) == HTTPStatus.CREATED
    info = {f"meta-{name}": value for name, value in lock_info(lease, who, created).items()}
    assert _send("PUT", f"{url}&comp=metadata", {"lease-id": lease, **info}) == HTTPStatus.OK
    return lease


def release(url: str, lease: str) -> None:
    """Unlock a state."""
    assert _send("PUT", f"{url}&comp=metadata", {"lease-id": lease}) == HTTPStatus.OK
    assert _send("PUT", f"{url}&comp=lease", {"lease-id": lease, "lease-action": "release"}) == HTTPStatus.OK


def _send(verb: str, url: str, headers: Mapping[str, str] | None = None) -> int:
    """Send a request with headers of Azure's, and return the status of the answer."""
    server, _, path = url.removeprefix("http://").partition("/")
    connection = HTTPConnection(server)
    azures = {f"x-ms-{name}": value for name, value in (headers or {}).items()}
    connection.request(verb, f"/{path}", b"", {"x-ms-version": "2023-11-03", **azures})
    status = connection.getresponse().status
    connection.close()
    return status


def _give_up(_number: int, _frame: FrameType | None) -> NoReturn:
    os._exit(1)


def main(url: str, end: str) -> int:
    """Lock the state, and end as asked."""
    if end == "interrupted":
        signal.signal(signal.SIGTERM, _give_up)
    lease = take(url)
    Path("locked").write_text(lease)
    if end == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if end in ("hang", "interrupted"):
        while True:
            signal.pause()
    if end == "unlock":
        release(url, lease)
    return int(end == "fail")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
