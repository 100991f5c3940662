"""``--if-exists skip``: a create that leaves alone what is there."""

from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from azguard.accounts.target import Target
from azguard.cli import values
from azguard.cli.context import Environment
from azguard.conditions.operations import BLOB_PUT_BLOCK_BLOB
from azguard.conditions.requested import RequestedConditions
from azguard.conditions.resolve import Conditions, resolve
from azguard.errors import UsageError
from azguard.requests import existing
from azguard.requests.written import WriteResult

if TYPE_CHECKING:
    from azguard.cache.copies import Copy

T = TypeVar("T")
IfExists = Annotated[
    str | None,
    typer.Option("--if-exists", metavar="skip", help="Leave alone what is there, and exit 0 with the outcome exists."),
]
#: What a create-only write means already.
CREATE_ONLY = RequestedConditions(if_none_match="*")


def skips(env: Environment, if_exists: str | None) -> bool:
    """Return whether what exists is to be left alone.

    Raises:
        UsageError: a condition on what exists is given too.
    """
    if values.choice(values.not_empty(if_exists, "--if-exists"), "--if-exists", ("skip",)) is None:
        return False
    asked = RequestedConditions.of(env.shared)
    for name in (each.name for each in fields(RequestedConditions)):
        if getattr(asked, name) not in (None, False, getattr(CREATE_ONLY, name)):
            raise UsageError(
                f"--if-exists skip and --{name.replace('_', '-')} contradict each other: what exists is left alone, "
                "whatever it is",
                hint="leave one of them out",
            )
    return True


def conditions(target: Target) -> Conditions:
    """Return the conditions of a put that only creates, whatever was read here."""
    return resolve(BLOB_PUT_BLOCK_BLOB, CREATE_ONLY, target)


def remember(
    env: Environment, target: Target, done: Any, copy: "Copy | None" = None, lineage: str | None = None
) -> None:
    """Record the version that was made; what was there already has not been read."""
    if done.outcome != existing.EXISTS:
        env.reads.record(target, done, copy, lineage)


def create(make: Callable[[], T], look: Callable[[], WriteResult], *, skip: bool) -> T | WriteResult:
    """Create, or with ``skip`` return what is there already."""
    return existing.unless_exists(make, look) if skip else make()
