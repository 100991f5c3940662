"""From the options of ``azguard lease break`` to the core: an operator's act, shown first, and meant."""

from typing import Annotated

import typer

from azguard.accounts.target import Target
from azguard.cli import asking, lease_options, values
from azguard.cli.context import Environment
from azguard.leases import breaking
from azguard.leases.actions import LONGEST_BREAK, LeaseDone
from azguard.leases.breaking import BreakDone, BreakRequest, Safeguards
from azguard.leases.ci_runs import RunCheck
from azguard.leases.kinds import Action
from azguard.requests.deadline import Deadline

IfRunFinished = Annotated[
    bool,
    typer.Option("--if-run-finished", help="Only if GitHub or Azure Pipelines says that its CI run is over."),
]
# After its end the service may take up to a minute until it gives a lease to the next, says its documentation.
_SLACK_SECONDS = 60.0


def period_of(text: str | None) -> int | None:
    """Return the seconds of --lease-break-period; None leaves it to the service."""
    return None if text is None else values.seconds(text, "--lease-break-period", 0, LONGEST_BREAK)


def safeguards(
    env: Environment, owner: str | None, older_than: str | None, *, if_run_finished: bool = False
) -> Safeguards:
    """Return what must hold of the holder."""
    age = None if older_than is None else values.duration(older_than, "--if-older-than")
    run_check = RunCheck(env.environ, env.deadline) if if_run_finished else None
    return Safeguards(values.not_empty(owner, "--if-owner"), age, run_check)


def broken(env: Environment, target: Target, period: int | None, safeguards: Safeguards, *, yes: bool) -> BreakDone:
    """Show who holds a lease, see that breaking it is meant, and break that very lease.

    Raises:
        UsageError: nothing says that it is meant, and there is no terminal to ask on.
    """
    request = BreakRequest(
        target=target,
        period=period,
        conditions=lease_options.conditions(env, target, Action.BREAK),
        safeguards=safeguards,
        is_confirmed=yes,
    )
    confirm = (lambda: asking.confirm("break it?", "nothing was broken")) if asking.on_terminal() else None
    done = breaking.break_after_showing(request, env.deadline, env.out.info, confirm)
    if done.broken.held_by is None:
        env.out.warn("no record says who held it: whether it was still the lease that was shown cannot be told")
    return done


def after(env: Environment, done: LeaseDone) -> Deadline:
    """Return how long to wait for the end of a lease that was broken."""
    return env.patience(env.shared.get("timeout"), (done.lease_time or LONGEST_BREAK) + _SLACK_SECONDS)
