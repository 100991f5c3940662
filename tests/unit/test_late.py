"""A late dataclass is one of ``dataclasses``, but for when its methods are compiled."""

import copy
import dataclasses
import pickle
import threading
from dataclasses import FrozenInstanceError, field, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

import pytest

from azguard.late import dataclass

T = TypeVar("T")


@dataclass(frozen=True)
class Place:
    """A frozen one."""

    name: str
    #: Of a default that is made anew.
    notes: list[str] = field(default_factory=list, compare=False)
    size: int = field(default=3, repr=False)

    @cached_property
    def twice(self) -> int:
        return 2 * self.size


@dataclass(frozen=True, kw_only=True)
class Room(Place):
    """One that is built on another."""

    floor: int

    def __post_init__(self) -> None:
        assert self.floor >= 0


@dataclass
class Box(Generic[T]):
    """One that can be changed."""

    content: T


@dataclass(eq=False)
class Mark:
    """One without fields."""


def test_its_objects_are_made_compared_shown_and_copied_as_ever() -> None:
    one, other = Place("a"), Place("a", ["noted"])
    assert (one, hash(one), one.notes, one.size, one.twice) == (other, hash(other), [], 3, 6)
    assert repr(other) == "Place(name='a', notes=['noted'])"
    assert replace(one, size=4) == copy.copy(Place("a", size=4)) == pickle.loads(pickle.dumps(Place("a", size=4)))
    assert {each.name for each in fields(Place)} == {"name", "notes", "size"}
    assert not hasattr(Place, "notes")
    assert Place.size == 3


def test_a_class_built_on_another_has_its_fields_too() -> None:
    room = Room("a", floor=1)
    assert repr(room) == "Room(name='a', notes=[], floor=1)"
    assert [each.name for each in fields(room)] == ["name", "notes", "size", "floor"]
    assert room != Place("a")
    with pytest.raises(AssertionError):
        Room("a", floor=-1)


@pytest.mark.parametrize("name", ["name", "unknown"])
def test_what_is_frozen_cannot_be_changed(name: str) -> None:
    place = Place("a")
    with pytest.raises(FrozenInstanceError, match=f"cannot assign to field '{name}'"):
        setattr(place, name, "b")
    with pytest.raises(FrozenInstanceError, match=f"cannot delete field '{name}'"):
        delattr(place, name)


def test_other_settings_hold() -> None:
    box = Box([1])
    box.content = [2]
    assert box == Box([2])
    assert Mark() != Mark()
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'content'"):
        Box()  # type: ignore[call-arg]


def test_nothing_is_compiled_until_the_class_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    compile_now: Any = dataclasses.dataclass

    def note(**settings: bool) -> Any:
        def compile_noted(cls: type[Any]) -> Any:
            compiled.append(cls.__name__)
            return compile_now(**settings)(cls)

        return compile_noted

    monkeypatch.setattr(dataclasses, "dataclass", note)

    @dataclass(frozen=True)
    class Asked:
        name: str

    @dataclass(frozen=True)
    class Made:
        name: str

    assert compiled == []
    assert is_dataclass(Asked)
    Made("a")
    Made("b")
    assert compiled == ["Asked", "Made"]


def test_threads_can_make_the_first_object_at_once() -> None:
    for _ in range(20):

        @dataclass(frozen=True)
        class Made:
            name: str
            notes: list[str] = field(default_factory=list)

        made: list[Any] = []
        together = threading.Barrier(8)

        def make(cls: Any = Made, together: threading.Barrier = together, made: list[Any] = made) -> None:
            together.wait()
            made.append(cls("a"))

        threads = [threading.Thread(target=make) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert made == [Made("a")] * 8
