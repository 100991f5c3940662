"""The scalars of YAML: what a plain one means, and how a text is written so that every reader takes it for a text."""

import re

from azguard.documents import controls, numbers
from azguard.documents.numbers import UnreadValue

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


def resolve(text: str) -> object:
    """Return the value of a plain scalar; what JSON has no value for keeps its spelling and is nothing else."""
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    number = numbers.read(text)
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
