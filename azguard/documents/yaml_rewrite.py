"""Edits of YAML text, which is not written anew: what an edit does not touch keeps its bytes.

An edit becomes cuts: places of the text that something else takes. A line that goes takes the comment behind it along;
comments on lines of their own stay. An edit is checked before, and its result is read again and compared, so that it
changes what it names alone.
"""

import copy
import re
from collections.abc import Callable, Sequence

from azguard.documents import json_text, yaml_tree
from azguard.documents.paths import Path, Step
from azguard.documents.yaml_tree import TO_COLON, MergedMapping, NodeKind, NotYaml, YamlNode, equal
from azguard.errors import TransformFailed
from azguard.frozen import frozen

# As far as a text does not show it.
_STEP = 2
_EXPLICIT = re.compile(r"\?[ \t]+\Z")
# To the first dash of a sequence: comments and empty lines may come before it.
_TO_DASH = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\r?\n)*[ \t]*(?=-)")


@frozen
class YamlLayout:
    """How a text is laid out, as far as it shows that."""

    newline: str = "\n"
    #: How many columns a mapping in a mapping is indented by, and a sequence in one.
    step: int = _STEP
    dash: int = _STEP


def rewrite(text: str, root: YamlNode | None, new: object) -> str:
    """Return the text, whose one document is ``root``, changed so that it means ``new``.

    Not guaranteed where the text is laid out in an uncommon way: the caller parses the result and compares.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    if root is None:
        lines = _lines(new, YamlLayout(newline)) if _is_filled(new) else [_flow(new)]
        lead = "" if not text or text.endswith("\n") else newline
        return text + lead + newline.join(lines) + newline
    return _Rewrite(text, _detect(text, root, newline)).run(root, new)


def _detect(text: str, root: YamlNode, newline: str) -> YamlLayout:
    steps = {NodeKind.MAPPING: _STEP, NodeKind.SEQUENCE: _STEP}
    found: set[NodeKind] = set()
    nodes = [root]
    while nodes and len(found) < len(steps):
        node = nodes.pop(0)
        for item in node.items:
            if node.kind is NodeKind.MAPPING and item.is_block and node.is_block and item.kind not in found:
                # A mapping whose first key stands on the line of its own key would be no YAML.
                steps[item.kind] = _column(text, _first(text, item)) - _column(text, _first(text, node))
                found.add(item.kind)
        nodes.extend(node.items)
    return YamlLayout(newline, steps[NodeKind.MAPPING], steps[NodeKind.SEQUENCE])


class _Rewrite:
    """One change of one text."""

    def __init__(self, text: str, layout: YamlLayout) -> None:
        self._text = text
        self._layout = layout
        #: Start, end, and what stands there instead.
        self._cuts: list[tuple[int, int, str]] = []
        #: The new values of anchors, which their aliases follow.
        self._anchored: dict[str, object] = {}

    def run(self, root: YamlNode, new: object) -> str:
        """Return the text that means ``new``."""
        self._change(root, new, None)
        pieces = []
        position = 0
        for start, end, piece in sorted(self._cuts, key=lambda cut: cut[:1]):
            pieces += [self._text[position : max(start, position)], piece]
            position = max(end, position)
        return "".join(pieces) + self._text[position:]

    def _change(self, node: YamlNode, new: object, key: YamlNode | None) -> None:
        """Change a node; ``key`` is the key in front of it, None in a sequence and at the top."""
        if node.kind is NodeKind.ALIAS:
            if not equal(node.value, new) and new is not self._anchored.get(str(node.anchor)):
                self._replace(node, new, key)
            return
        if node.anchor is not None:
            self._anchored[node.anchor] = new
        if equal(node.value, new):
            return
        if node.kind is NodeKind.MAPPING and isinstance(new, dict) and self._change_mapping(node, new):
            return
        if node.kind is NodeKind.SEQUENCE and isinstance(new, list) and new and self._change_sequence(node, new):
            return
        self._replace(node, new, key)

    # One value for another.

    def _replace(self, node: YamlNode, new: object, key: YamlNode | None) -> None:
        anchor = f"&{node.anchor} " if node.anchor is not None and node.kind is not NodeKind.ALIAS else ""
        style = node.style if node.kind is NodeKind.SCALAR else None
        spread = _is_filled(new) and not node.is_flow and not self._has_comment_behind(node.end)
        if key is None or not (spread or node.is_block or node.start == node.end):
            start = node.start
            column = _column(self._text, start)
            lines = _lines(new, self._layout) if spread else [_flow(new, style)]
            if node.start == node.end and key is None:
                lines[0] = f" {lines[0]}"  # right behind a dash
                column += 1
            if anchor and spread:
                lines = [anchor.rstrip(), *lines]
            elif anchor:
                lines[0] = anchor + lines[0]
            self._cut(start, node.end, (self._layout.newline + " " * column).join(lines))
            return
        colon = TO_COLON.match(self._text, key.end)
        start = key.end if colon is None else colon.end()
        if not spread:
            self._cut(start, max(start, node.end), f"{':' if colon is None else ''} {anchor}{_flow(new, style)}")
            return
        indent = _column(self._text, _begin(self._text, key)) + (
            self._layout.dash if isinstance(new, list) else self._layout.step
        )
        lead = self._layout.newline + " " * indent
        self._cut(start, node.end, (f" {anchor}".rstrip()) + "".join(lead + line for line in _lines(new, self._layout)))

    # Collections.

    def _change_mapping(self, node: YamlNode, new: dict[str, object]) -> bool:
        """Change members; return whether the mapping itself can stay."""
        kept = [at for at, key in enumerate(node.keys) if node.is_merge(at) or key.text in new]
        if not kept:
            return False
        for at in kept:
            if not node.is_merge(at):
                self._change(node.items[at], new[node.keys[at].text], node.keys[at])
        own = node.value.keys()
        added = [(name, value) for name, value in new.items() if name not in own]
        self._drop(node, kept, [_begin(self._text, key) for key in node.keys])
        if node.is_flow:
            members = "".join(f", {_flow(name)}: {_flow(value)}" for name, value in added)
            self._insert(node.items[kept[-1]].end, members)
        elif added:
            lines = _lines(dict(added), self._layout)
            self._add_lines(node.items[kept[-1]].end, _column(self._text, _first(self._text, node)), lines)
        return True

    def _change_sequence(self, node: YamlNode, new: list[object]) -> bool:
        """Change elements; return whether the sequence itself can stay."""
        sources = json_text.find_sources([item.value for item in node.items], new, equal)
        kept = [at for at in sources if at is not None]
        if not kept or sources[0] is None:
            return False
        starts = [item.start for item in node.items] if node.is_flow else self._find_dashes(node)
        before = kept[0]
        for at, value in zip(sources, new, strict=True):
            if at is not None:
                self._change(node.items[at], value, None)
                before = at
            elif node.is_flow:
                self._insert(node.items[before].end, f", {_flow(value)}")
            else:
                self._add_lines(node.items[before].end, _column(self._text, starts[0]), _lines([value], self._layout))
        self._drop(node, kept, starts)
        return True

    def _find_dashes(self, node: YamlNode) -> list[int]:
        """Return where the dashes of a sequence stand: all in one column, each before its element."""
        first = _first(self._text, node)
        column = _column(self._text, first)
        dashes = [first]
        for item in node.items[1:]:
            line = self._line_start(item.start)
            while self._text[line + column : line + column + 1] != "-":
                line = self._line_start(line - 1)
            dashes.append(line + column)
        return dashes

    def _drop(self, node: YamlNode, kept: Sequence[int], starts: Sequence[int]) -> None:
        """Remove the members that are not kept; at least one is."""
        gone = [at for at in range(len(node.items)) if at not in set(kept)]
        for at in gone:
            if at < kept[0] and (node.is_flow or not self._begins_line(starts[0])):
                # What follows moves up to where the first stood.
                self._cut(starts[at], starts[at + 1], "")
            elif node.is_flow:
                self._cut(node.items[at - 1].end, node.items[at].end, "")
            else:
                self._cut(*self._lines_of(starts[at], node.items[at].end), "")

    # Places.

    def _cut(self, start: int, end: int, piece: str) -> None:
        self._cuts.append((start, end, piece))

    def _insert(self, at: int, piece: str) -> None:
        if piece:
            self._cut(at, at, piece)

    def _add_lines(self, end: int, column: int, lines: list[str]) -> None:
        """Add lines behind the line on which a node ends, or behind what stays of it where that line goes."""
        at = self._line_end(end)
        while (gone := next((start for start, after, _ in self._cuts if start < at < after), None)) is not None:
            at = self._end_before(gone)
        self._insert(at, "".join(self._layout.newline + " " * column + line for line in lines))

    def _lines_of(self, start: int, end: int) -> tuple[int, int]:
        """Return the whole lines from one place to another, with an end of line."""
        begin = self._line_start(start)
        after = self._text.find("\n", end)
        if after >= 0:
            return begin, after + 1
        # The last line has no end: take that of the line that stays, so that the text goes on having none.
        while (gone := next((start for start, after, _ in self._cuts if start < after == begin), None)) is not None:
            begin = gone
        return self._end_before(begin), len(self._text)

    def _end_before(self, line: int) -> int:
        return len(self._text[:line].removesuffix("\n").removesuffix("\r"))

    def _line_start(self, at: int) -> int:
        return self._text.rfind("\n", 0, at) + 1

    def _line_end(self, at: int) -> int:
        end = self._text.find("\n", at)
        end = len(self._text) if end < 0 else end
        return end - 1 if end > at and self._text[end - 1] == "\r" else end

    def _begins_line(self, at: int) -> bool:
        return not self._text[self._line_start(at) : at].strip()

    def _has_comment_behind(self, end: int) -> bool:
        return bool(self._text[end : self._line_end(end)].strip())


def _first(text: str, node: YamlNode) -> int:
    """Return where the first key of a mapping stands, or the first dash of a sequence."""
    if node.kind is NodeKind.MAPPING:
        return _begin(text, node.keys[0])
    found = _TO_DASH.match(text, node.value_start)
    return node.value_start if found is None else found.end()


def _begin(text: str, key: YamlNode) -> int:
    """Return where the member of a key begins: at the question mark of an explicit key, else at the key."""
    mark = _EXPLICIT.search(text, text.rfind("\n", 0, key.start) + 1, key.start)
    return key.start if mark is None else mark.start()


def _column(text: str, at: int) -> int:
    return at - text.rfind("\n", 0, at) - 1


def _is_filled(value: object) -> bool:
    return isinstance(value, dict | list) and bool(value)


def _lines(value: object, layout: YamlLayout) -> list[str]:
    """Return a collection that is not empty as lines, without the indentation of the first."""
    if isinstance(value, list):
        return [line for item in value for line in _element(item, layout)]
    assert isinstance(value, dict)
    return [line for name, item in value.items() for line in _member(name, item, layout)]


def _element(value: object, layout: YamlLayout) -> list[str]:
    lines = _lines(value, layout) if _is_filled(value) else [_flow(value)]
    return [f"{lead}{line}" for lead, line in zip(["- ", *["  "] * (len(lines) - 1)], lines, strict=True)]


def _member(name: str, value: object, layout: YamlLayout) -> list[str]:
    if not _is_filled(value):
        return [f"{yaml_tree.write(name)}: {_flow(value)}"]
    indent = " " * (layout.dash if isinstance(value, list) else layout.step)
    return [f"{yaml_tree.write(name)}:", *(indent + line for line in _lines(value, layout))]


def _flow(value: object, style: str | None = None) -> str:
    """Return a value on one line; a text in the quotes of ``style``."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{yaml_tree.write(name)}: {_flow(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, str):
        return yaml_tree.write(value, style)
    return json_text.render(value, json_text.Style())


