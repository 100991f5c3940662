"""Where azguard keeps things on this machine, for this user alone.

What another user could have put there is never read, run or written: an Azurite to start, a record of the process to
end, a link to a file that is then overwritten.
"""

import errno
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from azguard.errors import ConfigError

_OWNER_ALONE = 0o700
_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_ROOT = 0
#: The umask of the processes whose files are ours, such as the emulators.
UMASK = 0o077


class Folders(NamedTuple):
    """The user's cache and configuration folders; nothing is created until it is written to."""

    cache: Path
    config: Path

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> "Folders":
        """Return the folders: ``AZGUARD_CACHE_DIR`` and ``AZGUARD_CONFIG_DIR``, else the platform's own.

        They are absolute: processes that azguard starts run in other folders.
        """
        cache, config = environ.get("AZGUARD_CACHE_DIR"), environ.get("AZGUARD_CONFIG_DIR")
        if not cache or not config:
            import platformdirs

            cache = cache or platformdirs.user_cache_dir("azguard", appauthor=False)
            config = config or platformdirs.user_config_dir("azguard", appauthor=False)
        return cls(Path(cache).absolute(), Path(config).absolute())

    def check(self) -> None:
        """Refuse the cache folder, or that of the emulator, if another user can have put something there.

        Raises:
            ConfigError: see ``check_own``.
        """
        check_own(self.cache)
        check_own(self.emulator)

    @property
    def emulator(self) -> Path:
        """Return the folder of the emulator's state file, log and installation."""
        return self.cache / "emulator"

    @property
    def queues(self) -> Path:
        """Return the folder of the host-local queues of writers."""
        return self.cache / "queues"

    @property
    def holds(self) -> Path:
        """Return the folder of the locks that are held beyond one command."""
        return self.cache / "holds"

    @property
    def runs(self) -> Path:
        """Return the folder of the runs of Terraform under way."""
        return self.cache / "runs"

    @property
    def process_leases(self) -> Path:
        """Return the folder of the leases without a term that end with their processes."""
        return self.cache / "process-leases"

    @property
    def process_files(self) -> Path:
        """Return the folder of the temporary files that end with their processes."""
        return self.cache / "process-files"

    @property
    def attempts(self) -> Path:
        """Return the folder of writes under way, for the next run with the same key."""
        return self.cache / "attempts"

    @property
    def kept(self) -> Path:
        """Return the folder of work kept when an update had to give up."""
        return self.cache / "kept"

    @property
    def profiles(self) -> Path:
        """Return the file of profiles."""
        return self.config / "config.toml"


def make_private(folder: Path, environ: Mapping[str, str] = os.environ) -> None:
    """Make a folder of azguard's own as ``make_folder`` does, and refuse one that is there as ``check_own`` does."""
    make_folder(folder, environ)
    check_own(folder)


def make_folder(folder: Path, environ: Mapping[str, str] = os.environ) -> None:
    """Make a folder, and each missing one above it, for this user alone, whatever the umask.

    Raises:
        ConfigError: it would lock out the user who typed ``sudo``.
        OSError: it cannot be made.
    """
    missing: list[Path] = []
    for each in (folder, *folder.parents):
        if os.path.lexists(each):
            _refuse_under_sudo(each if missing else None, environ)
            break
        missing.append(each)
    for each in reversed(missing):
        with suppress(FileExistsError):
            each.mkdir(_OWNER_ALONE)
    if not folder.is_dir():
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(folder))


def check_own(path: Path) -> None:
    """Refuse a file or folder that another user can have put there, or changed; what is missing is fine.

    Raises:
        ConfigError: its owner is another user, others may write to it, or it is a symbolic link.
    """
    if os.name != "posix":
        return
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return
    values = {"path": str(path)}
    if stat.S_ISLNK(found.st_mode):
        real = os.path.realpath(path)
        raise ConfigError(f"{path} is a symbolic link", reason="own_is_link", values={"real": real})
    if found.st_uid not in (os.geteuid(), _ROOT):
        who = _name_user(found.st_uid)
        raise ConfigError(f"{path} belongs to another user ({who})", reason="own_of_another", values=values)
    if found.st_mode & _BY_OTHERS:
        raise ConfigError(f"{path} can be written by other users", reason="own_open_to_others", values=values)


def open_private(path: Path) -> BinaryIO:
    """Open an empty file to be written and read by this user alone; never what a link names.

    Raises:
        ConfigError: see ``check_own``.
        OSError: it cannot be made.
    """
    check_own(path)
    file = open(path, "w+b", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW, 0o600))  # noqa: SIM115  # its user closes it
    os.fchmod(file.fileno(), 0o600)
    return file


def _refuse_under_sudo(above: Path | None, environ: Mapping[str, str]) -> None:
    """Refuse to make a folder of root's inside one of the user who typed ``sudo``."""
    typed_by = environ.get("SUDO_UID", "")
    if above is None or not typed_by.isdecimal() or os.name != "posix" or os.geteuid() != _ROOT:
        return
    owner = os.stat(above).st_uid
    if owner != _ROOT and owner == int(typed_by):
        raise ConfigError(f"{above} belongs to {_name_user(owner)}, and this runs as root", reason="own_of_sudo")


def _name_user(number: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"number {number}"
