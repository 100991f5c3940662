"""What ``lease acquire --reason`` leaves on a blob, and what ``lease release`` takes away again."""

from dataclasses import replace

from azguard.accounts.target import Target
from azguard.address import Kind
from azguard.cache.records import HeldLease, Key
from azguard.cli import owning
from azguard.cli.context import Environment
from azguard.conditions.resolve import Conditions
from azguard.errors import AzguardError, Locked, NotFound, UsageError
from azguard.leases import actions, owner_records
from azguard.leases.actions import LeaseDone
from azguard.leases.owner_records import Moved
from azguard.leases.owners import Owner

# How a lease is remembered that has a record.
RECORDED = " --reason"


def record(env: Environment, target: Target, reason: str | None) -> Owner | None:
    """Return the record to leave on a blob; None if no reason was given.

    Raises:
        UsageError: the reason is no plain text, or the resource cannot carry a record.
    """
    if reason is None:
        return None
    if target.kind is not Kind.BLOB:
        raise UsageError(
            f"--reason is not for a {target.kind}: its metadata have no guard that other writers must respect",
            address=str(target.address),
            hint="leave it out, or lease a blob that stands for it",
        )
    return owning.record(env, f"azguard {env.command}", reason, lasting=True)


def leave(env: Environment, target: Target, owner: Owner, done: LeaseDone, *, ours: bool) -> LeaseDone:
    """Leave the record under a lease just acquired; if that fails, give the lease back unless it was ours before."""
    lease_id = str(done.lease_id)
    try:
        moved = owner_records.leave(target, lease_id, owner, env.deadline.fresh())
    except BaseException as error:
        if not ours and actions.give_back(target, lease_id, env.deadline):
            env.cache.drop(Key.of(target), lease_id)
            if isinstance(error, AzguardError):
                error.detail = (*error.detail, "the record could not be written, and the lease was given back")
        raise
    _follow(env, target, moved)
    return replace(done, etag=moved.after, last_modified=moved.last_modified or done.last_modified)


def remove(env: Environment, target: Target, known: HeldLease | None, asked: Conditions) -> None:
    """Remove the record of a lease that is about to be released, if we left one."""
    # A condition of the caller's is of the version that is there now, so that version must stay.
    if known is None or not known.action.endswith(RECORDED) or asked.headers:
        return
    try:
        moved = owner_records.remove(target, known.lease_id, env.deadline.fresh())
    except (Locked, NotFound):
        return  # the release will say so
    except AzguardError as error:
        env.out.warn(f"the record of who held {target} stays there: {error.message}")
        return
    if moved is not None:
        _follow(env, target, moved)


def _follow(env: Environment, target: Target, moved: Moved) -> None:
    """Move on what this scope has read, if it is the version whose metadata were changed: the content is the same."""
    env.reads.follow(target, moved.before, moved.after, moved.lineage)
