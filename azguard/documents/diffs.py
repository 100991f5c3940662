"""Differences between two versions, for people to read on a terminal, and three-way merges of two changes.

Objects of JSON are merged by their members, so that two members on one line, or side by side, are no conflict. All else
is merged by lines, as diff3 does: https://www.cis.upenn.edu/~bcpierce/papers/diff3-short.pdf
"""

import codecs
from collections.abc import Iterator, Sequence

from azguard.documents import controls, json_text
from azguard.documents.json_text import NotJson
from azguard.frozen import frozen
from azguard.times import say_count

_SPACE = " \t\r\n"
_LAYOUT = json_text.Style(indent="  ")
#: The lines around the two sides of a conflict, as git writes them.
OURS = b"<<<<<<< yours"
BETWEEN = b"======="
THEIRS = b">>>>>>> theirs"
#: In the place of a member that is not there; equal to nothing but itself.
_NOTHING = object()


def compare(old: bytes, new: bytes, name: str) -> str:
    """Return the unified diff of two contents; empty if they are equal.

    JSON on one line is shown on many, and the header says so. Of what is not UTF-8 text only sizes and hashes
    are shown. Control characters are escaped, so that content cannot drive the terminal.
    """
    if old == new:
        return ""
    before, after = _text(old), _text(new)
    if before is None or after is None:
        return _binary(old, new)
    if _is_one_line_json(before) or _is_one_line_json(after):
        laid_out = _lay_out(before), _lay_out(after)
        if laid_out[0] is not None and laid_out[1] is not None and laid_out[0] != laid_out[1]:
            return _diff(_lines(laid_out[0]), _lines(laid_out[1]), name, "; one-line JSON shown on many lines")
    if _has_crlf_only(before) and _has_crlf_only(after):
        before, after = before.replace("\r\n", "\n"), after.replace("\r\n", "\n")
    return _diff(_lines(before), _lines(after), name, "")


def _text(content: bytes) -> str | None:
    try:
        return None if b"\0" in content else content.decode()
    except UnicodeDecodeError:
        return None


def _binary(old: bytes, new: bytes) -> str:
    from hashlib import sha256

    before, after = (sha256(content).hexdigest()[:16] for content in (old, new))
    return f"binary: {len(old)} -> {say_count(len(new), 'byte')} (sha256 {before}… -> {after}…)\n"


def _is_one_line_json(text: str) -> bool:
    stripped = text.strip(_SPACE)
    return "\n" not in stripped and (stripped[:1], stripped[-1:]) in {("{", "}"), ("[", "]")}


def _lay_out(text: str) -> str | None:
    """Return JSON on many lines, numbers spelled as they are; None if it is not JSON."""
    if not text.strip(_SPACE):
        return text
    try:
        value = json_text.render(json_text.parse(text), _LAYOUT)
    except (json_text.NotJson, RecursionError):
        return None
    return value + ("\n" if text.endswith("\n") else "")


def _has_crlf_only(text: str) -> bool:
    return text.count("\r\n") == text.count("\n") == text.count("\r")


def _lines(text: str) -> list[str]:
    """Return the lines with their ends; only a line feed ends a line, whatever else Unicode calls a break."""
    *whole, rest = text.split("\n")
    return [f"{line}\n" for line in whole] + ([rest] if rest else [])


def _diff(old: Sequence[str], new: Sequence[str], name: str, remark: str) -> str:
    from difflib import unified_diff

    # The raw lines are compared, then escaped: a real escape character and its spelling stay different.
    lines = unified_diff(old, new, f"{name} (current{remark})", f"{name} (new{remark})")
    return "".join(map(_show, lines))


def _show(line: str) -> str:
    body = line.removesuffix("\n")
    missing = "" if body != line else "\\ No newline at end of file\n"
    # A name may have a line feed, which the lines of content have not.
    body = controls.escape(body).replace("\n", controls.spell("\n"))
    return f"{body}\n{missing}"


@frozen
class Merged:
    """What a merge made: with the two sides of each conflict between marks, if there are conflicts."""

    content: bytes
    conflicts: int


