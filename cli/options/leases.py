"""What the options about leases mean, their records in the cache, and how an operator breaks a lease."""

import random
from dataclasses import field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, ClassVar

from azguard.accounts.account import Target
from azguard.cli import redaction, signals
from azguard.cli.context import Environment
from azguard.cli.input import streams
from azguard.cli.options import common
from azguard.cli.options.types import DURATION, TEXT, ValueType, read_seconds, seconds
from azguard.cli.parsing.rows import flag, option
from azguard.cli.rules import checked, excludes
from azguard.errors import UsageError
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.leases.state import LONGEST, LONGEST_BREAK, SHORTEST, Action, operation_of
from azguard.requests.deadline import Deadline
from azguard.times import iso, span

if TYPE_CHECKING:
    from azguard.leases.breaking import BreakDone, Safeguards
    from azguard.leases.owners import Owner
    from azguard.leases.shown import LeaseFacts
    from azguard.leases.state import LeaseState

# After its end the service may take up to a minute until it gives a lease to the next, says its documentation.
_SLACK_SECONDS = 60.0


def _read_term(text: str, name: str) -> int:
    if text.strip().lower() in ("-1", "infinite"):
        raise UsageError(f"{name} {text.strip()}: a lease for ever is asked for by name", hint="--infinite")
    return read_seconds(text, name, SHORTEST, LONGEST)


TERM = ValueType("duration", _read_term, DURATION.write, bounds=(SHORTEST, LONGEST))
LeaseDuration = Annotated[
    int,
    option("--lease-duration", "DURATION", "End it this long after its last renewal, 15s to 60s.", TERM),
]


def conditions(env: Environment, target: Target, action: Action | None, lease_id: str | None = None) -> Conditions:
    """Return the conditions of an operation on a lease of this kind of resource."""
    return env.conditions(target, operation=operation_of(target, action), lease_id=lease_id)


def this_process(env: Environment, command: str, reason: str | None = None, *, is_lasting: bool = False) -> "Owner":
    """Return the owner record of this process; ``command`` is what to publish of the command."""
    from azguard.leases import owners

    secrets = redaction.find_secrets(env.shared, env.environ)
    return owners.describe_this_process(
        command,
        reason,
        env.environ,
        redact=lambda text: redaction.redact(text, secrets),
        is_lasting=is_lasting,
    )


def wait_free(env: Environment, target: Target, patience: Deadline) -> "LeaseState":
    """Wait until a lease is free, saying who holds it."""
    from azguard.leases import shown

    return shown.wait_until_free(target, patience, lambda state: say_waiting(env, state), random.SystemRandom().uniform)


def say_waiting(env: Environment, state: "LeaseState") -> None:
    """Say who holds the lease that is waited for."""
    from azguard.leases import shown

    env.out.info(f"waiting: {state.address} is {shown.describe(state)}")


@frozen
class BreakOptions:
    """The options of a break, as typed."""

    lease_break_period: Annotated[
        int | None,
        option(
            "--lease-break-period",
            "DURATION",
            "Let the lease last this much longer, 0 to 60s.",
            seconds(0, LONGEST_BREAK),
        ),
    ] = None
    yes: common.Yes = False
    if_owner: Annotated[str | None, option("--if-owner", "NAME", "Only if this user or host holds it.", TEXT)] = None
    if_older_than: Annotated[
        float | None, option("--if-older-than", "DURATION", "Only if it was taken longer ago than this.", DURATION)
    ] = None
    if_run_finished: Annotated[
        bool, flag("--if-run-finished", "Only if GitHub or Azure Pipelines says that its CI run is over.")
    ] = False
    reason: Annotated[
        str | None, option("--reason", "TEXT", "Say why you break it; the history of a lock shows it.")
    ] = None
    waiting: common.OptionalWaitOptions = field(default_factory=common.OptionalWaitOptions)
    dry_run: Annotated[bool, flag("--dry-run", "Show who holds it; break nothing.")] = False

    RULES: ClassVar = (
        excludes(
            "--if-owner --if-older-than --if-run-finished",
            "--if-none-match --if-modified-since --if-unmodified-since --if-tags",
            "they judge one version of the blob, which the other condition does not name",
            "leave one of them out, or name the version: --etag",
        ),
        checked("ADDRESS", "a terminal to ask on, or an option that says what is meant", "leases.break_lease"),
    )

    def build_safeguards(self, env: Environment) -> "Safeguards":
        """Return the safeguards that the holder must meet."""
        from azguard.leases.breaking import Safeguards
        from azguard.leases.ci_runs import RunCheck

        run_check = RunCheck(env.environ, env.deadline) if self.if_run_finished else None
        return Safeguards(self.if_owner, self.if_older_than, run_check)


def break_lease(env: Environment, target: Target, given: BreakOptions) -> "BreakDone | LeaseFacts":
    """Show who holds a lease, see that breaking it is meant, and break that very lease; wait for its end if asked to.

    With --dry-run the lease is returned as it is.

    Raises:
        UsageError: nothing says that it is meant, and there is no terminal to ask on.
        GaveUp: it was broken, and is not free in time.
    """
    from azguard.leases import breaking, shown
    from azguard.locks import log

    breaker = this_process(env, f"azguard {env.command}", given.reason)
    request = breaking.BreakRequest(
        target=target,
        period=given.lease_break_period,
        safeguards=given.build_safeguards(env),
        conditions=conditions(env, target, Action.BREAK),
        assume_yes=given.yes,
    )
    if given.dry_run:
        return shown.summarize(breaking.look_before_breaking(request, env.deadline, env.out.info))
    confirm = (lambda: streams.confirm("break it?", "nothing was broken")) if streams.on_terminal() else None
    done = breaking.break_after_showing(request, env.deadline, env.out.info, confirm)
    if done.broken.held_by is None:
        env.out.warn("no record says who held it: whether it was still the lease that was shown cannot be told")
    log.append_break(target, done, breaker, env.out.info)
    if done.lease_time != 0 and given.waiting.wait is None:
        env.out.say(_describe_end(target, done.lease_time))
    if given.waiting.wait is not None:
        # A lease that ends after just as long as that is not missed.
        slack = _SLACK_SECONDS if given.waiting.wait >= LONGEST_BREAK else 0
        patience = env.patience(None, given.waiting.wait + slack)
        with signals.heed():
            wait_free(env, target, patience)
    return done


def _describe_end(target: Target, left: int | None) -> str:
    """Return when the next one can have what was broken; None seconds left is not known."""
    seconds = LONGEST_BREAK if left is None else left
    end = iso(datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=seconds))
    return (
        f"{target} stays taken for up to {span(seconds)}: the next one can have it at {end}, or as soon as its holder "
        "releases it"
    )
