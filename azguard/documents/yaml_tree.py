"""YAML text as a tree of nodes that know where they stand in it, so that an edit can leave all else as it is.

ruamel.yaml parses, and it is imported only when there is YAML. Nothing is constructed: a tag such as ``!!python`` is
text. Values are those of ``json_text``, and ``UnreadValue`` for what JSON does not know. An alias has the very value of
its anchor, not a copy.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from azguard.documents import controls, json_text
from azguard.documents.json_text import LiteralNumber, UnreadValue

_STRING_TAG = "tag:yaml.org,2002:str"
_PROPERTIES = re.compile(r"(?:(?:&[^\s,\[\]{}]+|![^\s]*)(?=[\s,\]}]|$)\s*)+")
_MERGE = "<<"
_STYLE = json_text.Style()
#: From the end of a key to its value.
TO_COLON = re.compile(r"[ \t]*(?:(?:#[^\n]*)?\r?\n[ \t]*)*:")
# From the end of an element to the next.
_TO_VALUE = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\r?\n)*[ \t]*-")
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS = {**dict.fromkeys(("true", "True", "TRUE"), True), **dict.fromkeys(("false", "False", "FALSE"), False)}
# What YAML 1.1 or 1.2 takes for something else than a text, and JSON does not know or spells in another way.
_UNREAD = re.compile(
    r"""y|n|yes|no|on|off|=|<<                                         # booleans of YAML 1.1, and its special keys
    |[-+]?(0b[01_]+|0x[0-9a-f_]+|0o[0-7_]+)                            # other bases
    |[-+]?([0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(e[-+]?[0-9]+)?       # leading zeros and plus signs, octals, 1_000
    |[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?                      # base 60
    |[-+]?\.inf|\.nan
    |[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([t\s].*)?                          # dates and times
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
# A text that needs no quotes, in brackets neither: narrower than YAML allows.
_WORD = r"[\w./@%+=~^:;$()<>!*&-]+"
_PLAIN = re.compile(rf"(?=[\w/]){_WORD}(?: (?=[\w/(]){_WORD})*")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0"}


class NotYaml(ValueError):
    """The text is not YAML that can be edited here; the message says what is wrong and where."""


class NodeKind(Enum):
    """What a node is."""

    SCALAR = "scalar"
    MAPPING = "mapping"
    SEQUENCE = "sequence"
    ALIAS = "alias"


class MergedMapping(dict[str, object]):
    """A mapping's own members, and those that merge keys (``<<``) add to it, which are found but are not its own."""

    def __init__(self) -> None:
        super().__init__()
        self.bases: list[MergedMapping] = []

    def get(self, name: str, default: object = None) -> object:
        """Return its own member, else the first that a merge key adds."""
        if name in self:
            return self[name]
        found = (base.get(name, self) for base in self.bases)
        return next((each for each in found if each is not self), default)


@dataclass(eq=False)
class YamlNode:
    """One node of the text."""

    kind: NodeKind
    #: Where it begins: its anchor and tag, and its value.
    start: int
    value_start: int
    #: Where its text ends, without what follows: blanks, comments, the end of the line.
    end: int
    value: Any
    anchor: str | None = None
    #: Whether it stands in brackets, or is such a collection itself.
    is_flow: bool = False
    #: Of a scalar: its quotes, ``|`` or ``>``.
    style: str | None = None
    #: Of a scalar: its text, before it is read as a value.
    text: str = ""
    #: Of a mapping: its keys, merge keys among them.
    keys: list["YamlNode"] = field(default_factory=list)
    #: Of a collection: its values, in a mapping one for each key.
    items: list["YamlNode"] = field(default_factory=list)

    @property
    def is_block(self) -> bool:
        """Return whether it is a collection without brackets."""
        return self.kind in (NodeKind.MAPPING, NodeKind.SEQUENCE) and not self.is_flow

    def is_merge(self, position: int) -> bool:
        key = self.keys[position]
        return key.style is None and key.text == _MERGE


def parse(text: str) -> YamlNode | None:
    """Return the one document of a text; None if it has nothing but comments."""
    found = parse_all(text)
    if len(found) > 1:
        raise NotYaml(f"it has {len(found)} documents")
    return found[0] if found else None


def parse_all(text: str) -> list[YamlNode]:
    """Return the documents of a text."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        return _Builder(text, iter(YAML(typ="safe", pure=True).parse(text))).documents()
    except YAMLError as error:
        raise NotYaml(_describe(error)) from None
    except RecursionError:
        raise NotYaml("it is nested too deeply") from None


def _describe(error: Exception) -> str:
    mark: Any = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error).splitlines()[0]
    return str(problem) if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: {problem}"


class _Builder:
    """Makes nodes of the events of the parser."""

    def __init__(self, text: str, events: Iterator[Any]) -> None:
        self._text = text
        self._events = events
        self._anchors: dict[str, YamlNode | None] = {}

    def documents(self) -> list[YamlNode]:
        found = []
        for event in self._events:
            if type(event).__name__ == "DocumentStartEvent":
                self._anchors = {}
                found.append(self._node(next(self._events)))
        # Comments alone are a document without a value.
        return [] if len(found) == 1 and found[0].start == found[0].end else found

    def _node(self, event: Any) -> YamlNode:
        name = type(event).__name__
        start = event.start_mark.index
        if name == "AliasEvent":
            return self._alias(event)
        anchor = event.anchor
        if anchor is not None:
            self._anchors[anchor] = None  # Under way: what refers to it from inside would have no end.
        properties = _PROPERTIES.match(self._text, start) if anchor is not None or event.tag is not None else None
        value_start = start if properties is None else properties.end()
        if name == "ScalarEvent":
            node = self._scalar(event, start, value_start)
        else:
            node = self._collection(event, start, value_start)
        node.anchor = anchor
        if anchor is not None:
            self._anchors[anchor] = node
        return node

    def _alias(self, event: Any) -> YamlNode:
        start, end = event.start_mark.index, event.end_mark.index
        meant = self._anchors.get(event.anchor)
        if meant is None:
            why = "stands inside what it names" if event.anchor in self._anchors else "names no anchor before it"
            raise NotYaml(f"line {event.start_mark.line + 1}: the alias *{event.anchor} {why}")
        return YamlNode(NodeKind.ALIAS, start, start, end, meant.value, event.anchor)

    def _scalar(self, event: Any, start: int, value_start: int) -> YamlNode:
        tag = None if event.tag is None else str(event.tag)
        value: object = event.value
        if tag not in (None, _STRING_TAG):
            value = UnreadValue(f"{tag} {event.value}")
        elif event.style is None and tag is None:
            value = resolve(event.value)
        end = event.end_mark.index
        if event.style in ("|", ">"):
            end = self._end_of_block_scalar(value_start, end)
        return YamlNode(NodeKind.SCALAR, start, min(value_start, end), end, value, style=event.style, text=event.value)

    def _end_of_block_scalar(self, start: int, end: int) -> int:
        header = self._text[start:].partition("\n")[0].partition("#")[0]
        body = self._text[start:end]
        # Empty lines at the end are content only if they are kept by a plus sign.
        return start + len(body.removesuffix("\n").removesuffix("\r") if "+" in header else body.rstrip())

    def _collection(self, event: Any, start: int, value_start: int) -> YamlNode:
        is_mapping = type(event).__name__ == "MappingStartEvent"
        node = YamlNode(NodeKind.MAPPING if is_mapping else NodeKind.SEQUENCE, start, value_start, start, None)
        node.is_flow = bool(event.flow_style)
        node.value = MergedMapping() if is_mapping else []
        while not type(event := next(self._events)).__name__.endswith("EndEvent"):
            item = self._node(event)
            if is_mapping:
                node.keys.append(item)
                item = self._node(next(self._events))
            self._place_if_empty(node, item)
            node.items.append(item)
            if is_mapping:
                self._add_member(node)
            else:
                node.value.append(item.value)
        node.end = event.end_mark.index if node.is_flow else node.items[-1].end
        return node

    def _place_if_empty(self, parent: YamlNode, item: YamlNode) -> None:
        """Put a value without text where its text would stand: the parser puts it where the next token is."""
        if item.kind is not NodeKind.SCALAR or item.style is not None or item.text:
            return
        if parent.kind is NodeKind.MAPPING:
            before, lead = parent.keys[-1].end, TO_COLON
        else:
            before, lead = parent.items[-1].end if parent.items else parent.value_start, _TO_VALUE
        found = lead.match(self._text, before)
        if item.start == item.value_start:
            item.start = item.value_start = before if found is None else found.end()
        item.end = item.value_start

    def _add_member(self, node: YamlNode) -> None:
        key, item = node.keys[-1], node.items[-1]
        if key.kind is not NodeKind.SCALAR:
            raise NotYaml(f"line {self._line(key)}: a key that is no scalar")
        name = key.text  # by which a path finds it, whatever it means
        if node.is_merge(len(node.keys) - 1):
            bases = item.value if isinstance(item.value, list) else [item.value]
            if not all(isinstance(base, MergedMapping) for base in bases):
                raise NotYaml(f"line {self._line(key)}: what << merges is no mapping")
            node.value.bases.extend(bases)
            return
        if name in node.value:
            raise NotYaml(f"line {self._line(key)}: the key {name!r} appears twice in one mapping")
        node.value[name] = item.value

    def _line(self, node: YamlNode) -> int:
        return self._text.count("\n", 0, node.start) + 1


def equal(first: object, second: object, seen: set[tuple[int, int]] | None = None) -> bool:
    """Return whether two values are the same; what aliases share is compared once, however often it is there."""
    seen = set() if seen is None else seen
    if first is second or (id(first), id(second)) in seen:
        return True
    if isinstance(first, dict) and isinstance(second, dict):
        seen.add((id(first), id(second)))
        return first.keys() == second.keys() and all(equal(value, second[key], seen) for key, value in first.items())
    if isinstance(first, list) and isinstance(second, list):
        seen.add((id(first), id(second)))
        return len(first) == len(second) and all(equal(*pair, seen) for pair in zip(first, second, strict=True))
    if isinstance(first, int | LiteralNumber) and isinstance(second, int | LiteralNumber):
        return json_text.render(first, _STYLE) == json_text.render(second, _STYLE)
    return json_text.same(first, second)


def resolve(text: str) -> object:
    """Return the value of a plain scalar; one that JSON lacks is an ``UnreadValue``, which keeps its spelling."""
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    number = json_text.read_spelled(text)
    if number is not None:
        return number
    return UnreadValue(text) if _UNREAD.fullmatch(text) else text


def write(text: str, style: str | None = None) -> str:
    """Return the scalar of a text: in the quotes of ``style`` if possible, and without only where that is safe."""
    if style == "'" and text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    if (
        style != '"'
        and _PLAIN.fullmatch(text)
        and not text.endswith(":")
        and ": " not in text
        and resolve(text) == text
    ):
        return text
    return '"' + "".join(map(_escape, text)) + '"'


def _escape(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    return controls.spell(character)
