"""Dataclasses whose methods are compiled when the first object is made, or the fields are asked for.

``dataclasses.dataclass`` compiles up to six methods of each class, which takes half a millisecond. A command imports
sixty to a hundred such classes and makes objects of a third of them. One with slots is no late one: ``dataclasses``
makes another class of it.
"""

import dataclasses
from threading import RLock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass

__all__ = ["dataclass"]

_COMPILING = RLock()
_FIELDS = "__dataclass_fields__"
_OF_ANY_CLASS = ("__dict__", "__weakref__")


class _LateFields:
    """In the place of the fields of a class that is not compiled yet."""

    def __init__(self, cls: type[Any], settings: dict[str, Any]) -> None:
        self._cls = cls
        self._settings = settings
        #: What the body of the class says.
        self._own = {name: value for name, value in vars(cls).items() if name not in _OF_ANY_CLASS}

    def __get__(self, _: object, owner: type[Any]) -> Any:
        self.compile()
        return getattr(owner, _FIELDS)

    def compile(self) -> None:
        """Compile the methods of the class, unless another thread has done so."""
        with _COMPILING:
            if vars(self._cls).get(_FIELDS) is self:
                self._compile()

    def _compile(self) -> None:
        # Beside the class, and its __init__ last: a thread that makes an object meanwhile comes to the lock.
        cls, own = self._cls, self._own
        found = dict(vars(dataclasses.dataclass(**self._settings)(type(cls.__name__, cls.__bases__, dict(own)))))
        init = found.pop("__init__")
        for name in own.keys() - found.keys():
            delattr(cls, name)
        for name, value in found.items():
            if name not in (*_OF_ANY_CLASS, "__doc__") and own.get(name) is not value:
                setattr(cls, name, _REFUSALS.get(name, value))
        cls.__init__ = init


def _refuse_to_set(_self: object, name: str, _value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(_self: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


# Those that ``dataclasses`` makes know the class that they were made for.
_REFUSALS = {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}

if not TYPE_CHECKING:

    def dataclass(cls: type[Any] | None = None, /, **settings: bool) -> Any:
        """Return the class as a dataclass; the settings are those of ``dataclasses.dataclass`` but for slots."""
        if cls is None:
            return lambda each: dataclass(each, **settings)
        late = _LateFields(cls, settings)

        def compile_and_init(self: object, *args: Any, **kwargs: Any) -> None:
            late.compile()
            cls.__init__(self, *args, **kwargs)

        cls.__init__ = compile_and_init
        setattr(cls, _FIELDS, late)
        return cls
