"""What a command takes, as rows: its options and arguments, each declared once; and what the command does.

An option stands at its value: ``wait: Annotated[str | None, option("--wait", "DURATION", "Wait.")] = None``.
The parser, help, completion, manual pages and docs read the rows. Nothing here knows the parser.
"""

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from inspect import Parameter
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from azguard.frozen import frozen

if TYPE_CHECKING:
    from azguard.cli.options.types import ValueType
    from azguard.cli.rules import Rule
    from azguard.wire.rows import Operation

# The heading an option stands under in --help.
ARGUMENTS, OPTIONS, CONDITIONS, ACCOUNT, GENERAL, TREES = (
    "Arguments", "Options", "Conditions", "Account", "General", "With --recursive",
)  # fmt: skip

# Words in capitals stand for a value: TIME|DURATION.
_CHOICE = r"[A-Za-z][a-z][a-z0-9]*"
_CHOICES = rf"{_CHOICE}(\|{_CHOICE})+"


class Row(NamedTuple):
    """An option, or an argument."""

    #: As it is typed: ``--file``, ``-f``; empty of an argument.
    flags: tuple[str, ...]
    #: What stands for the value; empty of a flag, which has none.
    metavar: str
    help: str
    #: How its value is read and written; text as it is typed where there is none.
    type: "ValueType | None" = None
    #: Its value where it stands without one: ``--wait`` alone is ``--wait 60s``. None where it needs one.
    bare: str | None = None
    #: What switches a flag off, such as ``--no-log``; empty where nothing does.
    off: str = ""
    #: Offers values to the shell: it is given the typed line, and the word that is not finished yet.
    completer: Callable[..., list[tuple[str, str]]] | None = None
    panel: str = OPTIONS
    #: Whether it is refused wherever it is typed, with words of its own.
    is_hidden: bool = False
    #: The name of the parameter.
    name: str = ""
    default: Any = None
    #: What holds without it, in words; of one that has no value then.
    otherwise: str = ""
    is_required: bool = False
    #: Whether it can be given several times.
    is_many: bool = False
    #: Whether its value is a secret, unless it names a file.
    is_secret: bool = False
    #: What it goes with, wherever it stands.
    rules: "tuple[Rule, ...]" = ()
    #: The environment variable that stands for it; empty where there is none.
    variable: str = ""

    @property
    def is_argument(self) -> bool:
        """Return whether it is told by its place."""
        return not self.flags

    @property
    def is_flag(self) -> bool:
        """Return whether it stands without a value."""
        return not self.is_argument and not self.metavar

    @property
    def choices(self) -> tuple[str, ...]:
        """Return the words that its value can be; none where it can be something else."""
        if self.type is not None and self.type.choices:
            return self.type.choices
        metavar = self.metavar.strip("[].")
        return tuple(metavar.split("|")) if re.fullmatch(_CHOICES, metavar) else ()

    @property
    def place(self) -> str:
        """Return how an argument is written: in brackets if it may be left out."""
        name = f"{self.metavar}..." if self.is_many and "..." not in self.metavar else self.metavar
        return name if self.is_required or name.startswith("[") else f"[{name}]"

    @property
    def place_name(self) -> str:
        """Return the name of an argument in rules: its metavar without brackets, without the ``--`` of a command."""
        return self.metavar.strip("[]").removeprefix("-- ")

    @property
    def written_default(self) -> str:
        """Return its default as it is typed; empty where there is none."""
        if self.off:
            return (self.flags[0] if self.default else self.off).removeprefix("--")
        if self.is_argument or self.is_flag or self.default in (None, ()):
            return ""
        return str(self.default) if self.type is None else self.type.write(self.default)

    def read(self, value: Any) -> Any:
        """Return the value of the typed text.

        Raises:
            UsageError: the text is malformed.
        """
        # A default is a value already.
        if self.type is None or not isinstance(value, (str, list)):
            return value
        name = self.place_name if self.is_argument else self.flags[0]
        if self.type.of_many:
            return self.type.read(value, name)
        return self.type.read(value, name) if isinstance(value, str) else [self.type.read(each, name) for each in value]


def option(
    flags: str, metavar: str, text: str, kind: "ValueType | Callable[[str], ValueType] | None" = None, **settings: Any
) -> Row:
    """Return the row of an option with a value; ``flags`` is such as ``--file, -f``.

    ``kind`` is its type, or makes it of the metavar, such as ``choice`` of ``on|off``.
    """
    made = kind(metavar) if callable(kind) else kind
    return _named(Row(tuple(flags.split(", ")), metavar, text, made, **settings))


def flag(flags: str, text: str, **settings: Any) -> Row:
    """Return the row of an option without a value; ``flags`` is such as ``--yes, -y`` or ``--log/--no-log``."""
    on, _, off = flags.partition("/")
    return _named(Row(tuple(on.split(", ")), "", text, off=off, default=False, **settings))


