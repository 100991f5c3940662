"""Try each row on an endpoint, print a table, and exit with 1 if one is red.

On the emulator: ``eval "$(azguard emulator env)"``, then ``python -m tests.smb_matrix``.
On an account: ``python -m tests.smb_matrix --connection-string "$TEXT" --smb-port 445``.
It makes a share of its own, and deletes it in the end.
"""

import argparse
import os
import sys
import uuid
from collections.abc import Iterator
from urllib.parse import urlsplit

from azure.storage.fileshare import ShareServiceClient

from tests.smb_matrix.endpoint import Endpoint
from tests.smb_matrix.rows import TRIALS, Row


def main(argv: list[str] | None = None) -> int:
    """Print the table; return the exit status."""
    options = _build_parser().parse_args(argv)
    service = ShareServiceClient.from_connection_string(options.connection_string, retry_total=0)
    parts = dict(each.split("=", 1) for each in options.connection_string.split(";") if each)
    host = options.smb_host or urlsplit(service.url).hostname or ""
    share = service.create_share(f"smb-matrix-{uuid.uuid4().hex[:8]}")
    try:
        endpoint = Endpoint(share, host, options.smb_port, parts["AccountName"], parts["AccountKey"])
        red = sum(not row.is_green for row in _try_all(endpoint))
    finally:
        share.delete_share()
    return 1 if red else 0


def _try_all(endpoint: Endpoint) -> Iterator[Row]:
    count = 0
    red = 0
    for trial in TRIALS:
        try:
            for row in trial(endpoint):
                count += 1
                red += not row.is_green
                _show(row)
                yield row
        except Exception as error:  # noqa: BLE001  # what cannot be tried is red, and the others still count
            row = Row(trial.__name__, "could be tried", ("yes",), f"{type(error).__name__}: {error}".splitlines()[0])
            red += 1
            _show(row)
            yield row
    sys.stdout.write(f"{count} rows, {red} red\n")


def _show(row: Row) -> None:
    mark = "ok " if row.is_green else "RED"
    wanted = "" if row.is_green else f"   documented: {' or '.join(row.expected)}"
    sys.stdout.write(f"{mark}  {row.case:45} {row.what:48} {row.found}{wanted}\n")
    sys.stdout.flush()


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.smb_matrix", description=__doc__)
    text = os.environ.get("AZURE_STORAGE_CONNECTION_STRING")
    port = os.environ.get("AZGUARD_SMB_PORT", "445")
    parser.add_argument("--connection-string", default=text, required=text is None, help="of the account, with its key")
    parser.add_argument("--smb-host", help="the host of the file endpoint unless given")
    parser.add_argument("--smb-port", type=int, default=int(port), help="default: %(default)s")
    return parser


if __name__ == "__main__":
    sys.exit(main())
