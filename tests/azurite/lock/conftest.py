"""What the tests of locks start with."""

from collections.abc import Iterator

import pytest

from tests.support.cli_world import CliWorld
from tests.support.lock_world import Locks, locks


@pytest.fixture
def world(cli: CliWorld) -> Iterator[Locks]:
    with locks(cli) as made:
        yield made
