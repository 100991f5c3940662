"""A world for tests of ``file lock run``: real processes that lock files of a share through SMB."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from azure.storage.fileshare import ShareFileClient

from tests.support.cli_world import CliWorld
from tests.support.lock_world import Locks
from tests.support.smb_emulator import SmbEmulator


@dataclass
class FileLockWorld(Locks):
    """A share, and runs under locks of its files; ``container`` is the share."""

    def new(self) -> str:
        """Return the address of a file of no other test's, which is not there yet."""
        return f"{self.container}/{uuid.uuid4().hex[:12]}"


@dataclass(frozen=True)
class Share:
    """A share of its own, seen through REST too."""

    emulator: SmbEmulator
    name: str

    def file(self, address: str) -> ShareFileClient:
        """Return a client of a file."""
        return self.emulator.service.get_share_client(self.name).get_file_client(address.partition("/")[2])


def make_share(emulator: SmbEmulator) -> Share:
    """Return a new share."""
    name = f"t{uuid.uuid4().hex[:20]}"
    emulator.service.create_share(name)
    return Share(emulator, name)


@contextmanager
def file_locks(share: Share, folder: Path) -> Iterator[FileLockWorld]:
    """Yield a world of locked files, of whose runs nothing is left afterwards."""
    cli = CliWorld(folder, share.emulator.connection_string, share.emulator.environ)
    made = FileLockWorld(cli, share.name, verb=("file", "lock", "run"))
    try:
        yield made
    finally:
        made.end()
