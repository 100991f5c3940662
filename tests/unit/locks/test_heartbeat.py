"""The file that is there as long as a lock is held."""

import os
from pathlib import Path

import pytest

from azguard.errors import ConfigError
from azguard.locks.heartbeat import Heartbeat


def test_a_device_or_a_pipe_is_neither_replaced_nor_removed(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    heartbeat = Heartbeat(pipe, print)
    with pytest.raises(ConfigError, match="not a regular file"):
        heartbeat.beat(60)
    heartbeat.stop()
    assert pipe.is_fifo()
