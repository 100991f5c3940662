"""JSON text that is changed in place: every part that an edit does not touch keeps its bytes.

Values are dict, list, str, bool, None, int and ``LiteralNumber``, which remembers its spelling and has exact sums.
"""

import json
import re
from collections.abc import Callable, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, Inexact, InvalidOperation
from typing import NamedTuple, Self

from azguard.frozen import frozen

# Python refuses to convert longer integers (CVE-2020-10735); they are kept as LiteralNumber, which has no limit.
_LONGEST_INT = 4000
# 1e999999 + 1 would have a million digits; past this many a sum is refused rather than rounded.
_EXACT = Context(prec=20_000, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[Inexact])

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_SPACE = re.compile(r"[ \t\r\n]*")
_STRING_OR_CONSTANT = re.compile(r'"(?:[^"\\]|\\.)*"|(NaN|-?Infinity)')
# Finds where a value ends, at the speed of C; what it returns as the value is not used.
_SCANNER = json.JSONDecoder(parse_int=str, parse_float=str)
#: Its own errors are ValueErrors. Others it lets through: the one of Python for ``1 < 'x'``, or for the ceiling of NaN.
JMESPATH_FAILURES = (ArithmeticError, AttributeError, TypeError, ValueError)


@frozen
class UnreadValue:
    """A scalar of YAML that JSON has no value for, such as a date, ``0x1F`` or ``yes``; only its spelling is known."""

    text: str


class LiteralNumber(Decimal):
    """A number that remembers how it was written: 1.0, 1.10, 1e3 and -0 stay as they are."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Self:
        """Return the number of a JSON number's text."""
        try:
            number = super().__new__(cls, text)
        except InvalidOperation:
            raise ValueError(f"the number {text[:40]} is out of range") from None
        number.text = text
        return number

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self


def _parse_number(text: str) -> int | LiteralNumber:
    """Return the value of a JSON number's text: an int where that keeps the spelling."""
    if re.fullmatch(r"-?(0|[1-9][0-9]*)", text) and text != "-0" and len(text) < _LONGEST_INT:
        return int(text)
    return LiteralNumber(text)


def read_spelled(text: str) -> int | LiteralNumber | None:
    """Return the number that a text holds and nothing else, or None."""
    if not _NUMBER.fullmatch(text):
        return None
    try:
        return _parse_number(text)
    except ValueError:
        return None


def add_exactly(first: int | LiteralNumber, second: int | LiteralNumber) -> int | LiteralNumber | None:
    """Return the exact sum, or None if it is infinite to most readers or has too many digits to write."""
    if isinstance(first, int) and isinstance(second, int):
        return first + second
    try:
        total = LiteralNumber(str(_EXACT.add(Decimal(first), Decimal(second))))
    except Inexact:
        return None
    return None if is_infinite(total) else total


def is_infinite(number: int | LiteralNumber) -> bool:
    """Return whether readers that use double precision, which is most of them, take it for infinity.

    A whole number written out in full is not: such readers as have integers have them at this size or refuse.
    """
    whole = isinstance(number, int) or re.fullmatch(r"-?[0-9]+", number.text) is not None
    return not whole and float(number) in (float("inf"), float("-inf"))


class NotJson(ValueError):
    """The text is not one JSON value; the message says what is wrong and where."""


def parse(text: str) -> object:
    """Return the one JSON value of the text.

    Raises:
        NotJson: it is not JSON, holds NaN or Infinity, or an object in it has the same key twice.
    """
    return _decode(_DECODER, text)


def check(text: str) -> None:
    """Refuse a text that ``parse`` would refuse, without keeping its values in memory."""
    _decode(_CHECKER, text)