def argument(metavar: str, text: str, kind: "ValueType | None" = None, **settings: Any) -> Row:
    """Return the row of an argument."""
    return Row((), metavar, text, kind, panel=ARGUMENTS, **settings)


def in_panel(panel: str, rows: Iterable[Row]) -> tuple[Row, ...]:
    """Return rows that stand under this heading."""
    return tuple(row._replace(panel=panel) for row in rows)


def _named(row: Row) -> Row:
    return row._replace(name=row.flags[0].lstrip("-").replace("-", "_"))


@frozen
class CommandSpec:
    """What a command does, as far as its shared options depend on it."""

    #: The operation whose conditions it takes; None if it takes none.
    operation: "Operation | None" = None
    #: The operation that it performs without its --source; None if that is no option of its.
    plain: "Operation | None" = None
    #: Why it takes no condition, in a sentence without its full stop: each condition is refused with that.
    why_no_conditions: str | None = None
    #: Whether it reads or writes blobs, which may be encrypted with a key of the user's.
    takes_key: bool = False
    #: Whether its first word begins a command line of another program, whose options are not its own.
    runs_program: bool = False

    @property
    def is_remote(self) -> bool:
        """Return whether it talks to an account: then it takes the options that choose one."""
        return self.operation is not None or self.why_no_conditions is not None


#: A command of this machine alone.
LOCAL = CommandSpec()


def list_rows(callback: Callable[..., Any]) -> tuple[Row, ...]:
    """Return the rows of the parameters of a command's function.

    A parameter, or the field of one, that is a dataclass stands for the options in it. The first parameter, ``env``, is
    the run's.
    """
    return tuple(row for each in _parameters(callback) for row in _expand(each))


def fill(callback: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the parameters of a command's function, those that are dataclasses filled in."""
    left = dict(given)
    return {each.name: _collect(each.annotation, each.name, left) for each in _parameters(callback)}


@cache
def _parameters(callback: Callable[..., Any]) -> list[Parameter]:
    return [each for each in inspect.signature(callback).parameters.values() if each.name != "env"]


def _expand(parameter: Parameter) -> Iterator[Row]:
    if not is_dataclass(parameter.annotation):
        yield _bind(parameter)
        return
    for each in fields(parameter.annotation):
        default = Parameter.empty if each.default is MISSING else each.default
        yield from _expand(Parameter(each.name, Parameter.KEYWORD_ONLY, default=default, annotation=each.type))


def _bind(parameter: Parameter) -> Row:
    typed, row = get_args(parameter.annotation)[:2]
    assert isinstance(row, Row)
    is_required = parameter.default is Parameter.empty
    return row._replace(
        name=parameter.name,
        default=None if is_required else parameter.default,
        is_required=is_required,
        is_many=typed in (list[str], list[str] | None) or (row.type is not None and row.type.of_many),
    )


def _collect(kind: Any, name: str, left: dict[str, Any]) -> Any:
    if not is_dataclass(kind):
        return left.pop(name)
    found: Any = kind
    return found(**{part: _collect(each, part, left) for part, each in _list_fields(found)})


@cache
def _list_fields(kind: Any) -> list[tuple[str, Any]]:
    """Return the names and types of the fields of a dataclass."""
    return [(each.name, each.type) for each in fields(kind)]


def list_rules(callback: Callable[..., Any]) -> "tuple[Rule, ...]":
    """Return the rules of the options that a command's function takes, and of the dataclasses that they stand in."""
    kinds = [each.annotation for each in inspect.signature(callback).parameters.values()]
    return (
        *(rule for kind in kinds for rule in _list_within(kind)),
        *(r for row in list_rows(callback) for r in row.rules),
    )


def _list_within(kind: Any) -> "Iterator[Rule]":
    if not is_dataclass(kind):
        return
    for each in fields(kind):
        yield from _list_within(each.type)
    own: Any = kind
    for base in reversed(inspect.getmro(own)):
        yield from vars(base).get("RULES", ())


def list_typed(rows: Iterable[Row], values: Mapping[str, Any], names: Collection[str]) -> list[str]:
    """Return the options and arguments that were typed, by their names in rules.

    ``names`` are those of the parameters that were typed.
    """
    typed = []
    for row in rows:
        value = values.get(row.name)
        if row.is_argument and value not in (None, [], ()):
            typed.append(row.place_name)
        elif row.name in names and row.off and not value:
            typed.append(row.off)
        elif row.name in names and not row.is_argument:
            typed.append(row.flags[0])
            if isinstance(value, str):
                typed.append(f"{row.flags[0]}={value}")
    return typed
