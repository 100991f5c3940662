"""Where the commands of a worker run, as the worker sees it."""

from typing import Protocol

from azguard.processes.command_place import CommandEnd, CommandOrder


class CommandRunner(Protocol):
    """Where a command runs: ``CommandPlace``."""

    def start(self, order: CommandOrder) -> None:
        """Run a command."""
        ...

    def wait(self, seconds: float) -> CommandEnd | None:
        """Wait for its end, at most so long."""
        ...

    def extend(self, ends: float) -> None:
        """Say until when it may run."""
        ...

    def end(self) -> None:
        """End it."""
        ...


class Workplace(CommandRunner, Protocol):
    """A place that may be gone: ``CommandPlace``."""

    is_gone: bool
