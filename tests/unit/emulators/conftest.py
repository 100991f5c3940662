"""An emulator of Files for each test, without a socket."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.files_emulator import FilesEmulator


@pytest.fixture
def files(tmp_path: Path) -> Iterator[FilesEmulator]:
    found = FilesEmulator(tmp_path)
    yield found
    found.close()
