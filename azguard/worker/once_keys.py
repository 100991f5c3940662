"""The key of a message: by which one that comes twice is known, and how a table keeps it."""

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any

from azguard.documents import json_text
from azguard.errors import UsageError

# What a key of a table may hold as it is. A tilde begins what stands for another byte.
_PLAIN = re.compile(r"[A-Za-z0-9._:-]")
# A key of a table holds 1 KiB, two bytes a character; more than this is kept as its hash.
_LONGEST_CHARACTERS = 300


@dataclass(frozen=True)
class KeyRule:
    """Where the key of a message stands: its id, or a value in its body, which a JMESPath expression finds."""

    expression: str | None = None

    def __post_init__(self) -> None:
        """Refuse an expression that is none.

        Raises:
            UsageError: it is not JMESPath.
        """
        if self.expression is None:
            return
        import jmespath

        try:
            jmespath.compile(self.expression)
        except ValueError as error:
            raise UsageError(
                f"{self.expression!r} is not a JMESPath expression: {error}", reason="once_key_malformed"
            ) from None

    def choose(self, body: bytes, message_id: str) -> str:
        """Return the key of a message.

        A text is the key as it is; anything else is the key as compact JSON. So 17 and "17" are one key.

        Raises:
            UsageError: its body has none: it is no JSON, or the value is missing, empty, true or false.
        """
        if self.expression is None:
            return message_id
        import jmespath

        try:
            content = json.loads(body)
        except (ValueError, RecursionError):
            raise UsageError(
                f"the body is not JSON, so {self.expression!r} finds no key in it", reason="once_body_not_json"
            ) from None
        try:
            found = jmespath.search(self.expression, content)
        except (*json_text.JMESPATH_FAILURES, RecursionError) as error:
            raise UsageError(
                f"{self.expression!r} finds no key in the body: {error}", reason="once_key_missing"
            ) from None
        if _is_missing(found):
            raise UsageError(f"{self.expression!r} finds no key in the body", reason="once_key_missing")
        return found if isinstance(found, str) else json.dumps(found, sort_keys=True, separators=(",", ":"))


def escape(key: str) -> str:
    """Return a key as the row key of a table: no two keys have the same one."""
    escaped = "".join(
        each if _PLAIN.fullmatch(each) else "".join(f"~{byte:02x}" for byte in each.encode("utf-8", "surrogatepass"))
        for each in key
    )
    if len(escaped) <= _LONGEST_CHARACTERS:
        return escaped
    # Two tildes stand in no other row key.
    return f"~~sha256~{hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _is_missing(found: Any) -> bool:
    """Return whether a value is no key: nothing, an empty one, true or false, or a list with such a part."""
    if isinstance(found, list):
        return not found or any(map(_is_missing, found))
    return found is None or found in ("", {}) or isinstance(found, bool)
