"""The options of commands that create and delete, whatever the kind of resource."""

from dataclasses import fields
from typing import TYPE_CHECKING

from azguard.accounts.target import Target
from azguard.cli import asking, values
from azguard.cli.context import Environment
from azguard.conditions.requested import CREATE_ONLY, RequestedConditions
from azguard.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from azguard.resources.contents import Contents


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


def confirm_delete(target: Target) -> "Callable[[Contents], None] | None":
    """Return what asks whether a resource is to be deleted with its contents; None where no person can be asked."""
    if not asking.on_terminal():
        return None
    return lambda found: asking.confirm(f"delete {target} and the {found} in it?", "nothing was deleted")


def confirm_clear(target: Target) -> "Callable[[Contents], None] | None":
    """Return what asks whether the contents of a resource, which stays, are to be deleted; None without a person."""
    if not asking.on_terminal():
        return None
    return lambda found: asking.confirm(f"delete the {found} in {target}?", "nothing was deleted")
