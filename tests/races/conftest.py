"""What the races share: an emulator that no other test has filled."""

from collections.abc import Iterator

import pytest

from azguard.emulators.azurite_process import Azurite
from tests.support import azurites


@pytest.fixture(scope="session")
def race_azurite() -> Iterator[Azurite]:
    """Run an Azurite for the races of one worker: the more writes an Azurite has seen, the longer it pauses."""
    with azurites.fresh() as running:
        yield running


@pytest.fixture
def seed(pytestconfig: pytest.Config) -> str:
    """Return the seed of this run of the suite: given, or random and printed in the header."""
    return str(pytestconfig.getoption("--race-seed"))
