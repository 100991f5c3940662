"""Pseudo-terminals, which a machine without ``/dev/pts`` does not have: there the tests that need one are not run."""

import os
import pty
from typing import NoReturn

import pytest


def open_terminal() -> tuple[int, int]:
    """Return the side that a person types on, and the side that a process has as its terminal."""
    try:
        return os.openpty()
    except OSError as error:
        _skip(error)


def fork_on_terminal() -> tuple[int, int]:
    """Return as ``pty.fork`` does: in the new process 0, in ours its pid; and our side of its terminal."""
    try:
        return pty.fork()
    except OSError as error:
        _skip(error)


def need_terminal() -> None:
    """Skip a test of what asks the machine for one itself."""
    for side in open_terminal():
        os.close(side)


def _skip(error: OSError) -> NoReturn:
    pytest.skip(f"not run here: no pseudo-terminal can be opened ({error}); is /dev/pts mounted?")
