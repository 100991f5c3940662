"""A temporary folder that a signal does not leave behind."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from azguard.processes.signals import hold_back_interruptions


@contextmanager
def hold(prefix: str) -> Iterator[str]:
    """Make a temporary folder for the length of a ``with`` block and return its path.

    A signal that comes while it is being made waits until it can be deleted.
    """
    import tempfile

    with ExitStack() as stack:
        with hold_back_interruptions():
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix=prefix))
        yield folder
