"""The error for a group that was typed without a command."""

from dataclasses import dataclass
from typing import Any

from azguard.errors import UsageError


@dataclass(eq=False)
class CommandMissing(UsageError):
    """A group was typed without one of its commands: people are shown its help."""

    help: str = ""

    @classmethod
    def of(cls, ctx: Any) -> "CommandMissing":
        """Return the error for the group that a context is of."""
        path = ctx.command_path
        return cls(f"{path} needs a command", hint=f"{path} --help", help=ctx.get_help())
