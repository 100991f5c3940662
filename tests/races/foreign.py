"""Writers that are not azguard: they know nothing of a lineage, and are careful not to lose a count."""

import random
import threading
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from azguard.accounts import account
from azguard.accounts.endpoints import EMULATOR_KEY
from tests.races.job import CONTAINER, COUNT, LINES
from tests.races.log import FOREIGN

if TYPE_CHECKING:
    from azure.storage.blob import BlobClient

KEEPS, WIPES = "keeps metadata", "wipes metadata"
_PAUSE_SECONDS = (0.05, 0.4)


class Foreigner:
    """A writer with the SDK, in a thread; writes only while it is asked to."""

    def __init__(self, seed: str, port: int, kinds: tuple[str, ...], active: Callable[[], bool]) -> None:
        self._dice, self._port, self._kinds, self._active = random.Random(seed), port, kinds, active
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, name="foreigner")
        self.counts: Counter[str] = Counter()

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def end(self) -> None:
        """Finish the write at hand."""
        self._over.set()
        self._thread.join()

    def _work(self) -> None:
        while not self._over.wait(self._dice.uniform(*_PAUSE_SECONDS)):
            if not self._active():
                continue
            kind, name = self._dice.choice(self._kinds), self._dice.choice((COUNT, COUNT, LINES))
            client = blob(self._port, name, f"{FOREIGN}.{kind.split()[0]}")
            self.counts[kind] += (_keep if kind == KEEPS else _wipe)(client, self._dice)


def blob(port: int, name: str, run: str) -> "BlobClient":
    """Return the SDK's client of a blob of the race, for a process of that name, without retries."""
    from azure.storage.blob import BlobClient

    endpoint = account.emulator({"blob": port}).endpoint("blob")
    return BlobClient(endpoint, CONTAINER, name, credential=EMULATOR_KEY, retry_total=0, user_agent=f"race/{run}")


def _keep(client: "BlobClient", dice: random.Random) -> bool:
    """Make a new version that keeps content and metadata, lineage included: by rewriting it, or by its headers."""
    return _rewritten(client, keeps=True) if dice.random() < 0.5 else _touched(client, client.set_http_headers)


def _wipe(client: "BlobClient", dice: random.Random) -> bool:
    """Make a new version that keeps the content and loses the metadata; with a condition or without."""
    return _rewritten(client, keeps=False) if dice.random() < 0.5 else _touched(client, client.set_blob_metadata)


def _rewritten(client: "BlobClient", *, keeps: bool) -> bool:
    from azure.core import MatchConditions
    from azure.core.exceptions import AzureError

    try:
        found = client.download_blob()
        content = found.readall()
        metadata = found.properties.metadata if keeps else None
        client.upload_blob(
            content,
            overwrite=True,
            metadata=metadata,
            etag=found.properties.etag,
            match_condition=MatchConditions.IfNotModified,
        )
    except AzureError:
        return False  # Another was faster, or holds a lease: it tries again another time.
    return True


def _touched(client: "BlobClient", write: Callable[[], object]) -> bool:
    from azure.core.exceptions import AzureError

    try:
        write()
    except AzureError:
        return False
    return True
