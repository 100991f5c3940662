"""The locks of a job, as its later steps shall find them: those that the environment tells, and those of the same step.

A step does not see the variables that it leaves itself. A second ``lock hold`` in it, or a release of one of two locks,
would so wipe out what the first has left.
"""

import os
import shlex
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from azguard import ci_jobs
from azguard.errors import AzguardError, ConfigError, GaveUp, LockLost, UsageError
from azguard.leases.actions import LONGEST
from azguard.leases.recorded import LeaseRecords
from azguard.locks import background_holder, environment, job_locks, queue, readers
from azguard.locks.background_holder import HoldPlan
from azguard.locks.environment import LockLine
from azguard.locks.hold_records import HoldRecord, HoldRecords
from azguard.locks.job_locks import JobLock
from azguard.locks.shown import HoldResult, ReleaseResult
from azguard.locks.sticky import HeldUntil, StickyHold
from azguard.requests.deadline import Deadline

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
        # Its format is GitHub's, by whatever name it is given.
        file = None if file is not None and github is not None and _same(file, github) else file
        found = cls(file, github, ci_jobs.is_azure_pipelines(environ), ci_jobs.find_job(environ), write_command)
        for path in found.paths:
            _append(path, "")
        return found

    @property
    def paths(self) -> list[Path]:
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


def _same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


@dataclass(frozen=True)
class StepHold:
    """A lock to hold for later steps."""

    plan: HoldPlan
    #: After this time the next holder may take it, of a lock without a process; None with one.
    until: HeldUntil | None
    variables: StepVariables
    environ: Mapping[str, str]
    #: Called before the lock is asked for.
    begin: Callable[[], None]
    #: The exit status if others hold it.
    busy_status: int

    def take(self) -> HoldResult:
        """Hold the lock, and tell later steps.

        Raises:
            GaveUp: others hold it, and the time for waiting is over.
            Locked: this job holds it, and its environment does not say so.
            UsageError: this job holds it with a process, and it is to be held without.
        """
        plan = self.plan
        sticky = None if self.until is None else StickyHold(plan, self.until)
        around = job_locks.find_held_around(plan.request.target, self.environ, plan.holds)
        if around is not None and (sticky is None or not around.is_sticky):
            return self._confirm(around)
        self.begin()
        if sticky is not None and (own := sticky.find_own()) is not None:
            prolonged = sticky.prolong(own)
            if prolonged is not None:
                return self._describe(prolonged, (), "prolonged")
        plan.settings.refuse_own(plan.request, plan.wait)
        exported: list[str] = []

        def publish(held: HoldRecord) -> None:
            lines = _list_lines(self.environ, self.variables, plan.holds)
            exported.extend(self.variables.write(_add(lines, held)))

        try:
            held = background_holder.hold(plan, publish) if sticky is None else sticky.hold(publish)
        except GaveUp as error:
            words = f"{plan.request.target.address} is held by others; this job does not hold it"
            raise error.but(message=words, exit_status=self.busy_status) from error
        return self._describe(job_locks.of_hold(plan.request.target, held), tuple(exported), "held")

    def _confirm(self, around: JobLock) -> HoldResult:
        """See that a lock which the environment tells of is held still."""
        request = self.plan.request
        if queue.is_reader_of(str(around.target.address), request.target):
            readers.check_reads(request)
        job_locks.confirm(around, request, self.plan.settings)
        if self.until is not None:
            raise UsageError(f"this job holds {around.target} already", reason="sticky_lock_held")
        return self._describe(around, (), "already_held")

    def _describe(self, lock: JobLock, exported: tuple[str, ...], outcome: str) -> HoldResult:
        hold = lock.hold
        return HoldResult(
            address=str(lock.target.address),
            state="held",
            lease_id=lock.lease_id,
            fence=lock.fence,
            duration=None if hold is None else hold.seconds or "infinite",
            since=None if hold is None else hold.since,
            until=None if hold is None else hold.until,
            pid=None if hold is None else hold.pid,
            log=None if hold is None else hold.log,
            holder_file=None if hold is None else str(self.plan.holds.file(hold.lease_id, "json")),
            exported=exported,
            outcome=outcome,
        )


@dataclass(frozen=True)
class StepRelease:
    """Locks to release, so that later steps do not find them any more."""

    locks: Iterable[JobLock]
    variables: StepVariables
    environ: Mapping[str, str]
    holds: HoldRecords
    records: LeaseRecords

    def make(self, deadline: Deadline, say: Callable[[str], None]) -> list[ReleaseResult]:
        """Release the locks. One that fails does not keep the others from being released.

        Raises:
            LockLost: one was lost before.
        """
        done: list[ReleaseResult] = []
        failed: list[AzguardError] = []
        over: set[str] = set()
        lines = _list_lines(self.environ, self.variables, self.holds)
        for each in self.locks:
            try:
                done.append(job_locks.release(each, self.holds, self.records, deadline.fresh(), say))
                over.add(each.lease_id)
            except AzguardError as error:
                failed.append(error)
                if isinstance(error, LockLost):
                    over.add(each.lease_id)
        self.variables.write(environment.export_lines([line for line in lines if line.lease_id not in over]))
        if failed:
            for one in done:
                say(f"{one.outcome.replace('_', ' ')}: {one.address}")
            first, *others = failed
            raise first.but(detail=(*first.detail, *(error.message for error in others)))
        return done


def _list_lines(environ: Mapping[str, str], variables: StepVariables, holds: HoldRecords) -> list[LockLine]:
    """Return the locks that later steps find now: of each lock, what was left last."""
    around = environment.read_lines(environ)
    # A shell may still have the variables of a lock that was released, or whose loss was told.
    found = {line.lock: line for line in around if not ((hold := holds.find(line.lease_id)) and hold.is_over)}
    ids = {line.lease_id for line in around}
    for hold in holds.list_unreleased():
        if hold.lease_id not in ids and _is_told(hold, variables):
            found[hold.address] = _describe(hold)
    return list(found.values())


def _is_told(hold: HoldRecord, variables: StepVariables) -> bool:
    # One that was lost counts too: the steps that follow have to know. A file may be of a job that is long over, or of
    # one that runs beside this one.
    in_file = hold.is_kept and ci_jobs.is_own(hold.job, variables.job) and variables.is_in_file(hold.lease_id)
    return in_file or variables.is_of_step(hold.lease_id, hold.job)


def _describe(hold: HoldRecord) -> LockLine:
    """Return the line about a lock that later steps read."""
    duration = LONGEST if hold.seconds is None else hold.seconds
    return LockLine(hold.address, hold.endpoint, hold.lease_id, str(hold.fence), str(duration))


def _add(lines: list[LockLine], hold: HoldRecord) -> dict[str, str]:
    """Return the variables of these locks and of one more."""
    return environment.export_lines([*(line for line in lines if line.lock != hold.address), _describe(hold)])
