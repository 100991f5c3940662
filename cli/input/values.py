"""Text from the command line → what the core takes, with the fix in every refusal."""

from collections.abc import Sequence
from math import ceil

from azguard.errors import UsageError
from azguard.times import parse_duration

_INCLUDED = ("metadata", "snapshots", "versions", "deleted", "tags", "uncommittedblobs", "copy")
# As az storage writes them in one word: ms is metadata and snapshots.
_LETTERS = {each[0]: each for each in ("copy", "deleted", "metadata", "snapshots", "versions", "tags")}
# Python refuses to read numbers of thousands of digits.
_MOST_DIGITS = 19
_BYTES_OF_MD5 = 16


def not_empty(text: str, option: str) -> str:
    """Return the text, refusing an empty one."""
    if not text.strip():
        raise UsageError(f"{option} is empty", hint="an unset shell variable looks like this; leave the option out")
    return text


def header(text: str, option: str) -> str:
    """Return the value of a content header, refusing what no HTTP request can carry or keep as it is."""
    from azguard.documents.metadata import is_value

    if not is_value(not_empty(text, option)):
        raise UsageError(
            f"{option}: {text!r} cannot stand in a header",
            hint="use visible ASCII without spaces at either end; a file name: attachment; filename*=UTF-8''%C3%A9.pdf",
        )
    return text


def choice(text: str, option: str, known: Sequence[str]) -> str:
    """Return the text if it is one of the known words."""
    if not_empty(text, option) not in known:
        raise UsageError(f"{option} {text!r} is not known", hint=" or ".join(known))
    return text


def count(text: str, option: str) -> int | None:
    """Return a whole number above zero."""
    if text == "*":
        return None
    if not (text.isascii() and text.isdigit() and text.strip("0")):
        raise UsageError(f"{option}: {text!r} is not a whole number above zero", hint=f"{option} 10")
    if len(text) >= _MOST_DIGITS:
        raise UsageError(f"{option}: {text!r} is too large a number", hint=f"{option} 10")
    return int(text)


def whole(text: str, option: str, least: int, most: int) -> int:
    """Return a whole number between two others, both included."""
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS and least <= int(text) <= most):
        example = f"{option} {least}" if option.startswith("--") else f"a number such as {least}"
        raise UsageError(f"{option}: {text!r} is not a whole number from {least} to {most}", hint=example)
    return int(text)


def seconds(text: str, option: str, least: int, most: int) -> int:
    """Return whole seconds between two limits, both included, of a duration such as ``60`` or ``1m``."""
    found = parse_duration(not_empty(text, option), option)
    if not (found.is_integer() and least <= found <= most):
        near = ceil(min(max(found, least), most))
        raise UsageError(f"{option}: {text!r} is not from {least} to {most} whole seconds", hint=f"{option} {near}s")
    return int(found)


def size(text: str, option: str, *, least: int = 0) -> int:
    """Return the bytes of a size such as ``512``, ``4MiB`` or ``1GB``."""
    from azguard.times import parse_size

    bytes_ = parse_size(text)
    if bytes_ is None:
        raise UsageError(f"{option}: {text!r} is not a number of bytes", hint=f"{option} 512, {option} 4MiB")
    if bytes_ < least:
        unit = "byte" if least == 1 else "bytes"
        raise UsageError(f"{option}: {text!r} is less than {least} {unit}", hint=f"{option} {max(least, 512)}")
    return bytes_


def duration(text: str, option: str) -> float:
    """Return the seconds of a duration such as ``90s``, refusing an empty or zero one."""
    found = parse_duration(not_empty(text, option), option)
    if found <= 0:
        raise UsageError(f"{option} must be more than nothing", hint=f"{option} 30s")
    return found


def pairs(texts: Sequence[str], option: str, *, ignore_case: bool = True) -> dict[str, str]:
    """Return ``KEY=VALUE`` texts as a mapping; a key given twice is refused."""
    found: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UsageError(f"{option}: {text!r} is not KEY=VALUE")
        if key in found or (ignore_case and key.lower() in (known.lower() for known in found)):
            raise UsageError(f"{option}: {key!r} is given twice")
        found[key] = value
    return found


def snapshot_time(text: str, option: str) -> str:
    """Return the time that names a snapshot, as the service hands it out."""
    from azguard.address import is_snapshot_time

    if not is_snapshot_time(not_empty(text, option)):
        raise UsageError(f"{option}: {text!r} is no snapshot", hint="it looks like 2026-11-21T10:00:00.0000000Z")
    return text


def metadata(texts: Sequence[str]) -> dict[str, str]:
    """Return metadata whose names and values the service takes."""
    found = pairs(texts, "--metadata")
    if not found:
        return found
    from azguard.documents.metadata import is_name, is_value, refuse_reserved
    from azguard.requests.lineage import KEY

    for key, value in refuse_reserved(found, KEY).items():
        if not is_name(key):
            raise UsageError(
                f"--metadata: {key!r} is not a name the service takes",
                reason="metadata_name_malformed",
            )
        if not is_value(value):
            raise UsageError(
                f"--metadata: the value of {key!r} cannot stand in a header",
                reason="metadata_value_malformed",
            )
        if not value:
            raise UsageError(f"--metadata: the value of {key!r} is empty", hint="leave the key out instead")
    return found


def tags(texts: Sequence[str]) -> dict[str, str]:
    """Return index tags: at most ten, of the characters the service takes."""
    found = pairs(texts, "--tags", ignore_case=False)
    if not found:
        return found
    from azguard.documents import metadata as rules

    if len(found) > rules.MOST:
        raise UsageError(f"--tags: {len(found)} tags; the service takes at most ten")
    for key, value in found.items():
        if not rules.is_tag(key, value):
            raise UsageError(
                f"--tags: {key}={value} holds what the service refuses",
                hint="letters, digits, space + - . / : = _",
            )
    return found


def chosen(text: str, option: str, known: Sequence[str]) -> str:
    """Return one of the known words as it is spelt there, whatever the case of the text."""
    found = next((each for each in known if each.lower() == text.lower()), None)
    return found or choice(text, option, known)


def parse_included(text: str, known: Sequence[str] = _INCLUDED) -> list[str]:
    """Return the parts of a listing that are asked for, as words or as the letters of az storage."""
    letters = {letter: word for letter, word in _LETTERS.items() if word in known}
    if text and set(text) <= set(letters):
        return [letters[letter] for letter in text]
    chosen = [each.strip() for each in text.split(",")]
    for each in chosen:
        choice(each, "--include", known)
    return chosen


def parse_names(texts: Sequence[str]) -> list[str]:
    """Return the names of properties, refusing an empty one."""
    names = [name.strip() for text in texts for name in text.split(",")]
    if not all(names):
        raise UsageError("--select has an empty name", hint="--select name,price")
    return names


def md5(text: str) -> str:
    """Return an MD5 in base64, refusing what is none."""
    import base64
    import binascii

    try:
        digest = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        digest = b""
    if len(digest) != _BYTES_OF_MD5:
        raise UsageError(f"--content-md5: {text!r} is not an MD5 in base64", hint="openssl md5 -binary FILE | base64")
    return text


def content_type(given: str | None, name: str, file: str | None) -> str:
    """Return the content type: as given, or guessed from the blob's name, then from the file's."""
    if given is not None:
        return given
    import mimetypes

    guessed = mimetypes.guess_type(name)[0] or mimetypes.guess_type(file or "")[0]
    return guessed or "application/octet-stream"