def _decode(decoder: json.JSONDecoder, text: str) -> object:
    try:
        return decoder.decode(text)
    except json.JSONDecodeError as error:
        raise NotJson(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    except _Constant as constant:
        at = next(match.start() for match in _STRING_OR_CONSTANT.finditer(text) if match[1])
        line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
        raise NotJson(f"line {line}, column {column}: {constant} is not a JSON number") from None
    except RecursionError:
        raise NotJson("it is nested too deeply") from None
    except NotJson:
        raise
    except ValueError as error:
        raise NotJson(str(error)) from None


class _Constant(Exception):
    """NaN or Infinity, which Python's json would accept."""


def _refuse_constant(name: str) -> object:
    raise _Constant(name)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise NotJson(f"the key {json.dumps(twice)} appears twice in one object")
    return members


def _check_unique(pairs: list[tuple[str, object]]) -> None:
    if len({key for key, _ in pairs}) < len(pairs):
        _unique(pairs)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_int=_parse_number, parse_float=_parse_number, parse_constant=_refuse_constant
)
_CHECKER = json.JSONDecoder(
    object_pairs_hook=_check_unique, parse_int=str, parse_float=str, parse_constant=_refuse_constant
)


def same(first: object, second: object) -> bool:
    """Return whether two values are the same JSON; 1, 1.0 and true differ, the order of keys is free."""
    if first is second:
        return True
    if isinstance(first, dict) and isinstance(second, dict):
        return len(first) == len(second) and all(
            key in second and same(value, second[key]) for key, value in first.items()
        )
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, LiteralNumber) and isinstance(second, LiteralNumber):
        return first.text == second.text
    return type(first) is type(second) and first == second


class Style(NamedTuple):
    """How new members are written: None as indentation means on one line."""

    indent: str | None = None
    newline: str = "\n"
    colon: str = ": "
    ascii_only: bool = False

    @property
    def comma(self) -> str:
        return ", " if self.colon.endswith(" ") else ","

    def string(self, text: str) -> str:
        """Return the JSON string; a lone surrogate, which UTF-8 cannot hold, is escaped."""
        literal = json.dumps(text, ensure_ascii=self.ascii_only)
        return literal if literal.isascii() or _encodable(literal) else json.dumps(text)