def apply(text: str, path: Path | None, change: Callable[[object], object], *, removes: bool = False) -> str:
    """Return the text of one document with one change of its value.

    ``path`` is what the change is about, None for all of it; ``removes`` says that the change takes it away.
    """
    root = yaml_tree.parse(text)
    if path is not None and root is not None:
        _check_way(root, path, removes=removes)
    new = change(copy.deepcopy(_value(root)))
    if root is not None:
        new = _Followers().follow(root, new)
    if yaml_tree.equal(_value(root), new):
        return text
    made = rewrite(text, root, new)
    try:
        found = _value(yaml_tree.parse(made))
    except NotYaml as error:
        raise _not_possible(str(error)) from None
    if not yaml_tree.equal(found, new):
        raise _not_possible("it would mean something else")
    return made


def _value(root: YamlNode | None) -> object:
    # A text of comments alone is where a document begins.
    return MergedMapping() if root is None else root.value


class _Followers:
    """The aliases of one document, which follow what their anchors mean now.

    What is shared and was changed in place they follow by themselves; a value in the place of another they do not.
    """

    def __init__(self) -> None:
        #: By the name of the anchor.
        self._new: dict[str, object] = {}

    def follow(self, node: YamlNode, new: object) -> object:
        """Return the value of a node with all aliases in it that the change did not touch on their anchors' values."""
        if node.kind is NodeKind.ALIAS:
            return self._new.get(str(node.anchor), new) if yaml_tree.equal(node.value, new) else new
        if node.kind is NodeKind.MAPPING and isinstance(new, dict):
            for key, item in zip(node.keys, node.items, strict=True):
                if key.text in new:
                    new[key.text] = self.follow(item, new[key.text])
        if node.kind is NodeKind.SEQUENCE and isinstance(new, list):
            sources = json_text.find_sources(node.value, new, yaml_tree.equal)
            for at, source in enumerate(sources):
                if source is not None:
                    new[at] = self.follow(node.items[source], new[at])
        if node.anchor is not None:
            self._new[node.anchor] = new
        return new


