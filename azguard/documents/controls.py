"""Characters that drive a terminal, turn the direction of text or hide in it: found, and spelled out."""

import re
import unicodedata

# Everything outside these ranges is looked up; they hold nothing that controls a terminal or hides.
_SUSPECT = r"[^\t\n -~\u00a1-\u00ac\u00ae-\u05ff]"
# Control characters; invisible and direction-changing ones; line and paragraph separators; lone surrogates.
_ESCAPED_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
# Joiners are part of letters and emoji, and neither move a cursor nor turn the direction of text.
_JOINERS = "\u200c\u200d"
_LAST_OF_TWO_DIGITS = 0xFF
_LAST_OF_FOUR_DIGITS = 0xFFFF


def are_in(text: str) -> bool:
    """Return whether a text has such a character."""
    return any(map(_is_escaped, re.findall(_SUSPECT, text)))


def escape(text: str) -> str:
    r"""Spell out the characters as Python and YAML do: ``\x1b``, ``\u202e``. Tabs and line ends stay."""
    return re.sub(_SUSPECT, lambda found: spell(found[0]) if _is_escaped(found[0]) else found[0], text)


def escape_json(text: str) -> str:
    r"""Spell out the characters in the strings of a JSON text, which reads as the same values afterwards."""
    return re.sub(_SUSPECT, lambda found: _spell_json(found[0]) if _is_escaped(found[0]) else found[0], text)


def spell(character: str) -> str:
    """Return the number of a character, as Python and YAML write it."""
    number = ord(character)
    if number <= _LAST_OF_TWO_DIGITS:
        return f"\\x{number:02x}"
    if number <= _LAST_OF_FOUR_DIGITS:
        return f"\\u{number:04x}"
    return f"\\U{number:08x}"


def _is_escaped(character: str) -> bool:
    return character not in _JOINERS and unicodedata.category(character) in _ESCAPED_CATEGORIES


def _spell_json(character: str) -> str:
    # Beyond four digits JSON has two halves, as UTF-16.
    halves = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{halves[at : at + 2].hex()}" for at in range(0, len(halves), 2))
