"""The locks of a job, as later steps shall find them: those that the environment tells, and those of the same step.

A step does not see the variables that it leaves itself. A second ``lock hold`` in it, or a release of one of two locks,
would so wipe out what the first has left.
"""

import os
import shlex
import sys
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from azguard import ci_jobs
from azguard.cli.context import Environment
from azguard.cli.input import values
from azguard.cli.output.stream import MessageStream
from azguard.errors import ConfigError
from azguard.leases.actions import LONGEST
from azguard.locks import environment, job_locks
from azguard.locks.environment import LockLine
from azguard.locks.hold_records import HoldRecord, HoldRecords, JobScope
from azguard.locks.lock_blobs import LockRequest

_GITHUB = "GITHUB_ENV"


@dataclass(frozen=True)
class StepVariables:
    """Where later steps find their variables."""

    #: A file of lines for a shell; None is none.
    file: Path | None
    #: The file that GITHUB_ENV names.
    github: Path | None
    #: Whether the agent of Azure Pipelines reads logging commands: it does, from both streams of a step.
    is_azure_pipelines: bool
    #: The CI job that this is: see ``ci_jobs``; None if it is none.
    job: str | None = None

    @classmethod
    def of(cls, named: str | None, environ: Mapping[str, str]) -> "StepVariables":
        """Return where they go.

        Raises:
            ConfigError: a file cannot be written.
        """
        text = values.not_empty(named, "--env-file")
        github = Path(environ[_GITHUB]) if environ.get(_GITHUB) else None
        file = None if text is None else Path(text)
        # Its format is GitHub's, by whatever name it is given.
        file = None if file is not None and github is not None and _same(file, github) else file
        found = cls(file, github, ci_jobs.is_azure_pipelines(environ), ci_jobs.find_job(environ))
        for path in found.paths:
            _append(path, "")
        return found

    @property
    def paths(self) -> list[Path]:
        """Return the files."""
        return [path for path in (self.file, self.github) if path is not None]

    def is_of_step(self, lease_id: str, job: str | None) -> bool:
        """Return whether a lease was left by this step, or by this job."""
        return ci_jobs.is_same(job, self.job) or (self.github is not None and lease_id.encode() in _read(self.github))

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
                # Not on stdout, which a script may read; --quiet does not silence it, since it is no message.
                _command(f"##vso[task.setvariable variable={name}]{_escape(value)}\n")
            sys.stderr.flush()
            where.append("azure-pipelines")
        return tuple(where)


def _format_for_github(name: str, value: str) -> str:
    if "\n" not in value:
        return f"{name}={value}\n"
    # A value cannot end this by itself.
    end = f"azguard-{uuid.uuid4().hex}"
    return f"{name}<<{end}\n{value}\n{end}\n"


def _command(text: str) -> None:
    write = sys.stderr.write_command if isinstance(sys.stderr, MessageStream) else sys.stderr.write
    write(text)


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
        raise ConfigError(
            f"{path} cannot be written: {error.strerror}", hint="name a file that can be written"
        ) from error


def _same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def holds_of(env: Environment) -> HoldRecords:
    """Return the records on this machine of locks that are held beyond one command."""
    return HoldRecords(env.folders.holds.absolute())


def own_of(env: Environment) -> JobScope:
    """Return whose holds this run may act on."""
    return JobScope(env.scope, env.job)


def refuse_own(env: Environment, request: LockRequest, wait: float) -> None:
    """Refuse a lock that this job holds already; see ``job_locks.refuse_own``."""
    job_locks.refuse_own(request, wait, holds_of(env), own_of(env), env.deadline.fresh())


def list_lines(environ: Mapping[str, str], variables: StepVariables, holds: HoldRecords) -> list[LockLine]:
    """Return the locks that later steps find now: of each lock, what was left last."""
    around = environment.read_lines(environ)
    # A shell may still have the variables of a lock that was released, or whose loss was told.
    found = {line.lock: line for line in around if not ((hold := holds.find(line.lease_id)) and hold.is_over)}
    ids = {line.lease_id for line in around}
    for hold in holds.list_unreleased():
        if hold.lease_id not in ids and _is_told(hold, variables):
            found[hold.address] = describe(hold)
    return list(found.values())


def _is_told(hold: HoldRecord, variables: StepVariables) -> bool:
    # One that was lost counts too: the steps that follow have to know. A file may be of a job that is long over, or of
    # one that runs beside this one.
    in_file = hold.is_kept and ci_jobs.is_own(hold.job, variables.job) and variables.is_in_file(hold.lease_id)
    return in_file or variables.is_of_step(hold.lease_id, hold.job)


def describe(hold: HoldRecord) -> LockLine:
    """Return the line about a lock that later steps read."""
    duration = LONGEST if hold.seconds is None else hold.seconds
    return LockLine(hold.address, hold.endpoint, hold.lease_id, str(hold.fence), str(duration))


def add(lines: list[LockLine], hold: HoldRecord) -> dict[str, str]:
    """Return the variables of these locks and of one more."""
    return environment.export_lines([*(line for line in lines if line.lock != hold.address), describe(hold)])