def _encodable(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _detect(text: str) -> Style:
    """Return the style a JSON text is written in, as far as it shows one."""
    newline = "\r\n" if "\r\n" in text else "\n"
    # A raw line break is never inside a JSON string, so the first one after a bracket shows the indentation.
    opened = re.search(r"^([ \t]*).*?[{\[][ \t]*\r?\n([ \t]*)(?=[^\s}\]])", text, re.MULTILINE)
    indent = None if opened is None else opened[2].removeprefix(opened[1])
    colon = re.search(r'"[ \t]*:[ \t]*', text)
    escaped = re.search(r"\\u(?!00[0-7])", text) is not None
    return Style(
        indent=indent,
        newline=newline,
        colon=colon[0].lstrip('"') if colon else ": ",
        ascii_only=escaped and text.isascii(),
    )


def render(value: object, style: Style, indent: str = "") -> str:
    """Return the JSON text of a value that stands on a line indented by ``indent``."""
    inner = indent + (style.indent or "")
    if isinstance(value, dict):
        items = [f"{style.string(name)}{style.colon}{render(item, style, inner)}" for name, item in value.items()]
        return _enclose("{", items, "}", style, indent)
    if isinstance(value, list):
        return _enclose("[", [render(item, style, inner) for item in value], "]", style, indent)
    if isinstance(value, str):
        return style.string(value)
    return value.text if isinstance(value, LiteralNumber | UnreadValue) else json.dumps(value)


def _enclose(opening: str, items: list[str], closing: str, style: Style, indent: str) -> str:
    if not items:
        return opening + closing
    if style.indent is None:
        return opening + style.comma.join(items) + closing
    lead = style.newline + indent + style.indent
    return f"{opening}{lead}{f',{lead}'.join(items)}{style.newline}{indent}{closing}"


def rewrite(text: str, old: object, new: object) -> str:
    """Return the text, which holds ``old``, changed to hold ``new``.

    Every value that is the same in both keeps its text, byte for byte; new members look like their siblings.
    """
    start = _skip_space(text, 0)
    end = _SCANNER.raw_decode(text, start)[1]
    return text[:start] + _value(text, start, end, old, new, style=_detect(text), indent="") + text[end:]


class _Member(NamedTuple):
    """One member of a container in the text."""

    #: The space before it.
    lead: str
    #: The name of an object's member, as it is written; empty in an array.
    label: str
    #: The colon, with the space around it.
    colon: str
    #: Where its value begins and ends.
    start: int
    end: int
    #: The space behind it, before a comma or the end.
    trail: str


def _skip_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return position if match is None else match.end()


def _members(text: str, start: int) -> list[_Member]:
    """Return the members of the container that opens at ``start``."""
    members: list[_Member] = []
    position = start + 1
    while True:
        begin = first = _skip_space(text, position)
        if text[begin] in "]}":
            return members
        colon = ""
        if text[start] == "{":
            name_end = _SCANNER.raw_decode(text, begin)[1]
            first = _skip_space(text, _skip_space(text, name_end) + 1)
            colon = text[name_end:first]
        end = _SCANNER.raw_decode(text, first)[1]
        after = _skip_space(text, end)
        members.append(_Member(text[position:begin], text[begin:first], colon, first, end, text[end:after]))
        if text[after] != ",":
            return members
        position = after + 1


def _value(text: str, start: int, end: int, old: object, new: object, *, style: Style, indent: str) -> str:
    if same(old, new):
        return text[start:end]
    if isinstance(old, dict) and isinstance(new, dict) and new:
        positions = {name: position for position, name in enumerate(old)}
        sources = [positions.get(name) for name in new]
        return _container(text, start, list(old.values()), sources, new, style=style, indent=indent)
    if isinstance(old, list) and isinstance(new, list) and new:
        return _container(text, start, old, find_sources(old, new, same), new, style=style, indent=indent)
    return render(new, style, indent)


def find_sources(
    old: Sequence[object], new: Sequence[object], is_same: Callable[[object, object], bool]
) -> list[int | None]:
    """Return for each new element the old one it was made from: same beginning, same end, pairs between."""
    shorter = min(len(old), len(new))
    head = next((i for i in range(shorter) if not is_same(old[i], new[i])), shorter)
    tail = next((i for i in range(shorter - head) if not is_same(old[-1 - i], new[-1 - i])), shorter - head)
    between: list[int | None] = [i if i < len(old) - tail else None for i in range(head, len(new) - tail)]
    return [*range(head), *between, *range(len(old) - tail, len(old))]


def _container(
    text: str,
    start: int,
    old: list[object],
    sources: Sequence[int | None],
    new: dict[str, object] | list[object],
    *,
    style: Style,
    indent: str,
) -> str:
    """Return the text of a container whose members come from old ones (``sources``) or are new (None)."""
    members = _members(text, start)
    first, following, closing = _leads(members, style, indent)
    values = list(new.values()) if isinstance(new, dict) else new
    names = list(new) if isinstance(new, dict) else []
    pieces = []
    for position, (source, value) in enumerate(zip(sources, values, strict=True)):
        member = None if source is None else members[source]
        lead = first
        if position > 0:
            lead = member.lead if member and source else following
        inner = lead.rpartition("\n")[2] if "\n" in lead else indent
        if member is None or source is None:
            colon = members[-1].colon if members else style.colon
            label = style.string(names[position]) + colon if names else ""
            pieces.append(lead + label + render(value, style, inner))
        else:
            trail = "" if source == len(members) - 1 else member.trail
            body = _value(text, member.start, member.end, old[source], value, style=style, indent=inner)
            pieces.append(lead + member.label + body + trail)
    return text[start] + ",".join(pieces) + closing + ("}" if text[start] == "{" else "]")


def _leads(members: list[_Member], style: Style, indent: str) -> tuple[str, str, str]:
    """Return the space before the first member, before any other, and before the closing bracket."""
    if not members:
        if style.indent is None:
            return "", style.comma[1:], ""
        lead = style.newline + indent + style.indent
        return lead, lead, style.newline + indent
    first = members[0].lead
    following = first if "\n" in first else style.comma[1:]
    if len(members) > 1:
        following = members[-1].lead
    return first, following, members[-1].trail
