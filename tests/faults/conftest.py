"""An Azurite of its own for the matrix of faults: thousands of blob writes slow one down."""

import os
from collections.abc import Iterator

import pytest

from azguard.emulators import azurite as emulator
from azguard.emulators.state import Azurite
from azguard.folders import Folders


@pytest.fixture(scope="session")
def storage() -> Iterator[Azurite]:
    """Run an Azurite in memory on free ports, for the matrix."""
    with emulator.private(Folders.of(os.environ).emulator, os.environ) as running:
        yield running
