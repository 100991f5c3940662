"""Locked files, between two open files of one process, which the kernel keeps apart as it does processes."""

import os
from pathlib import Path

import pytest

from azguard.processes import locked_file


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "lock"


def test_a_lock_is_given_to_one_and_again_when_it_is_let_go(file: Path) -> None:
    handle = os.open(file, os.O_CREAT | os.O_RDWR)
    try:
        with locked_file.hold(file):
            while_held = locked_file.try_lock(handle)
        assert (while_held, locked_file.try_lock(handle)) == (False, True)
    finally:
        os.close(handle)


def test_a_lock_is_let_go_when_the_block_fails(file: Path) -> None:
    with pytest.raises(ZeroDivisionError), locked_file.hold(file):
        raise ZeroDivisionError
    with locked_file.hold(file, at_most_seconds=0):
        pass


def test_a_lock_is_waited_for_only_so_long(file: Path) -> None:
    with (
        locked_file.hold(file),
        pytest.raises(TimeoutError, match=r"kept it locked for 0\.05 seconds"),
        locked_file.hold(file, at_most_seconds=0.05),
    ):
        pytest.fail("both hold it")


def test_a_lock_file_that_cannot_be_made_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), locked_file.hold(tmp_path / "no" / "lock"):
        pytest.fail("it is held")
