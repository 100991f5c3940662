"""Classes of values: what ``dataclass`` makes, at a sixth of what that costs at start-up.

``dataclasses`` compiles up to six methods for each class: 0.5 ms, which was a quarter of a short command. Here all
classes have the same methods. Type checkers see to it that no field is assigned, or given twice:
``typing.dataclass_transform`` tells them.
"""

from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields, make_dataclass
from functools import cache
from itertools import count
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform, overload

T = TypeVar("T")
# A listing makes thousands of values. To compile ``__init__`` takes 0.2 ms, and then each value 1.5 µs less.
_VALUES_BEFORE_COMPILING = 100


@overload
def frozen(cls: type[T], /) -> type[T]: ...
@overload
def frozen(*, kw_only: bool = ..., eq: bool = ...) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(
    cls: type[T] | None = None, /, *, kw_only: bool = False, eq: bool = True
) -> type[T] | Callable[[type[T]], type[T]]:
    """Make a class of values: they are equal where their fields are, and have a hash where their fields have one.

    Without ``eq`` each is equal to itself alone.
    """

    def make(cls: type[T]) -> type[T]:
        made = dataclass(init=False, eq=False, repr=False, kw_only=kw_only)(cls)
        own = dict(vars(made))
        methods = {"__init__": _make_init(made), "__repr__": _show} | (_COMPARING if eq else {})
        for name, value in methods.items():
            if own.get(name) is None:
                setattr(made, name, value)
        return made

    return make if cls is None else make(cls)


@dataclass_transform(field_specifiers=(field,))
def mutable(cls: type[T]) -> type[T]:
    """Make a class of things whose fields are assigned later, too; each is equal to itself alone."""
    return frozen(eq=False)(cls)


def _make_init(made: Any) -> Callable[..., None]:
    values_before = count()

    def init(self: Any, *values: Any, **named: Any) -> None:
        places, names, defaults, factories = _read_fields(made)
        given = {**defaults, **dict(zip(places, values, strict=False)), **named}
        for name, make in factories.items():
            if name not in given:
                given[name] = make()
        if given.keys() != names or len(values) > len(places):
            raise TypeError(f"{type(self).__qualname__} takes {', '.join(sorted(names))}")
        vars(self).update(given)
        if hasattr(made, "__post_init__"):
            self.__post_init__()
        elif next(values_before) == _VALUES_BEFORE_COMPILING:
            typed = [(each.name, each.type, each) for each in fields(made)]
            compiled: Any = make_dataclass(made.__name__, typed, eq=False, repr=False)
            made.__init__ = compiled.__init__

    return init


# Half of the classes that a run loads have no value in it.
@cache
def _read_fields(made: Any) -> tuple[list[str], frozenset[str], dict[str, Any], dict[str, Any]]:
    """Return the places, the names, the defaults and the factories of the arguments of a class."""
    every = fields(made)
    places = [each.name for each in every if each.init and not each.kw_only]
    defaults = {each.name: each.default for each in every if each.default is not MISSING}
    factories = {each.name: each.default_factory for each in every if each.default_factory is not MISSING}
    names = frozenset(each.name for each in every if each.init)
    return places, names.union(defaults, factories), defaults, factories


@cache
def _find_compared(kind: Any) -> Callable[[Any], Any]:
    compared = [each.name for each in fields(kind) if each.compare]
    return attrgetter(*compared) if compared else type


def _equal(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    kind: Any = type(self)
    compared = _find_compared(kind)
    return compared(self) == compared(other)


def _hash(self: Any) -> int:
    kind: Any = type(self)
    return hash(_find_compared(kind)(self))


def _show(self: Any) -> str:
    shown = (each.name for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


_COMPARING = {"__eq__": _equal, "__hash__": _hash}
