"""What the tests of this folder start with."""

import pytest

from azguard.blobs.content import put_blob
from tests.support.blob_world import LARGE
from tests.support.cli_world import CliWorld


@pytest.fixture
def cli(cli: CliWorld) -> CliWorld:
    """Return the private folder with a cache in it: each of these thousands of tests would have to make one."""
    return cli.with_cache()


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let blobs above 64 KiB go as blocks, not above 8 MiB: the same way, with a hundredth of the work."""
    monkeypatch.setattr(put_blob, "SINGLE_BYTES", LARGE - 1)
    monkeypatch.setattr(put_blob, "BLOCK_BYTES", LARGE // 2)


@pytest.fixture
def site(cli: CliWorld) -> str:
    """Return a new container, which another tool has made."""
    return cli.container()
