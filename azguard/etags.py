"""ETags as people type them → as they are sent."""

import re

from azguard.errors import UsageError


def quoted(etag: str, option: str = "--etag") -> str:
    """Return a blob-service ETag in quotes, as it is sent; bare and quoted are accepted.

    Raises:
        UsageError: it is neither, or it is weak, which these services never hand out.
    """
    text = etag.strip()
    if text.startswith("W/"):
        raise UsageError(
            f"{option}: {etag!r} is a weak ETag, which only tables have", hint="copy it from azguard … show"
        )
    bare = text[1:-1] if len(text) >= 2 and text[0] == text[-1] == '"' else text
    if not re.fullmatch(r"[!#-)+\--~]+", bare) or "'" in bare or bare.startswith("@"):
        raise UsageError(
            f"{option}: {etag!r} is not an ETag",
            hint='an ETag looks like 0x8DC1234567890AB or "0x8DC1234567890AB"',
        )
    return f'"{bare}"'


def of_entity(etag: str, option: str) -> str:
    """Return the ETag of an entity as it is, byte for byte.

    Raises:
        UsageError: it is none.
    """
    if not re.fullmatch(r"""W/"[!#-~]+"|"[!#-~]+\"""", etag):
        raise UsageError(
            f"{option}: {etag!r} is not the ETag of an entity",
            hint="""an entity's ETag looks like W/"datetime'2026-11-21T10%3A00%3A00.0000000Z'", quotes included""",
        )
    return etag
