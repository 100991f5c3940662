"""Reading and waiting: a signal ends it, or leaves it as it was, whenever it comes."""

import os
import resource
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

from azguard.processes import signals
from azguard.processes.signals import read_interruptibly, restore_handlers, wait_readable


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


def test_what_can_be_read_is_told_by_what_was_given() -> None:
    first, second = os.pipe(), os.pipe()
    os.write(second[1], b"x")

    assert wait_readable([first[0], second[0]], 5) == [second[0]]
    for each in (*first, *second):
        os.close(each)


def test_nothing_is_told_when_the_time_is_over_and_an_end_counts_as_readable() -> None:
    reading, writing = os.pipe()
    before = wait_readable([reading], 0.01)
    os.close(writing)

    assert (before, wait_readable([reading], 5)) == ([], [reading])
    os.close(reading)


def test_a_descriptor_from_1024_on_is_waited_for() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2048:
        pytest.skip("this machine lets no process have so many files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    reading, writing = os.pipe()
    high = os.dup2(reading, 2000)
    os.write(writing, b"x")

    assert wait_readable([high], 5) == [high]
    for each in (reading, writing, high):
        os.close(each)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_signal_while_it_is_made_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make = tempfile.mkdtemp

    def make_and_interrupt(*_: object) -> str:
        made = make(dir=tmp_path)
        signal.raise_signal(signal.SIGINT)
        return made

    monkeypatch.setattr(tempfile, "mkdtemp", make_and_interrupt)
    with pytest.raises(KeyboardInterrupt), signals.hold_temporary_folder("x-"):
        pytest.fail("the signal was lost")
    assert list(tmp_path.iterdir()) == []


def test_it_ends_with_its_block() -> None:
    with signals.hold_temporary_folder("azguard-test-") as folder:
        assert (Path(folder).name[:13], Path(folder).is_dir()) == ("azguard-test-", True)
    assert not Path(folder).exists()
