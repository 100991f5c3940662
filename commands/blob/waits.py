"""How ``blob get`` and ``blob wait`` wait for a blob."""

import random
from dataclasses import replace

from azguard.accounts.account import Target
from azguard.blobs.waiting import Waiting, check_was_read
from azguard.cli import context
from azguard.cli.context import Environment
from azguard.cli.options import leases
from azguard.guards.requested import RequestedConditions
from azguard.guards.resolve import Conditions
from azguard.times import span
from azguard.wire.rows import Operation

_LAST = "@last"
_NOW = {
    "exists": "does not exist yet",
    "absent": "still exists",
    "changed": "is unchanged",
}


def describe_wait(env: Environment, target: Target, until: str, seconds: float) -> Waiting:
    """Return how to wait for so many seconds, telling what is waited for; for none, it is looked once."""
    patience = env.patience(seconds or None, seconds)

    def tell() -> None:
        env.out.info(f"waiting up to {span(seconds)}: {target.address} {_NOW[until]}")

    context.warn_of_end(target, patience.seconds, env.out.warn_once)
    return Waiting(
        patience=patience,
        tell=lambda: tell() if seconds else None,
        tell_lease=lambda state: leases.say_waiting(env, state),
        uniform=random.SystemRandom().uniform,
    )


def resolve_change(env: Environment, target: Target, operation: Operation, etag: str | None = None) -> Conditions:
    """Return the conditions of a read that answers only with another version: than ``etag``, or than what was read.

    Raises:
        Changed: this scope never read the blob, so that there is no version to compare with.
    """
    asked = RequestedConditions.of(env.shared)
    if etag is not None:
        asked = replace(asked, if_none_match=etag)
    if asked.if_none_match is None and asked.if_modified_since is None:
        asked = replace(asked, if_none_match=_LAST)
    if asked.if_none_match == _LAST:
        check_was_read(target, env.reads.find_last(target))
    return env.reads.resolve_conditions(operation, asked, target)
