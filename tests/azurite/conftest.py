"""What the tests of this folder start with."""

import pytest

from tests.support.cli_world import CliWorld


@pytest.fixture
def cli(cli: CliWorld) -> CliWorld:
    """Return the private folder with a cache in it: each of these thousands of tests would have to make one."""
    return cli.with_cache()
