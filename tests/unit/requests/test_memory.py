"""Memory that is given back to the system at once, where the C library can do that."""

import ctypes

import pytest

from azguard.requests.delivery import return_large_blocks


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
