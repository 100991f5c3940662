"""Do the same job with the Azure CLI and with azguard: how long it takes, and what is lost on the way.

    python -m benchmarks.same_job --az DIRECTORY-OF-AZ [--runs N]

The job is ``same_job_az.sh`` and ``same_job_azguard.sh``: add one to a number in a blob that others write too. The two
run in turn, A B A B …, so that a busy machine slows both. Then each runs once while the answer of its first write is
lost. Needs ``jq``. Install ``az`` into a virtual environment of its own: its dependencies are not ours.
"""

import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from azguard.emulators import background
from azguard.emulators.azurite_process import Azurite
from azguard.folders import Folders
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Fault, Request

HERE = Path(__file__).parent
WAYS = {"az": HERE / "same_job_az.sh", "azguard": HERE / "same_job_azguard.sh"}
RUNS = 5
# What the blob has besides its content, and which a change of the content must not lose.
METADATA = {"owner": "ops"}
CONTENT_TYPE = "application/vnd.contoso+json"


@dataclass(frozen=True)
class Run:
    """What one run took, and what it left."""

    seconds: float
    processor_seconds: float
    requests: int
    replicas: int
    metadata: Mapping[str, str]
    content_type: str


def main() -> None:
    """Run the job both ways and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--az", required=True, type=Path, help="the folder that has az")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"of each way; {RUNS} by default")
    asked = parser.parse_args()
    places = [str(asked.az.absolute()), str(Path(sys.executable).parent), os.environ["PATH"]]
    environ = {**os.environ, "PATH": os.pathsep.join(places), "AZURE_CORE_COLLECT_TELEMETRY": "false"}
    with background.run_private_azurite(Folders.of(os.environ).emulator, os.environ) as running:
        calm: dict[str, list[Run]] = {way: [] for way in WAYS}
        for _ in range(asked.runs):
            for way in WAYS:
                calm[way].append(_run(way, running, environ, lambda _: Fault.NONE))
        for way in WAYS:
            _print(way, calm[way], _run(way, running, environ, _drop_first_write()))


def _print(way: str, runs: list[Run], lost: Run) -> None:
    last = runs[-1]
    lines = (
        f"{way}: {_lines(WAYS[way])} lines",
        f"  {statistics.median(run.seconds for run in runs):.2f} s, median of {len(runs)}",
        f"  {statistics.median(run.processor_seconds for run in runs):.2f} s of processor time",
        f"  {last.requests} requests",
        f"  metadata afterwards: {dict(last.metadata)}; content type: {last.content_type}",
        f"  one answer lost: expected 2, found {lost.replicas}",
    )
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def _lines(script: Path) -> int:
    return sum(bool(line.strip()) and not line.startswith("#") for line in script.read_text().splitlines())


def _run(way: str, running: Azurite, environ: Mapping[str, str], decide: Callable[[Request], Fault]) -> Run:
    """Run one way over a fresh blob, through a proxy that counts."""
    seen: list[Request] = []

    def count(request: Request) -> Fault:
        seen.append(request)
        return decide(request)

    with (
        _blob(running) as blob,
        proxy.running(running.ports["blob"], count) as through,
        tempfile.TemporaryDirectory() as folder,
    ):
        text = re.sub(r"(BlobEndpoint=http://127\.0\.0\.1):\d+", rf"\1:{through.port}", running.connection_string)
        before, began = _processor_seconds(), time.monotonic()
        subprocess.run(
            [WAYS[way]], cwd=folder, check=True, stdout=subprocess.DEVNULL,
            env={**environ, "AZURE_STORAGE_CONNECTION_STRING": text, "AZGUARD_CACHE_DIR": folder},
        )  # fmt: skip
        seconds, processor = time.monotonic() - began, _processor_seconds() - before
        found = blob.get_blob_properties()
        content = json.loads(blob.download_blob().readall())
    metadata = {name: value for name, value in found.metadata.items() if name != "azguardlineage"}
    return Run(seconds, processor, len(seen), content["replicas"], metadata, found.content_settings.content_type)


@contextmanager
def _blob(running: Azurite) -> Iterator[Any]:
    """Make the blob that the job changes."""
    from azure.core.exceptions import ResourceExistsError
    from azure.storage.blob import BlobServiceClient, ContentSettings

    with BlobServiceClient.from_connection_string(running.connection_string) as service:
        try:
            service.create_container("same")
        except ResourceExistsError:
            pass
        blob = service.get_blob_client("same", "config.json")
        settings = ContentSettings(content_type=CONTENT_TYPE)
        blob.upload_blob(b'{"replicas": 1}', overwrite=True, metadata=METADATA, content_settings=settings)
        yield blob


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _drop_first_write() -> Callable[[Request], Fault]:
    left = [Fault.DROP]
    return lambda request: left.pop() if left and request.writes else Fault.NONE


if __name__ == "__main__":
    main()
