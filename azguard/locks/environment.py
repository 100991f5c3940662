"""The variables that tell of locks: what ``lock run`` puts into its command's environment, and ``lock hold`` into that
of the steps that follow.
"""

import os
import shlex
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from azguard.accounts.account import Target
from azguard.cache import scope
from azguard.errors import ConfigError
from azguard.frozen import frozen

LOCK = "AZGUARD_LOCK"
LEASE_ID = "AZGUARD_LEASE_ID"
FENCE = "AZGUARD_FENCE"
ENDPOINT = "AZGUARD_LOCK_ENDPOINT"
#: Of a lock that no process around us holds: the term of its lease in seconds, else empty.
DURATION = "AZGUARD_LOCK_DURATION"
#: The files that are locked around a command through SMB, as JSON: see ``smb/environment``.
FILE_LOCKS = "AZGUARD_FILE_LOCKS"
_GITHUB = "GITHUB_ENV"


@frozen
class OuterLock:
    """A lock that is held around us."""

    lease_id: str
    fence: int
    #: The term of the lease in seconds; None if the ``lock run`` around us ends us when it is lost.
    seconds: int | None = None


class LockLine(NamedTuple):
    """One line of each of the variables: a lock that is held."""

    lock: str
    endpoint: str
    lease_id: str
    fence: str
    duration: str = ""


_COLUMNS = (LOCK, ENDPOINT, LEASE_ID, FENCE, DURATION)


def is_under_lock(environ: Mapping[str, str]) -> bool:
    """Return whether a lock of any kind is held around us."""
    return LOCK in environ or FILE_LOCKS in environ


def export_locks(held: Sequence[tuple[Target, str, int]]) -> dict[str, str]:
    """Return the variables that tell a command its locks: target, lease id and fence of each, a line each."""
    return export_lines(
        [LockLine(str(target.address), target.endpoint, lease, str(fence)) for target, lease, fence in held]
    )


def export_lines(lines: Sequence[LockLine]) -> dict[str, str]:
    """Return the variables that tell of these locks."""
    return {name: "\n".join(line[index] for line in lines) for index, name in enumerate(_COLUMNS)}


def read_lines(environ: Mapping[str, str]) -> list[LockLine]:
    """Return the locks that the variables tell of; none where they contradict each other."""
    if not environ.get(LOCK):
        return []
    columns = [environ.get(name, "").split("\n") for name in _COLUMNS]
    if len(columns[-1]) != len(columns[0]):
        columns[-1] = [""] * len(columns[0])
    if len({len(column) for column in columns}) != 1:
        return []
    return [LockLine(*words) for words in zip(*columns, strict=True)]


def find_outer_lock(target: Target, environ: Mapping[str, str]) -> OuterLock | None:
    """Return the lock that a ``lock run`` or a ``lock hold`` around us says it holds on a resource."""
    for line in read_lines(environ):
        is_it = (line.lock, line.endpoint) == (str(target.address), target.endpoint)
        if is_it and line.lease_id and line.fence.isdecimal():
            return OuterLock(line.lease_id, int(line.fence), int(line.duration) if line.duration.isdecimal() else None)
    return None


def find_lease_id(target: Target, environ: Mapping[str, str]) -> str | None:
    """Return the id of the lease that a ``lock run`` or ``lock hold`` around us says it holds on a resource."""
    found = find_outer_lock(target, environ)
    return None if found is None else found.lease_id


@frozen
class StepVariables:
    """Where later steps find their variables."""

    #: A file of lines for a shell; None is none.
    file: Path | None
    #: The file that GITHUB_ENV names.
    github: Path | None
    #: Whether the agent of Azure Pipelines reads logging commands: it does, from both streams of a step.
    is_azure_pipelines: bool
    #: The CI job that this is: see ``scope``; None if it is none.
    job: str | None
    #: Writes a command for the agent to a stream that it reads.
    write_command: Callable[[str], None]

    @classmethod
    def of(cls, named: str | None, environ: Mapping[str, str], write_command: Callable[[str], None]) -> "StepVariables":
        """Return where they go.

        Raises:
            ConfigError: a file cannot be written.
        """
        github = Path(environ[_GITHUB]) if environ.get(_GITHUB) else None
        file = None if named is None else Path(named)
        # Its format is GitHub's, under either name.
        is_same = file is not None and github is not None and os.path.realpath(file) == os.path.realpath(github)
        file = None if is_same else file
        found = cls(file, github, scope.is_azure_pipelines(environ), scope.find_job(environ), write_command)
        for path in found.paths:
            _append(path, "")
        return found

    @property
    def paths(self) -> list[Path]:
        return [path for path in (self.file, self.github) if path is not None]

    def is_of_step(self, lease_id: str, job: str | None) -> bool:
        """Return whether a lease was left by this step, or by this job."""
        return scope.is_same_job(job, self.job) or (self.github is not None and lease_id.encode() in _read(self.github))

    def is_in_file(self, lease_id: str) -> bool:
        """Return whether a lease was left in the file that was named, by this step or by any before."""
        return self.file is not None and lease_id.encode() in _read(self.file)

    def write(self, variables: Mapping[str, str]) -> tuple[str, ...]:
        """Leave variables, and return where.

        Raises:
            ConfigError: a file cannot be written.
        """
        where = []
        if self.file is not None:
            _append(self.file, "".join(f"{name}={shlex.quote(value)}\n" for name, value in variables.items()))
            where.append(str(self.file))
        if self.github is not None:
            _append(self.github, "".join(_format_for_github(*each) for each in variables.items()))
            where.append(_GITHUB)
        if self.is_azure_pipelines:
            for name, value in variables.items():
                self.write_command(f"##vso[task.setvariable variable={name}]{_escape(value)}\n")
            where.append("azure-pipelines")
        return tuple(where)


def _format_for_github(name: str, value: str) -> str:
    if "\n" not in value:
        return f"{name}={value}\n"
    # A value cannot end this by itself.
    end = f"azguard-{uuid.uuid4().hex}"
    return f"{name}<<{end}\n{value}\n{end}\n"


def _escape(value: str) -> str:
    return value.replace("%", "%AZP25").replace("\r", "%0D").replace("\n", "%0A")


def _read(path: Path) -> bytes:
    try:
        # What is no file, such as a pipe, would be waited for.
        return path.read_bytes() if path.is_file() else b""
    except OSError:
        return b""


def _append(path: Path, text: str) -> None:
    try:
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(opened, text.encode())
        finally:
            os.close(opened)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}", reason="env_file_not_written") from error
