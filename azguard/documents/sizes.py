"""Sizes as people type them, such as ``512``, ``4MiB`` or ``1GB``, in bytes."""

import re

_SIZE = re.compile(r"([0-9]{1,19}) ?([KMGT]i?B|B)?", re.IGNORECASE)


def parse_size(text: str) -> int | None:
    """Return the bytes of a size, or None if the text is none."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        return None
    unit = (found[2] or "B").upper()
    base = 1024 if "I" in unit else 1000
    return int(found[1]) * int(base ** " KMGT".index(unit[0].replace("B", " ")))
