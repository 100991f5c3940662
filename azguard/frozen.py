"""Classes of values: what ``dataclass(frozen=True)`` makes, at a sixth of what that costs at start-up.

``dataclasses`` compiles six methods for each frozen class: 0.5 ms, which was a quarter of a short command. Here all
classes have the same methods. Type checkers see to it that no field is assigned, or given twice:
``typing.dataclass_transform`` tells them.
"""

from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform, overload

T = TypeVar("T")


@overload
def frozen(cls: type[T], /) -> type[T]: ...
@overload
def frozen(*, kw_only: bool = ..., many: bool = ...) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(
    cls: type[T] | None = None, /, *, kw_only: bool = False, many: bool = False
) -> type[T] | Callable[[type[T]], type[T]]:
    """Make a class of values: they are equal where their fields are, and have a hash where their fields have one.

    ``many`` compiles ``__init__``, for a class of which a listing makes thousands of values: that takes 0.13 ms at
    start-up, and 1.5 µs less for each value.
    """

    def make(cls: type[T]) -> type[T]:
        made = dataclass(init=many, eq=False, repr=False, kw_only=kw_only)(cls)
        own = dict(vars(made))
        for name, value in (_METHODS | _describe(made)).items():
            if own.get(name) is None:
                setattr(made, name, value)
        return made

    return make if cls is None else make(cls)


def _describe(made: Any) -> dict[str, Any]:
    """Return the facts of a class that its methods use: the names, places and defaults of its fields."""
    every = fields(made)
    compared = [each.name for each in every if each.compare]
    return {
        "_compared": attrgetter(*compared) if compared else type,
        "_names": dict.fromkeys(each.name for each in every),
        "_places": [each.name for each in every if each.init and not each.kw_only],
        "_defaults": {each.name: each.default for each in every if each.default is not MISSING},
        "_factories": {each.name: each.default_factory for each in every if each.default_factory is not MISSING},
    }


def _init(self: Any, *values: Any, **named: Any) -> None:
    given = {**self._defaults, **dict(zip(self._places, values, strict=False)), **named}
    for name, make in self._factories.items():
        if name not in given:
            given[name] = make()
    if given.keys() != self._names.keys() or len(values) > len(self._places):
        raise TypeError(f"{type(self).__qualname__} takes {', '.join(self._names)}")
    vars(self).update(given)


def _equal(self: Any, other: Any) -> Any:
    return self._compared(self) == self._compared(other) if other.__class__ is self.__class__ else NotImplemented


def _hash(self: Any) -> int:
    return hash(self._compared(self))


def _show(self: Any) -> str:
    shown = (each.name for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


_METHODS = {"__init__": _init, "__eq__": _equal, "__hash__": _hash, "__repr__": _show}
