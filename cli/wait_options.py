"""What the options of waiting for a blob mean."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from azguard.accounts.target import Target
from azguard.cli import ending, values
from azguard.conditions.operations import BLOB_GET, Operation
from azguard.conditions.requested import RequestedConditions
from azguard.conditions.resolve import Conditions
from azguard.errors import UsageError
from azguard.times import span

if TYPE_CHECKING:
    from azguard.blobs.waiting import Waiting
    from azguard.cli.context import Environment

# How long a wait lasts by default.
WAIT_SECONDS = 60.0
_LAST = "@last"
_NOW = {
    "exists": "does not exist yet",
    "absent": "still exists",
    "changed": "is unchanged",
}


@dataclass(frozen=True)
class ReadOptions:
    """What a get of one blob takes."""

    wait_changed: Annotated[
        bool,
        typer.Option("--wait-changed", help="Wait until the version differs from the one you last read, then read it."),
    ] = False
    wait: Annotated[
        str | None,
        typer.Option("--wait", metavar="DURATION", help="Wait this long (exit 75); by default, 60s."),
    ] = None
    validate_content: Annotated[
        bool,
        typer.Option("--validate-content", help="Ask the service for the MD5 of each range, and compare it."),
    ] = False

    def check(self, *, is_tree: bool) -> None:
        """Refuse what means nothing.

        Raises:
            UsageError: it is said how long to wait, but not for what, or for the change of many blobs.
        """
        if self.wait is not None and not self.wait_changed:
            raise UsageError("--wait says how long --wait-changed waits, which is missing", hint="add --wait-changed")
        if is_tree and (self.wait_changed or self.validate_content):
            option = "--wait-changed" if self.wait_changed else "--validate-content"
            raise UsageError(f"{option} is for one blob, and --recursive is for many", hint="leave one of them out")

    def conditions(self, env: "Environment", target: Target) -> Conditions:
        """Return the conditions of a get, after waiting for a change if that is asked for.

        The get carries them too, so that it never delivers the version that was to be waited past.
        """
        if not self.wait_changed:
            return env.conditions(target)
        from azguard.blobs.waiting import Until, wait

        conditions = resolve_change(env, target, BLOB_GET)
        wait(target, Until.CHANGED, conditions, describe_wait(env, target, Until.CHANGED, self.wait, "--wait"))
        return conditions


def describe_wait(env: "Environment", target: Target, until: str, text: str | None, option: str) -> "Waiting":
    """Return how to wait: for as long as the text of an option says, telling what is waited for.

    Raises:
        UsageError: the text is no duration.
    """
    import random

    from azguard.blobs.waiting import Waiting
    from azguard.cli import lease_options

    if text is not None:
        values.duration(text, option)
    patience = env.patience(text, WAIT_SECONDS)
    ending.warn(target, patience.seconds, env.out.warn_once)
    return Waiting(
        patience=patience,
        tell=lambda: env.out.info(f"waiting up to {span(patience.seconds)}: {target.address} {_NOW[until]}"),
        tell_lease=lambda state: lease_options.say_waiting(env, state),
        uniform=random.SystemRandom().uniform,
    )


def resolve_change(env: "Environment", target: Target, operation: Operation, etag: str | None = None) -> Conditions:
    """Return the conditions of a read that answers only with another version: than ``etag``, or than what was read.

    Raises:
        Changed: this scope never read the blob, so that there is no version to compare with.
    """
    from azguard.blobs.waiting import check_was_read

    asked = RequestedConditions.of(env.shared)
    if etag is not None:
        asked = replace(asked, if_none_match=etag)
    if asked.if_none_match is None and asked.if_modified_since is None:
        asked = replace(asked, if_none_match=_LAST)
    if asked.if_none_match == _LAST:
        check_was_read(target, env.reads.find_last(target))
    return env.reads.resolve_conditions(operation, asked, target)
