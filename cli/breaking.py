"""From the options of ``lease break`` and ``lock break`` to the core: an operator's act, shown first, and meant."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from azguard.accounts.target import Target
from azguard.cli import asking, lease_options, options, signals, values
from azguard.cli.context import Environment
from azguard.leases import breaking
from azguard.leases.actions import LONGEST_BREAK
from azguard.leases.breaking import BreakDone, BreakRequest, Safeguards
from azguard.leases.ci_runs import RunCheck
from azguard.leases.kinds import Action
from azguard.locks import log
from azguard.times import iso, span

# After its end the service may take up to a minute until it gives a lease to the next, says its documentation.
_SLACK_SECONDS = 60.0


@dataclass(frozen=True)
class BreakOptions:
    """The options of a break, as typed."""

    lease_break_period: Annotated[
        str | None,
        typer.Option("--lease-break-period", metavar="DURATION", help="Let the lease last this much longer, 0 to 60s."),
    ] = None
    yes: options.Yes = False
    if_owner: Annotated[
        str | None, typer.Option("--if-owner", metavar="NAME", help="Only if this user or host holds it.")
    ] = None
    if_older_than: Annotated[
        str | None,
        typer.Option("--if-older-than", metavar="DURATION", help="Only if it was taken longer ago than this."),
    ] = None
    if_run_finished: Annotated[
        bool,
        typer.Option("--if-run-finished", help="Only if GitHub or Azure Pipelines says that its CI run is over."),
    ] = False
    reason: Annotated[
        str | None,
        typer.Option("--reason", metavar="TEXT", help="Say why you break it; the history of a lock shows it."),
    ] = None
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it is free; exit 75 if it stays held.")] = False

    def read_period(self) -> int | None:
        """Return the seconds of --lease-break-period; None leaves it to the service."""
        if self.lease_break_period is None:
            return None
        return values.seconds(self.lease_break_period, "--lease-break-period", 0, LONGEST_BREAK)

    def build_safeguards(self, env: Environment) -> Safeguards:
        """Return what must hold of the holder."""
        age = None if self.if_older_than is None else values.duration(self.if_older_than, "--if-older-than")
        run_check = RunCheck(env.environ, env.deadline) if self.if_run_finished else None
        return Safeguards(values.not_empty(self.if_owner, "--if-owner"), age, run_check)


def break_lease(env: Environment, target: Target, given: BreakOptions) -> BreakDone:
    """Show who holds a lease, see that breaking it is meant, and break that very lease; wait for its end if asked to.

    Raises:
        UsageError: nothing says that it is meant, and there is no terminal to ask on.
        GaveUp: it was broken, and is not free in time.
    """
    breaker = lease_options.this_process(env, f"azguard {env.command}", given.reason)
    request = BreakRequest(
        target=target,
        period=given.read_period(),
        safeguards=given.build_safeguards(env),
        conditions=lease_options.conditions(env, target, Action.BREAK),
        is_confirmed=given.yes,
    )
    confirm = (lambda: asking.confirm("break it?", "nothing was broken")) if asking.on_terminal() else None
    done = breaking.break_after_showing(request, env.deadline, env.out.info, confirm)
    if done.broken.held_by is None:
        env.out.warn("no record says who held it: whether it was still the lease that was shown cannot be told")
    log.append_break(target, done, breaker, env.out.info)
    if done.lease_time != 0 and not given.wait:
        env.out.say(_describe_end(target, done.lease_time))
    if given.wait:
        patience = env.patience(env.shared.get("timeout"), (done.lease_time or LONGEST_BREAK) + _SLACK_SECONDS)
        with signals.heed():
            lease_options.wait_free(env, target, patience)
    return done


def _describe_end(target: Target, left: int | None) -> str:
    """Return when the next one can have what was broken; None seconds left is not known."""
    seconds = LONGEST_BREAK if left is None else left
    end = iso(datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=seconds))
    return (
        f"{target} stays taken for up to {span(seconds)}: the next one can have it at {end}, or as soon as its holder "
        "releases it"
    )
