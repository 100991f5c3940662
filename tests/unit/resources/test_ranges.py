"""Parts that jobs divide among themselves, and memory that is given back at once."""

import ctypes
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from queue import SimpleQueue
from threading import Lock

import pytest

from azguard.resources.ranges import Shares, return_large_blocks
from tests.support.cases import cases


@cases(("wanted", "found"), (None, 7), (100, 7), (3, 3), (1, 1), (0, 1))
def test_a_job_alone_gets_what_it_wants_and_no_more_than_there_is(wanted: int | None, found: int) -> None:
    with Shares(7).hold(wanted) as count:
        assert count == found


def test_the_next_job_gets_what_is_left() -> None:
    shares = Shares(7)
    with shares.hold(4), shares.hold(100) as count:
        assert count == 3


def test_a_job_that_fails_gives_its_parts_back() -> None:
    shares = Shares(7)
    with pytest.raises(ZeroDivisionError), shares.hold(None):
        raise ZeroDivisionError
    with shares.hold(None) as count:
        assert count == 7


def test_a_job_waits_for_two_parts() -> None:
    shares, got = Shares(7), SimpleQueue[int]()

    def hold() -> None:
        with shares.hold(5) as count:
            got.put(count)

    with ThreadPoolExecutor(1) as pool, ExitStack() as most:
        most.enter_context(shares.hold(5))
        with shares.hold(1):
            waiting = pool.submit(hold)
            with shares.hold(1) as last:
                pass
        waiting.result(60)
    assert (last, got.get()) == (1, 2)


def test_many_jobs_never_have_more_than_there_is_and_all_end() -> None:
    shares, lock, held, most = Shares(7), Lock(), [0], [0]

    def work(wanted: int) -> None:
        with shares.hold(wanted) as count:
            with lock:
                held[0] += count
                most[0] = max(most[0], held[0])
            with lock:
                held[0] -= count

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(work, [1, 9, 3, 2, 7, 5, 1, 1] * 50))
    assert (held[0], most[0] <= 7) == (0, True)


class Library:
    """Stands in for the C library, and keeps what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []

    def mallopt(self, what: int, value: int) -> int:
        self.asked.append((what, value))
        return 1


def test_blocks_of_a_megabyte_are_returned_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library()
    monkeypatch.setattr(ctypes, "CDLL", lambda _: library)
    return_large_blocks()
    assert library.asked == [(-3, 1024 * 1024)]


@pytest.mark.parametrize("library", [object(), None])
def test_a_library_that_cannot_is_left_alone(monkeypatch: pytest.MonkeyPatch, library: object) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: library)
    return_large_blocks()
