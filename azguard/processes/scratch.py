"""A private file for another program to edit: in a folder of its own, which only its owner may enter.

The folder holds what the program writes beside the file, too, such as a backup. The file is read by its name when the
program has ended, because many programs put a new file in the place of the old one.
"""

import os
import re
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from azguard.errors import TransformFailed

# A name may have 255 bytes; a character may take four of them.
_NAME_CHARACTERS = 60
_MODE = 0o600


@dataclass(frozen=True)
class ScratchFile:
    """A file in a private folder."""

    path: Path

    @classmethod
    def make(cls, name: str, content: bytes, folder: Path | None = None) -> "ScratchFile":
        """Write content to a new file in a new folder inside ``folder``, by default the temporary one.

        ``name`` is for people and for programs that look at its end; any text will do.

        Raises:
            TransformFailed: it cannot be written.
        """
        made = None
        try:
            made = Path(tempfile.mkdtemp(prefix="azguard-", dir=folder))
            path = made / choose_name(name)
            path.touch(_MODE)
            path.write_bytes(content)
        except OSError as error:
            if made is not None:
                shutil.rmtree(made, ignore_errors=True)
            raise TransformFailed(
                f"the private copy of the content cannot be written: {error.strerror}", reason="scratch_not_written"
            ) from None
        return cls(path)

    def read(self, most_bytes: int) -> bytes:
        """Return what is in the file now.

        Raises:
            TransformFailed: it is gone, is no regular file, cannot be read, or is too large.
        """
        try:
            # Neither a link out of the folder nor a pipe without a writer.
            handle = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            raise TransformFailed("the file is gone; nothing was written", reason="scratch_gone") from None
        except OSError as error:
            what = "is a symbolic link now" if self.path.is_symlink() else f"cannot be read: {error.strerror}"
            raise TransformFailed(f"the file {what}; nothing was written", reason="scratch_not_readable") from None
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_size > most_bytes:
            os.close(handle)
            what = "is no regular file any more" if found.st_size <= most_bytes else f"has more than {most_bytes} bytes"
            raise TransformFailed(f"the file {what}; nothing was written", reason="scratch_not_readable")
        with open(handle, "rb") as stream:
            return stream.read()

    def stamp(self) -> tuple[int, int]:
        """Return what differs after the file was written, in place or anew; 0 and 0 if there is none."""
        try:
            found = os.lstat(self.path)
        except OSError:
            return 0, 0
        return found.st_ino, found.st_mtime_ns

    def write(self, content: bytes) -> None:
        """Put other content into the file.

        Raises:
            TransformFailed: it cannot be written.
        """
        try:
            self.path.write_bytes(content)
        except OSError as error:
            raise TransformFailed(f"{self.path} cannot be written: {error.strerror}") from None

    def remove(self) -> None:
        """Delete the folder with all that is in it, as far as that is possible."""
        shutil.rmtree(self.path.parent, ignore_errors=True)


def choose_name(text: str) -> str:
    """Return the last part of a name as the name of a file, with the suffix by which programs know its format."""
    base = re.sub(r"[^\w.+=@%,~ -]", "_", text.rpartition("/")[2])
    if len(base) > _NAME_CHARACTERS:
        suffix = os.path.splitext(base)[1][-_NAME_CHARACTERS // 2 :]
        base = base[: _NAME_CHARACTERS - len(suffix)] + suffix
    # Neither hidden, nor taken for an option where it is typed without its folder.
    return base if base.strip(". ") and not base.startswith("-") else f"content{base.strip('. ')}"
