"""Reading a pipe: a signal ends the wait, or leaves it as it was, whenever it comes."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import BinaryIO

import pytest

from azguard.processes.signals import read_interruptibly, restore_handlers


class Told(Exception):
    """What the handler of the signal raises."""


@pytest.fixture
def pipe() -> Iterator[tuple[BinaryIO, int]]:
    reading, writing = os.pipe()
    with open(reading, "rb") as stream, restore_handlers(signal.SIGUSR1):
        yield stream, writing


def tell_main() -> None:
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)


def in_a_thread(*steps: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=lambda: [step() for step in steps])
    thread.start()
    return thread


def read_while_told(content: BinaryIO) -> bytes:
    in_a_thread(tell_main)
    return content.read()


def test_a_handler_that_raises_ends_the_wait(pipe: tuple[BinaryIO, int]) -> None:
    def raise_told(*_: object) -> None:
        raise Told

    stream, _ = pipe
    signal.signal(signal.SIGUSR1, raise_told)
    with read_interruptibly(stream) as content, pytest.raises(Told):
        read_while_told(content)


def test_a_handler_that_returns_loses_no_byte(pipe: tuple[BinaryIO, int]) -> None:
    stream, writing = pipe
    heard: list[int] = []
    signal.signal(signal.SIGUSR1, lambda number, _frame: heard.append(number))
    with read_interruptibly(stream) as content:
        thread = in_a_thread(
            lambda: os.write(writing, b"one "),
            tell_main,
            lambda: os.write(writing, b"two"),
            lambda: os.close(writing),
        )
        assert content.read() == b"one two"
    thread.join()
    assert heard == [signal.SIGUSR1]


def test_the_wakeup_of_before_is_put_back(pipe: tuple[BinaryIO, int]) -> None:
    with read_interruptibly(pipe[0]):
        pass
    assert signal.set_wakeup_fd(-1) == -1
