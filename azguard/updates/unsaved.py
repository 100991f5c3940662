"""Content that could not be written, saved to a file."""

import os
import re
import tempfile
from datetime import datetime
from pathlib import Path

from azguard.accounts.target import Target
from azguard.atomic_files import write_atomically
from azguard.errors import ConfigError
from azguard.folders import make_private

# A file's name may have 255 bytes; what follows the address's last characters takes few of them.
_ADDRESS_CHARACTERS = 80
# No two files of one second have the same name.
_RANDOM_BYTES = 4


def save_unwritten_content(folder: Path, target: Target, content: bytes, now: datetime) -> Path | None:
    """Write content to a new file that only its owner reads; return its path.

    The file is in ``folder``, or in the temporary folder if that fails; None if that fails too.
    """
    address = re.sub(r"[^A-Za-z0-9._-]+", "-", target.address.short)[-_ADDRESS_CHARACTERS:]
    name = f"{now:%Y%m%dT%H%M%S}-{os.urandom(_RANDOM_BYTES).hex()}-{address}"
    return _try_to_write(folder, name, content) or _try_to_write(None, name, content)


def _try_to_write(folder: Path | None, name: str, content: bytes) -> Path | None:
    """Write a new file in a folder, or in the temporary one; return its path, or None if that fails."""
    try:
        if folder is not None:
            make_private(folder)
        path = (folder or Path(tempfile.gettempdir())) / name
        write_atomically(path, content, 0o600)
    except (OSError, ConfigError):
        return None
    return path