def _not_possible(why: str) -> TransformFailed:
    return TransformFailed(f"this YAML cannot be edited so: {why}", reason="yaml_not_editable")


def _check_way(root: YamlNode, path: Path, *, removes: bool) -> None:
    """Refuse a way that leads into what an alias or a merge key shares: the change would show in other places."""
    node = root
    for depth, step in enumerate(path.steps):
        is_last = depth == len(path.steps) - 1
        if node.kind is NodeKind.ALIAS:
            raise TransformFailed(
                f"{path}: the way leads through the alias *{node.anchor}, which other places share",
                reason="yaml_way_is_shared",
                values={"anchor": f"&{node.anchor}"},
            )
        found = _child(node, step)
        if found is None:
            if (removes or not is_last) and _is_inherited(node, step):
                raise TransformFailed(
                    f"{path}: {step} comes from a merge key (<<), which other places share",
                    reason="yaml_way_is_shared",
                    values={"anchor": "what << names"},
                )
            return
        node = found


def _child(node: YamlNode, step: Step) -> YamlNode | None:
    if node.kind is NodeKind.MAPPING:
        members = zip(node.keys, node.items, strict=True)
        own = (item for at, (key, item) in enumerate(members) if not node.is_merge(at) and key.text == step.name)
        return next(own, None)
    if node.kind is NodeKind.SEQUENCE and step.index is not None and -len(node.items) <= step.index < len(node.items):
        return node.items[step.index]
    return None


def _is_inherited(node: YamlNode, step: Step) -> bool:
    return (
        isinstance(node.value, MergedMapping) and step.name is not None and node.value.get(step.name, node) is not node
    )
