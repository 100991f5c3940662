"""The locks of a job, as later steps shall find them: those that the environment tells, and those of the same step.

A step does not see the variables that it leaves itself. A second ``lock hold`` in it, or a release of one of two locks,
would so wipe out what the first has left.
"""

from collections.abc import Mapping

from azguard import ci_jobs
from azguard.cli.context import Environment
from azguard.cli.step_variables import StepVariables
from azguard.leases.actions import LONGEST
from azguard.locks import environment, known
from azguard.locks.environment import LockLine
from azguard.locks.holds import Hold, Holds, JobScope
from azguard.locks.settings import LockRequest


def holds_of(env: Environment) -> Holds:
    """Return the records on this machine of locks that are held beyond one command."""
    return Holds(env.folders.holds.absolute())


def own_of(env: Environment) -> JobScope:
    """Return whose holds this run may act on."""
    return JobScope(env.scope, env.job)


def refuse_own(env: Environment, request: LockRequest, wait: float) -> None:
    """Refuse a lock that this job holds already; see ``known.refuse_own``."""
    known.refuse_own(request, wait, holds_of(env), own_of(env), env.deadline.fresh())


def list_lines(environ: Mapping[str, str], variables: StepVariables, holds: Holds) -> list[LockLine]:
    """Return the locks that later steps find now: of each lock, what was left last."""
    around = environment.read_lines(environ)
    # A shell may still have the variables of a lock that was released, or whose loss was told.
    found = {line.lock: line for line in around if not ((hold := holds.find(line.lease_id)) and hold.is_over)}
    ids = {line.lease_id for line in around}
    for hold in holds.list_unreleased():
        if hold.lease_id not in ids and _is_told(hold, variables):
            found[hold.address] = describe(hold)
    return list(found.values())


def _is_told(hold: Hold, variables: StepVariables) -> bool:
    # One that was lost counts too: the steps that follow have to know. A file may be of a job that is long over, or of
    # one that runs beside this one.
    in_file = hold.is_kept and ci_jobs.is_own(hold.job, variables.job) and variables.is_in_file(hold.lease_id)
    return in_file or variables.is_of_step(hold.lease_id, hold.job)


def describe(hold: Hold) -> LockLine:
    """Return what later steps are told of a lock."""
    duration = LONGEST if hold.seconds is None else hold.seconds
    return LockLine(hold.address, hold.endpoint, hold.lease_id, str(hold.fence), str(duration))


def add(lines: list[LockLine], hold: Hold) -> dict[str, str]:
    """Return the variables of these locks and of one more."""
    return environment.export_lines([*(line for line in lines if line.lock != hold.address), describe(hold)])
