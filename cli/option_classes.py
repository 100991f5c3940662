"""Options as one frozen dataclass in the place of many parameters of a command."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature
from typing import Any

Command = Callable[..., None]


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
