"""One share for the tests of this folder, and a private world for each."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.file_lock_world import FileLockWorld, Share, file_locks, make_share
from tests.support.smb_emulator import SmbEmulator


@pytest.fixture(scope="module")
def share(smb_emulator: SmbEmulator) -> Share:
    return make_share(smb_emulator)


@pytest.fixture
def world(share: Share, tmp_path: Path) -> Iterator[FileLockWorld]:
    with file_locks(share, tmp_path) as made:
        yield made
