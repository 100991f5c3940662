"""Where azguard keeps things on this machine, for this user alone.

What another user could have put there is never read, run or written: an Azurite to start, a record of the process to
end, a link to a file that is then overwritten.
"""

import errno
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from azguard.errors import ConfigError
from azguard.frozen import frozen

_OWNER_ALONE = 0o700
_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_ROOT = 0
#: The umask of the processes whose files are ours, such as the emulators.
UMASK = 0o077


@frozen
class Keeping:
    """One kind of what azguard keeps in the cache folder beside what the scopes have read."""

    kind: str
    #: Where it is below the cache folder. Each entry of a folder is an item; files that differ in their ending are one.
    folder: str
    purpose: str
    #: What ends it without a command of the cache.
    ends: str = "nothing"
    #: After how many days without a write ``cache prune`` deletes it; None is neither by that nor by ``cache clear``.
    days: int | None = 30
    #: Which entries of the folder are meant.
    pattern: str = "*"
    #: Whether it is what a person typed, or what tells the outcome of a write: it is nowhere else.
    is_only_copy: bool = False


UNSAVED = Keeping(
    kind="unsaved work",
    folder="kept",
    purpose="what was typed in an editor, or an update made, and could not be written",
    ends="the session of the editor that goes on with it and writes it",
    days=90,
    is_only_copy=True,
)
JOURNAL = Keeping(
    kind="update in doubt",
    folder="attempts",
    purpose="the write of an update that was killed, or whose outcome is unknown",
    ends="the next run with its key",
    days=90,
    is_only_copy=True,
)
PROCESS_LEASE = Keeping(
    kind="lease of a process",
    folder="process-leases",
    purpose="a lease without a term, which a killed process leaves behind",
    ends="the end of its process, or the next write to the same resource",
    days=90,
    is_only_copy=True,
)
HOLD = Keeping(
    kind="lock hold",
    folder="holds",
    purpose="a lock that is held across commands: its lease, its process and the log of that",
    ends="the next such lock, 30 days after this one was released or lost",
)
RUN = Keeping(
    kind="run of Terraform",
    folder="runs",
    purpose="a command under a lock of Terraform, by which the next one knows that it is over",
    ends="the end of the command, or the next one on the same state",
)
PROCESS_FILE = Keeping(
    kind="temporary file",
    folder="process-files",
    purpose="a temporary file in a share, which a killed process leaves behind",
    ends="the end of its process, or the next write in the same directory",
)
QUEUE = Keeping(
    kind="queue of writers",
    folder="queues",
    purpose="the order of the writers of one resource on this machine",
)
DAMAGED = Keeping(
    kind="damaged cache",
    folder="",
    purpose="a file of the cache that was damaged, and set aside",
    pattern="etags.db*.damaged*",
)
EMULATOR = Keeping(
    kind="emulator",
    folder="",
    purpose="Azurite as it was installed, and the logs, ports and shares of the emulator",
    ends="nothing; delete the folder while no emulator runs",
    days=None,
    pattern="emulator",
)
#: All kinds, the ones that are the only copy first.
KEPT = (UNSAVED, JOURNAL, PROCESS_LEASE, HOLD, RUN, PROCESS_FILE, QUEUE, DAMAGED, EMULATOR)


@frozen
class _Below:
    """A folder below that of the cache: where one kind is."""

    row: Keeping

    def __get__(self, folders: "Folders", _: type) -> Path:
        # A kind without a folder of its own has one entry.
        return folders.cache / (self.row.folder or self.row.pattern)


@frozen
class Folders:
    """The user's cache and configuration folders; nothing is created until it is written to."""

    cache: Path
    config: Path
    emulator = _Below(EMULATOR)
    queues = _Below(QUEUE)
    holds = _Below(HOLD)
    runs = _Below(RUN)
    process_leases = _Below(PROCESS_LEASE)
    process_files = _Below(PROCESS_FILE)
    attempts = _Below(JOURNAL)
    kept = _Below(UNSAVED)

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> "Folders":
        """Return the folders: ``AZGUARD_CACHE_DIR`` and ``AZGUARD_CONFIG_DIR``, else the platform's own.

        They are absolute: processes that azguard starts run in other folders.
        """
        cache, config = environ.get("AZGUARD_CACHE_DIR"), environ.get("AZGUARD_CONFIG_DIR")
        if not cache or not config:
            usual = _find_usual()
            cache, config = cache or usual[0], config or usual[1]
        return cls(Path(cache).absolute(), Path(config).absolute())

    def check(self) -> None:
        """Refuse the cache folder, or that of the emulator, if another user can have put something there.

        Raises:
            ConfigError: see ``check_own``.
        """
        check_own(self.cache)
        check_own(self.emulator)

    @property
    def profiles(self) -> Path:
        return self.config / "config.toml"


def _find_usual() -> tuple[str, str]:
    """Return the folders that a user of this platform expects, for the cache and for the configuration."""
    home = os.environ.get("HOME", "")
    if sys.platform != "linux" or "ANDROID_DATA" in os.environ or not os.path.isabs(home):
        import platformdirs

        settings = platformdirs.PlatformDirs("azguard", appauthor=False)
        try:
            return settings.user_cache_dir, settings.user_config_dir
        except RuntimeError as error:  # This user has neither HOME nor an entry in the list of users.
            raise ConfigError("the home folder is not known", reason="home_unknown") from error
    # The same, without the 4 ms of that import.
    given = {name: os.environ.get(f"XDG_{name}_HOME", "") for name in ("CACHE", "CONFIG")}
    found = [each if os.path.isabs(each) else f"{home}/.{name.lower()}" for name, each in given.items()]
    return f"{found[0]}/azguard", f"{found[1]}/azguard"


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


@contextmanager
def explain_unwritable(path: Path, *, reason: str | None = None) -> Iterator[None]:
    """Raise a ConfigError with this reason where the system does not let a file or folder be written."""
    try:
        yield
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror or error}", reason=reason) from error


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
