"""What a command says of itself: what it does, its options as dataclasses, and the keys of the facts of its run."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from azguard.guards.operations import Operation


#: The options that every command shares, by name.
SHARED = "azguard.shared"
#: The names of the options in the order they were typed.
ORDER = "azguard.order"
#: The parser of a command or a group, which has parsed what was typed, and whose it is.
PARSED = "azguard.parsed"
#: The operation whose conditions the command takes.
OPERATION = "azguard.operation"
#: All that was typed.
ARGV = "azguard.argv"
#: The command's name and its own arguments.
COMMAND = "azguard.command"
Command = Callable[..., None]


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


def expand(command: Command) -> Command:
    """Let Typer see each field of a parameter that is a dataclass, and of the dataclasses in it, as an option.

    A field is declared as a parameter is: ``Annotated[…, typer.Option(…)]``, not as text, with its default. The command
    is called with the dataclass.
    """
    own = inspect.signature(command, eval_str=True).parameters.values()
    classes = {each.name: each.annotation for each in own if is_dataclass(each.annotation)}

    @wraps(command)
    def expanded(**given: Any) -> None:
        for name, kind in classes.items():
            given[name] = _collect(kind, given)
        command(**given)

    parameters = [shown for each in own for shown in _expand(each)]
    vars(expanded)["__signature__"] = Signature(parameters)
    expanded.__annotations__ = {each.name: each.annotation for each in parameters}
    return expanded


def _expand(parameter: Parameter) -> Iterator[Parameter]:
    """Yield the parameters that Typer is to see, all by keyword, in the order of their declaration."""
    if not is_dataclass(parameter.annotation):
        yield parameter.replace(kind=Parameter.KEYWORD_ONLY)
        return
    for each in fields(parameter.annotation):
        default = Parameter.empty if each.default is MISSING else each.default
        yield from _expand(Parameter(each.name, Parameter.KEYWORD_ONLY, default=default, annotation=each.type))


def _collect(kind: Any, given: dict[str, Any]) -> Any:
    """Return the dataclass of what was given, and take that out of it."""
    return kind(**{each.name: _value(each, given) for each in fields(kind)})


def _value(each: Field[Any], given: dict[str, Any]) -> Any:
    return _collect(each.type, given) if is_dataclass(each.type) else given.pop(each.name)
