"""Work that could not be written, kept in a file."""

import os
import re
import tempfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from azguard.accounts.target import Target


def save_unwritten_content(folder: Path, target: Target, content: bytes, now: datetime) -> Path | None:
    """Write content to a new file of the user's own and return its path, or None if that fails too."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", target.address.short)[-80:]
    begin = f"{now:%Y%m%dT%H%M%S}-"
    return _written(lambda: folder, begin, f"-{name}", content) or _written(
        lambda: Path(tempfile.gettempdir()), begin, f"-{name}", content
    )


def _written(place: Callable[[], Path], begin: str, end: str, content: bytes) -> Path | None:
    """Write the content to a new file in a folder, whole or not at all."""
    path = None
    try:
        folder = place()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, path = tempfile.mkstemp(dir=folder, prefix=begin, suffix=end)
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
    except OSError:
        if path is not None:
            os.unlink(path)
        return None
    return Path(path)
