"""Differences between two versions of content or metadata, for people to read on a terminal."""

from collections.abc import Sequence

from azguard.documents import controls
from azguard.documents import text as json_text

_SPACE = " \t\r\n"
_LAYOUT = json_text.Style(indent="  ")


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
    return f"binary: {len(old)} -> {len(new)} bytes (sha256 {before}… -> {after}…)\n"


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
