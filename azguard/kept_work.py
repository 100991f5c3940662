"""Work that could not be written, kept in a file."""

import os
import re
import tempfile
from datetime import datetime
from pathlib import Path

from azguard.account import Target


def keep(folder: Path, target: Target, content: bytes, now: datetime) -> Path | None:
    """Write content to a new file of the user's own and return its path, or None if that fails too."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", target.address.short)[-80:]
    for place in (folder, Path(tempfile.gettempdir())):
        try:
            place.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle, path = tempfile.mkstemp(dir=place, prefix=f"{now:%Y%m%dT%H%M%S}-", suffix=f"-{name}")
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
        except OSError:
            continue
        return Path(path)
    return None
