"""Make builds reproducible: one commit gives the same sdist and wheel, in any folder, at any time, by any user.

All else about the package is in pyproject.toml.
"""

import gzip
import os
import subprocess
import tarfile
from pathlib import Path
from typing import Any

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.sdist import sdist

HERE = Path(__file__).parent


def _when() -> str:
    """Return when the commit was made; in an sdist, whose files all have that time, the time of a file."""
    if (HERE / ".git").exists():
        git = ["git", "-C", str(HERE), "log", "-1", "--format=%ct"]
        try:
            return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
        except (OSError, subprocess.CalledProcessError):
            pass  # There is no git, or the checkout belongs to another user.
    return str(int((HERE / "pyproject.toml").stat().st_mtime))


def _mode(mode: int) -> int:
    """Return the mode of a file as git keeps it, whatever the umask of the checkout was."""
    return 0o755 if mode & 0o100 else 0o644


class ReproducibleSdist(sdist):
    """An sdist without the user, the umask, the time and the order of the folder."""

    def make_archive(self, base_name: str, format: str, root_dir: Any = None, base_dir: Any = None, **_: Any) -> str:  # noqa: A002
        when = int(os.environ["SOURCE_DATE_EPOCH"])

        def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.mode, member.mtime = _mode(member.mode), when
            return member

        files = sorted(path for path in Path(base_dir).rglob("*") if path.is_file())
        with (
            open(f"{base_name}.tar.gz", "wb") as file,
            gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=when) as zipped,
            tarfile.open(fileobj=zipped, mode="w", dereference=True) as archive,
        ):
            for path in files:
                archive.add(path, filter=plain)
        return file.name


class ReproducibleWheel(bdist_wheel):
    """A wheel without the umask; setuptools leaves out the rest, given SOURCE_DATE_EPOCH."""

    def write_wheelfile(self, *args: Any, **options: Any) -> None:
        super().write_wheelfile(*args, **options)
        for path in Path(self.bdist_dir).rglob("*"):
            if path.is_file():
                path.chmod(_mode(path.stat().st_mode))


os.environ.setdefault("SOURCE_DATE_EPOCH", _when())
setup(cmdclass={"sdist": ReproducibleSdist, "bdist_wheel": ReproducibleWheel})
