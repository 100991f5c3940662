"""Run the calls of one client over a Files emulator of their own; print each answer that is another one."""

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from azure.storage.fileshare import AccountSasPermissions, ResourceTypes, ShareClient, generate_account_sas

from azguard.emulators.files import server
from azguard.emulators.files.__main__ import ACCOUNT, KEY
from tests.support.files_emulator import SECRET

_HERE = Path(__file__).parent
_PATIENCE_SECONDS = 120


def main(client: str) -> int:
    """Return how many calls were answered otherwise, at most 1."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        running = server.serve(folder / "data", {ACCOUNT: SECRET}, "127.0.0.1", 0)
        try:
            endpoint = f"http://127.0.0.1:{running.port}/{ACCOUNT}"
            string = f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};FileEndpoint={endpoint}"
            environ = {**os.environ, "AZURE_STORAGE_CONNECTION_STRING": string}
            if client == "npm":
                script = (_HERE / "npm.mjs").read_text(encoding="utf-8")
                ran = subprocess.run(["node", "--input-type=module", "-"], input=script, text=True, env=environ)
                return ran.returncode
            return _run_lines(client, endpoint, environ, folder / "work")
        finally:
            running.stop()


def _run_lines(client: str, endpoint: str, environ: dict[str, str], folder: Path) -> int:
    """Run each line of the client's list, which begins with the exit status that is right."""
    (folder / "up/d").mkdir(parents=True)
    (folder / "down").mkdir()
    (folder / "a.bin").write_bytes(os.urandom(300_000))
    (folder / "up/1.txt").write_text("1")
    (folder / "up/d/2.txt").write_text("2")
    rights = AccountSasPermissions(read=True, write=True, delete=True, list=True, create=True)
    sas = generate_account_sas(
        ACCOUNT, KEY, ResourceTypes(service=True, container=True, object=True), rights, "2100-01-01T00:00:00Z"
    )
    if client == "azcopy":
        ShareClient.from_connection_string(environ["AZURE_STORAGE_CONNECTION_STRING"], "team").create_share()
    start = [client, "storage"] if client == "az" else [client]
    lines = (_HERE / f"{client}.txt").read_text(encoding="utf-8").splitlines()
    other = 0
    for line in lines:
        status, _, words = line.partition(" ")
        call = [word.format(at=endpoint, sas=sas) for word in shlex.split(words)]
        ran = subprocess.run(
            [*start, *call], cwd=folder, env=environ, capture_output=True, text=True, timeout=_PATIENCE_SECONDS
        )
        if ran.returncode != int(status):
            other += 1
            sys.stdout.write(f"{words}: {ran.returncode}, not {status}\n{ran.stdout}{ran.stderr}\n")
    sys.stdout.write(f"{len(lines)} calls, {other} answered otherwise\n")
    return min(other, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
