"""The types of values: how the text of one is read, and how a default is written.

A reader is given the text and the name of the option, and raises a UsageError that says what to type.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import field
from math import ceil, inf
from pathlib import Path
from typing import Any

from azguard.address import is_snapshot_time
from azguard.cache import scope
from azguard.errors import ConfigError, UsageError
from azguard.frozen import frozen
from azguard.times import parse_duration, parse_size

_INCLUDED = ("metadata", "snapshots", "versions", "deleted", "tags", "uncommittedblobs", "copy")
# As az storage writes them in one word: ms is metadata and snapshots.
_LETTERS = {each[0]: each for each in ("copy", "deleted", "metadata", "snapshots", "versions", "tags")}
# Python refuses to read numbers of thousands of digits.
_MOST_DIGITS = 19
_BYTES_OF_MD5 = 16


@frozen
class ValueType:
    """A type of values."""

    #: What programs call it: ``duration``, ``integer``.
    name: str
    #: Reads the text of a value; the second argument is the name of its option.
    read: Callable[[Any, str], Any]
    #: Writes a value as it is typed.
    write: Callable[[Any], str] = str
    #: The words that a value can be; empty where there are other values.
    choices: tuple[str, ...] = ()
    #: The least and the most of a number, or of the seconds of a duration.
    bounds: tuple[float, float] | None = field(default=None)
    #: Whether its option is repeated, and all of its texts are read as one value.
    of_many: bool = False

    def accepts(self, text: str) -> bool:
        """Return whether a text is meant as a value of this type; a number is, and one with a typo is refused."""
        if text[:1].isdigit():
            return True
        try:
            self.read(text, "")
        except UsageError:
            return False
        return True


def require_text(text: str, option: str) -> str:
    """Return the text, refusing an empty one."""
    if not text.strip():
        raise UsageError(f"{option} is empty", hint="an unset shell variable looks like this; leave the option out")
    return text


def _read_header(text: str, option: str) -> str:
    """Return the value of a content header, refusing what no HTTP request can carry or keep as it is."""
    from azguard.documents.metadata import is_value

    if not is_value(require_text(text, option)):
        raise UsageError(
            f"{option}: {text!r} cannot stand in a header",
            hint="use visible ASCII without spaces at either end; a file name: attachment; filename*=UTF-8''%C3%A9.pdf",
        )
    return text


def read_choice(text: str, option: str, known: Sequence[str]) -> str:
    """Return the text if it is one of the known words."""
    if require_text(text, option) not in known:
        raise UsageError(f"{option} {text!r} is not known", hint=" or ".join(known))
    return text


def _read_count(text: str, option: str) -> int | None:
    if text == "*":
        return None
    if not (text.isascii() and text.isdigit() and text.strip("0")):
        raise UsageError(f"{option}: {text!r} is not a whole number above zero", hint=f"{option} 10")
    if len(text) >= _MOST_DIGITS:
        raise UsageError(f"{option}: {text!r} is too large a number", hint=f"{option} 10")
    return int(text)


def read_whole(text: str, option: str, least: int, most: int) -> int:
    """Return a whole number between two others, both included."""
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS and least <= int(text) <= most):
        example = f"{option} {least}" if option.startswith("--") else f"a number such as {least}"
        raise UsageError(f"{option}: {text!r} is not a whole number from {least} to {most}", hint=example)
    return int(text)


def read_seconds(text: str, option: str, least: int, most: int) -> int:
    """Return whole seconds between two limits, both included, of a duration such as ``60`` or ``1m``."""
    found = parse_duration(require_text(text, option), option)
    if not (found.is_integer() and least <= found <= most):
        near = ceil(min(max(found, least), most))
        raise UsageError(f"{option}: {text!r} is not from {least} to {most} whole seconds", hint=f"{option} {near}s")
    return int(found)


def _read_size(text: str, option: str, *, least: int = 0) -> int:
    bytes_ = parse_size(text)
    if bytes_ is None:
        raise UsageError(f"{option}: {text!r} is not a number of bytes", hint=f"{option} 512, {option} 4MiB")
    if bytes_ < least:
        unit = "byte" if least == 1 else "bytes"
        raise UsageError(f"{option}: {text!r} is less than {least} {unit}", hint=f"{option} {max(least, 512)}")
    return bytes_


def read_duration(text: str, option: str) -> float:
    """Return the seconds of a duration such as ``90s``, refusing an empty or zero one."""
    found = parse_duration(require_text(text, option), option)
    if found <= 0:
        raise UsageError(f"{option} must be more than nothing", hint=f"{option} 30s")
    return found


def _read_pairs(texts: Sequence[str], option: str, *, ignore_case: bool = True) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UsageError(f"{option}: {text!r} is not KEY=VALUE")
        if key in found or (ignore_case and key.lower() in (known.lower() for known in found)):
            raise UsageError(f"{option}: {key!r} is given twice")
        found[key] = value
    return found


def _read_snapshot(text: str, option: str) -> str:
    if not is_snapshot_time(require_text(text, option)):
        raise UsageError(f"{option}: {text!r} is no snapshot", hint="it looks like 2026-11-21T10:00:00.0000000Z")
    return text


def _read_metadata(texts: Sequence[str], _: str) -> dict[str, str]:
    found = _read_pairs(texts, "--metadata")
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


def _read_tags(texts: Sequence[str], _: str) -> dict[str, str]:
    """Return index tags: at most ten, of the characters the service takes."""
    found = _read_pairs(texts, "--tags", ignore_case=False)
    if not found:
        return found
    from azguard.documents import metadata as rules

    if len(found) > rules.MOST:
        raise UsageError(f"--tags: {len(found)} tags; the service takes at most ten")
    for key, value in found.items():
        if not rules.is_tag(key, value):
            raise UsageError(
                f"--tags: the service refuses {key}={value}",
                hint="letters, digits, space + - . / : = _",
            )
    return found


def _read_spelt(text: str, option: str, known: Sequence[str]) -> str:
    found = next((each for each in known if each.lower() == text.lower()), None)
    return found or read_choice(text, option, known)


def read_included(text: str, known: Sequence[str] = _INCLUDED) -> list[str]:
    """Return the parts of a listing that are asked for, as words or as the letters of az storage."""
    letters = {letter: word for letter, word in _LETTERS.items() if word in known}
    if text and set(text) <= set(letters):
        return [letters[letter] for letter in text]
    chosen = [each.strip() for each in text.split(",")]
    for each in chosen:
        read_choice(each, "--include", known)
    return chosen


def _read_names(texts: Sequence[str], _: str) -> list[str]:
    names = [name.strip() for text in texts for name in text.split(",")]
    if not all(names):
        raise UsageError("--select has an empty name", hint="--select name,price")
    return names


def _read_md5(text: str, _: str) -> str:
    """Return an MD5 in base64, refusing any other text."""
    import base64
    import binascii

    try:
        digest = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        digest = b""
    if len(digest) != _BYTES_OF_MD5:
        raise UsageError(f"--content-md5: {text!r} is not an MD5 in base64", hint="openssl md5 -binary FILE | base64")
    return text


def _read_path(text: str, option: str) -> Path:
    return Path(require_text(text, option))


def _read_api_version(text: str, name: str) -> str:
    from azguard.wire.call import check_api_version  # which help and versions do not need

    try:
        return check_api_version(require_text(text, name) or "", name)
    except ConfigError as error:
        raise error.as_kind(UsageError) from None


API_VERSION = ValueType("date", _read_api_version)


def whole(least: int, most: int) -> ValueType:
    """Return the type of whole numbers between two others, both included."""
    return ValueType("integer", lambda text, name: read_whole(text, name, least, most), bounds=(least, most))


def seconds(least: int, most: int) -> ValueType:
    """Return the type of durations of whole seconds between two limits, both included."""
    return ValueType(
        "duration", lambda text, name: read_seconds(text, name, least, most), _write_seconds, bounds=(least, most)
    )


def lasting(least: float) -> ValueType:
    """Return the type of durations from a least number of seconds on."""

    def read(text: str, name: str) -> float:
        found = read_duration(text, name)
        if found < least:
            raise UsageError(f"{name} {text!r} is too short", hint=f"at least {name} {least:g}s")
        return found

    return ValueType("duration", read, _write_seconds, bounds=(least, inf))


def choice(metavar: str) -> ValueType:
    """Return the type of some words, such as ``on|off``."""
    words = tuple(metavar.split("|"))
    return ValueType("choice", lambda text, name: read_choice(text, name, words), choices=words)


def spelt(metavar: str) -> ValueType:
    """Return the type of some words, in upper or lower case."""
    words = tuple(metavar.split("|"))
    return ValueType("choice", lambda text, name: _read_spelt(text, name, words), choices=words)


def kinds(known: str) -> ValueType:
    """Return the type of lists of some words, such as ``snapshots|deleted``, with commas between them."""
    return ValueType("kinds", lambda text, _: read_included(text, known.split("|")))


def size(least: int, most: float = inf) -> ValueType:
    """Return the type of numbers of bytes between two others, both included."""

    def read(text: str, name: str) -> int:
        found = _read_size(text, name, least=least)
        if found > most:
            raise UsageError(f"{name} {text!r} is more than {_write_size(int(most))}", hint="a smaller size")
        return found

    return ValueType("size", read, _write_size, bounds=(least, most))


def _read_query(text: str, name: str) -> str:
    import jmespath
    from jmespath.exceptions import JMESPathTypeError

    try:
        compiled = jmespath.compile(text)
        try:
            compiled.search({})
        except (ArithmeticError, JMESPathTypeError, TypeError):
            pass  # of this empty result; the real one will have what the query is about
    except RecursionError:
        raise UsageError(f"{name} is nested too deeply", hint="https://jmespath.org") from None
    except ValueError as error:
        why = str(error).splitlines()[0].removesuffix(":").removesuffix(", for expression")
        raise UsageError(f"{name} is not JMESPath: {why}", hint="https://jmespath.org") from None
    return text


def _keep(text: str, _: str) -> str:
    return text


def _read_initial(text: str, name: str) -> str:
    if re.match(_ADDRESS, text) and not name:
        raise UsageError(f"{text} is an address")
    return text


def _read_fence(text: str, _: str) -> int:
    from azguard.guards import fences  # it is needed by few options

    return fences.parse(text)


def _read_guid(text: str, name: str) -> str:
    from azguard.guards import requested  # it knows the operations

    return requested.parse_guid(text, name.removeprefix("--").replace("-", "_"))


def _write_seconds(value: float) -> str:
    for unit, length in (("d", 86_400), ("h", 3600), ("m", 60)):
        if value > length and value % length == 0:
            return f"{value // length:.0f}{unit}"
    return f"{value:g}s"


def _write_size(value: int) -> str:
    for unit, length in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if value and value % length == 0:
            return f"{value // length}{unit}"
    return str(value)


#: Text that is not empty: an unset shell variable looks like empty text.
TEXT = ValueType("text", require_text)
#: The name of a file on this machine.
FILE = ValueType("file", _read_path)
# No other option, and no address.
_ADDRESS = r"[a-z]+:[^\s{\[\"]"
#: Content to begin with: text that is no address, which would be the next word of the line.
INITIAL = ValueType("text", _read_initial)
#: Seconds: more than none.
DURATION = ValueType("duration", read_duration, _write_seconds)
#: Bytes.
SIZE = ValueType("size", _read_size, _write_size)
#: The time that names a snapshot.
SNAPSHOT = ValueType("snapshot", _read_snapshot)
#: KEY=VALUE, repeated: a mapping.
METADATA = ValueType("metadata", _read_metadata, of_many=True)
TAGS = ValueType("tags", _read_tags, of_many=True)
#: NAME,…, repeated: the names of properties.
NAMES = ValueType("names", _read_names, of_many=True)
#: The value of a content header.
HEADER = ValueType("text", _read_header)
#: An MD5 in base64.
MD5 = ValueType("md5", _read_md5)
# Of conditions the type tells people and programs alone: the core reads the value, in a line of a transaction as well.
ETAG = ValueType("etag", _keep)
TIME = ValueType("time", _keep)
EXPRESSION = ValueType("expression", _keep)
LEASE_ID = ValueType("lease_id", _keep)
POSITION = ValueType("size", _keep)
NUMBER = ValueType("integer", _keep)
#: The address of a service.
URL = ValueType("url", require_text)
#: What of a result is shown.
JMESPATH = ValueType("jmespath", _read_query)
SCOPE = ValueType("scope", lambda text, _: scope.find_named(text, {}))
#: A port of this machine.
PORT = whole(1, 65_535)
#: A whole number above zero; ``*`` of az is None: no limit.
COUNT = ValueType("integer", _read_count)
#: The id of a lease.
GUID = ValueType("guid", _read_guid)
#: The number of a lock's holder.
FENCE = ValueType("integer", _read_fence)
