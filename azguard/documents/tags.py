"""What Azure accepts as the index tags of a blob."""

import re
from collections.abc import Mapping

from azguard.documents.parts import PartOfFile, take
from azguard.errors import UsageError

# https://learn.microsoft.com/rest/api/storageservices/set-blob-tags
MOST = 10
_KEY = re.compile(r"[A-Za-z0-9 +\-./:=_]{1,128}")
_VALUE = re.compile(r"[A-Za-z0-9 +\-./:=_]{0,256}")


def is_tag(key: str, value: str) -> bool:
    """Return whether the service accepts a key with a value."""
    return _KEY.fullmatch(key) is not None and _VALUE.fullmatch(value) is not None


def parse(document: object) -> PartOfFile[dict[str, str]]:
    """Return the tags in a JSON value: an object of strings, or all that a read of them prints.

    Raises:
        UsageError: it is none, or the service would refuse it.
    """
    found = take(document, "tags")
    return PartOfFile(check(found.value), found.etag)


def check(value: object) -> dict[str, str]:
    """Return a JSON value as tags.

    Raises:
        UsageError: it is no object of strings, or the service would refuse it.
    """
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise UsageError("the tags are not a JSON object of strings", reason="tags_not_object")
    for key, text in value.items():
        if not is_tag(key, text):
            raise UsageError(f"the tag {key}={text} holds what the service refuses", reason="tag_malformed")
    check_count(value)
    return value


def check_count(tags: Mapping[str, str]) -> None:
    """Refuse more tags than the service takes.

    Raises:
        UsageError: there are more.
    """
    if len(tags) > MOST:
        raise UsageError(f"there are {len(tags)} tags, and the service takes {MOST}", reason="too_many_tags")
