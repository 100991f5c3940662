"""A lock file that one process at a time holds."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from azguard.errors import ConfigError


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold a lock file that only one process at a time can hold; wait for it, and let go however we end.

    Raises:
        ConfigError: the file cannot be written.
    """
    import fcntl

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = open(path, "a", encoding="utf-8")  # noqa: SIM115  (closed below, outside the except)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}", reason="lock_file_not_writable") from error
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
