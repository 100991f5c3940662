"""A write that was not sent, because what has to be read before it could not be."""

from collections.abc import Iterator
from contextlib import contextmanager

from azguard.errors import AzguardError


class NotSent(Exception):  # it is no error by itself: it says of one when it came
    """An error that came before anything was sent."""

    def __init__(self, error: AzguardError) -> None:
        super().__init__(error.message)
        self.error = error


@contextmanager
def look_first() -> Iterator[None]:
    """Make reads that come before a write: where one fails, the write was not sent.

    Raises:
        NotSent: one failed.
    """
    try:
        yield
    except AzguardError as error:
        raise NotSent(error) from error
