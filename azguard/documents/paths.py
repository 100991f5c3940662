r"""Paths into a JSON document: ``a.b``, ``items[0]``, ``items[-1]``, ``a\\.b``, or JSON Pointer ``/a/b``."""

import re
from typing import NamedTuple

from azguard.documents.json_text import UnreadValue
from azguard.errors import TransformFailed, UsageError
from azguard.frozen import frozen
from azguard.times import say_count

_BRACKET = re.compile(r"\[(0|-?[1-9][0-9]{0,17}|-)\]")
_POINTER_INDEX = re.compile(r"0|[1-9][0-9]{0,17}")
_SPECIAL = ".[]=\\/"


@frozen
class Step:
    """One step down.

    A token of a JSON Pointer may be a name and an index at once: whether it meets an object or an array decides.
    """

    #: The name of a member of an object.
    name: str | None = None
    #: The position of an element of an array; a negative one counts from its end.
    index: int | None = None
    #: Whether it is the place after the last element.
    end: bool = False

    def __str__(self) -> str:
        if self.name is not None:
            return re.sub(r"([.\[\]=\\]|^/)", r"\\\1", self.name)
        return "[-]" if self.end else f"[{self.index}]"


class Path(NamedTuple):
    """The steps from the document's top to one value."""

    text: str
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return self.text


def split(text: str) -> tuple[str, str | None]:
    r"""Return the path and what follows its first unescaped ``=``, or None without one.

    A JSON Pointer has no backslash escapes: a name with ``=`` in it is written in dotted form, ``a\\=b``.
    """
    pattern = r"([^=]*)=(.*)" if text.startswith("/") else r"((?:[^=\\]|\\.)*)=(.*)"
    match = re.fullmatch(pattern, text, re.DOTALL)
    return (match[1], match[2]) if match else (text, None)


def parse(text: str) -> Path:
    """Return the path a text names.

    Raises:
        UsageError: it is empty or malformed.
    """
    if not text:
        raise UsageError("the path is empty", reason="path_malformed")
    return Path(text, _parse_pointer(text) if text.startswith("/") else _parse_dotted(text))


def _parse_pointer(text: str) -> tuple[Step, ...]:
    if re.search(r"~(?![01])", text):
        raise UsageError(f"{text!r} is not a JSON Pointer", reason="pointer_malformed")
    return tuple(_token(token.replace("~1", "/").replace("~0", "~")) for token in text.split("/")[1:])


def _token(name: str) -> Step:
    return Step(name, int(name) if _POINTER_INDEX.fullmatch(name) else None, name == "-")


def _parse_dotted(text: str) -> tuple[Step, ...]:
    steps: list[Step] = []
    position = 0
    while position < len(text):
        bracket = _BRACKET.match(text, position)
        if bracket:
            at_end = bracket[1] == "-"
            steps.append(Step(index=None if at_end else int(bracket[1]), end=at_end))
            position = bracket.end()
            continue
        if steps:
            if text[position] != ".":
                raise UsageError(f"{text!r} is not a path", reason="path_malformed")
            position += 1
        name, position = _name(text, position)
        steps.append(Step(name))
    return tuple(steps)


def _name(text: str, position: int) -> tuple[str, int]:
    match = re.compile(r"(?:[^.\[\]=\\]|\\.)+", re.DOTALL).match(text, position)
    if match is None:
        raise UsageError(f"{text!r} is not a path", reason="path_name_malformed")
    wrong = re.search(r"\\([^.\[\]=\\/])", re.sub(r"\\\\", "", match[0]))
    if wrong:
        raise UsageError(
            f"{text!r}: \\{wrong[1]} is not an escape",
            reason="path_escape_unknown",
            values={"escaped": _SPECIAL},
        )
    return re.sub(r"\\(.)", r"\1", match[0], flags=re.DOTALL), match.end()


class Missing:
    """There is no such value."""


MISSING = Missing()


def find(document: object, path: Path) -> object:
    """Return the value at the path, or MISSING."""
    value = document
    for step in path.steps:
        value = _child(value, step)
        if isinstance(value, Missing):
            break
    return value


def remove(document: object, path: Path) -> None:
    """Remove the value at the path, if there is one."""
    container = find(document, Path(path.text, path.steps[:-1]))
    last = path.steps[-1]
    if isinstance(_child(container, last), Missing):
        return
    if isinstance(container, dict):
        del container[last.name]
    elif isinstance(container, list) and last.index is not None:
        del container[last.index]


def put(document: object, path: Path, value: object) -> None:
    """Set the value at the path, making missing objects on the way; index == length and ``[-]`` append."""
    container = document
    for depth, step in enumerate(path.steps[:-1]):
        child = _child(container, step)
        if isinstance(child, Missing):
            # Only [0] and [-] ask for an array; a pointer's token makes an object.
            child = {} if path.steps[depth + 1].name is not None else []
            _assign(container, path, depth, child)
        container = child
    _assign(container, path, len(path.steps) - 1, value)


def _child(container: object, step: Step) -> object:
    if isinstance(container, dict):
        return MISSING if step.name is None else container.get(step.name, MISSING)
    if isinstance(container, list) and step.index is not None:
        return container[step.index] if -len(container) <= step.index < len(container) else MISSING
    return MISSING


def _assign(container: object, path: Path, depth: int, value: object) -> None:
    step = path.steps[depth]
    if isinstance(container, dict) and step.name is not None:
        container[step.name] = value
    elif isinstance(container, list) and (step.end or step.index == len(container)):
        container.append(value)
    elif isinstance(container, list) and step.index is not None:
        if not -len(container) <= step.index < len(container):
            raise TransformFailed(
                f"{path}: {_show(path, depth)} has {say_count(len(container), 'element')}, there is no [{step.index}]",
                reason="path_index_too_large",
            )
        container[step.index] = value
    else:
        raise _wrong_kind(container, path, depth)


def _wrong_kind(container: object, path: Path, depth: int) -> TransformFailed:
    wanted = "an object" if path.steps[depth].name is not None else "an array"
    return TransformFailed(
        f"{path}: {_show(path, depth)} is {describe(container)}, not {wanted}",
        reason="path_names_array" if isinstance(container, list) else None,
    )


def _show(path: Path, depth: int) -> str:
    """Return the part of the path above a step, in the path's own notation."""
    if depth == 0:
        return "the document"
    if path.text.startswith("/"):
        return "/".join(path.text.split("/")[: depth + 1])
    return re.sub(r"\.(?=\[)", "", ".".join(map(str, path.steps[:depth])))


def describe(value: object) -> str:
    """Return the kind of a JSON value, in words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, UnreadValue):
        return f"{value.text} (no value of JSON)"
    return "an array" if isinstance(value, list) else "a number"
