"""What a command says of itself, so that ``cli.groups`` gives it the options it takes."""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from azguard.conditions.operations import Operation


class CommandSpec(NamedTuple):
    """What a command does, as far as its shared options depend on it."""

    #: The operation whose conditions it takes; None if it takes none.
    operation: "Operation | None" = None
    #: The operation that it performs without its --source-url; None if that is no option of its.
    plain: "Operation | None" = None
    #: Why it takes no condition, in a sentence without its full stop: each condition is refused with that.
    why_no_conditions: str | None = None
    #: Its option that may stand without a value, which is then the empty text.
    optional_value: str | None = None

    def find_operation(self, *, has_source: bool) -> "Operation | None":
        """Return the operation that it performs with a --source-url, or without."""
        return self.operation if has_source or self.plain is None else self.plain

    @property
    def is_remote(self) -> bool:
        """Return whether it talks to an account: then it takes the options that choose one."""
        return self.operation is not None or self.why_no_conditions is not None


#: A command of this machine alone.
LOCAL = CommandSpec()