def merge(base: bytes, ours: bytes, theirs: bytes) -> Merged:
    """Merge two changes of ``base``."""
    if theirs in (ours, base):
        return Merged(ours, 0)
    if ours == base:
        return Merged(theirs, 0)
    by_members = _merge_json(base, ours, theirs)
    return _merge_lines(base, ours, theirs) if by_members is None else Merged(by_members, 0)


def has_marks(content: bytes) -> bool:
    """Return whether a line of a conflict is still there."""
    return any(line.startswith((OURS, THEIRS)) for line in content.split(b"\n"))


# By members.


class _Conflict(Exception):
    """Both changed the same value."""


def _merge_json(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Return the merge of three objects of JSON, in the layout of theirs; None if there is a conflict."""
    mark = codecs.BOM_UTF8 if theirs.startswith(codecs.BOM_UTF8) else b""
    try:
        texts = [content.removeprefix(codecs.BOM_UTF8).decode() for content in (base, ours, theirs)]
        old, mine, other = map(json_text.parse, texts)
        if not (isinstance(old, dict) and isinstance(mine, dict) and isinstance(other, dict)):
            return None
        return mark + json_text.rewrite(texts[2], other, _merge_objects(old, mine, other)).encode()
    except (UnicodeError, NotJson, RecursionError, _Conflict):
        return None


def _merge_objects(old: dict[str, object], mine: dict[str, object], other: dict[str, object]) -> dict[str, object]:
    merged = {}
    for name in [*other, *(name for name in mine if name not in other)]:
        value = _merge_values(*(each.get(name, _NOTHING) for each in (old, mine, other)))
        if value is not _NOTHING:
            merged[name] = value
    return merged


def _merge_values(old: object, mine: object, other: object) -> object:
    if json_text.same(mine, other) or json_text.same(mine, old):
        return other
    if json_text.same(other, old):
        return mine
    if isinstance(mine, dict) and isinstance(other, dict):
        return _merge_objects(old if isinstance(old, dict) else {}, mine, other)
    raise _Conflict


# By lines.


def _merge_lines(base: bytes, ours: bytes, theirs: bytes) -> Merged:
    versions = [content.splitlines(keepends=True) for content in (base, ours, theirs)]
    lines: list[bytes] = []
    conflicts = 0
    at = [0, 0, 0]
    for common in _find_common(*versions):
        old, mine, other = (version[begin:end] for version, begin, end in zip(versions, at, common[:3], strict=True))
        if mine in (other, old):
            lines += other
        elif other == old:
            lines += mine
        else:
            lines += _show_conflict(mine, other)
            conflicts += 1
        lines += versions[0][common[0] : common[0] + common[3]]
        at = [each + common[3] for each in common[:3]]
    return Merged(b"".join(lines), conflicts)


def _find_common(
    base: Sequence[bytes], ours: Sequence[bytes], theirs: Sequence[bytes]
) -> Iterator[tuple[int, int, int, int]]:
    """Yield the runs of lines that all three have, as their places in each and their length; the ends are the last."""
    in_ours, in_theirs = _pair(base, ours), _pair(base, theirs)
    start = 0
    while start < len(base):
        length = 0
        while (
            start + length < len(base)
            and in_ours.get(start + length, -1) == in_ours.get(start, -2) + length
            and in_theirs.get(start + length, -1) == in_theirs.get(start, -2) + length
        ):
            length += 1
        if length:
            yield start, in_ours[start], in_theirs[start], length
        start += length or 1
    yield len(base), len(ours), len(theirs), 0


def _pair(base: Sequence[bytes], other: Sequence[bytes]) -> dict[int, int]:
    """Return for the lines of ``base`` that ``other`` has, too, where they are in it."""
    from difflib import SequenceMatcher

    blocks = SequenceMatcher(None, base, other, autojunk=False).get_matching_blocks()
    return {block.a + i: block.b + i for block in blocks for i in range(block.size)}


def _show_conflict(ours: list[bytes], theirs: list[bytes]) -> list[bytes]:
    end = b"\r\n" if any(line.endswith(b"\r\n") for line in [*ours, *theirs]) else b"\n"
    return [OURS + end, *_end_lines(ours, end), BETWEEN + end, *_end_lines(theirs, end), THEIRS + end]


def _end_lines(lines: list[bytes], end: bytes) -> list[bytes]:
    return lines if not lines or lines[-1].endswith(b"\n") else [*lines[:-1], lines[-1] + end]
