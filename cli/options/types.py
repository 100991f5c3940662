"""The types of values: how the text of one is read, and how a default is written.

A reader is given the text and the name of the option, and raises a UsageError that says what to type.
"""

import re
from collections.abc import Callable
from dataclasses import field
from math import inf
from pathlib import Path
from typing import Any

from azguard.cache import scope
from azguard.cli.input import values
from azguard.errors import ConfigError, UsageError
from azguard.frozen import frozen


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


def _read_api_version(text: str, name: str) -> str:
    from azguard.wire.call import check_api_version  # which help and versions do not need

    try:
        return check_api_version(values.not_empty(text, name) or "", name)
    except ConfigError as error:
        raise error.as_kind(UsageError) from None


API_VERSION = ValueType("date", _read_api_version)


def whole(least: int, most: int) -> ValueType:
    """Return the type of whole numbers between two others, both included."""
    return ValueType("integer", lambda text, name: values.whole(text, name, least, most), bounds=(least, most))


def seconds(least: int, most: int) -> ValueType:
    """Return the type of durations of whole seconds between two limits, both included."""
    read = lambda text, name: values.seconds(text, name, least, most)  # noqa: E731  # one line of a table
    return ValueType("duration", read, _write_seconds, bounds=(least, most))


def lasting(least: float) -> ValueType:
    """Return the type of durations from a least number of seconds on."""

    def read(text: str, name: str) -> float:
        found = values.duration(text, name)
        if found < least:
            raise UsageError(f"{name} {text!r} is too short", hint=f"at least {name} {least:g}s")
        return found

    return ValueType("duration", read, _write_seconds, bounds=(least, inf))


def choice(metavar: str) -> ValueType:
    """Return the type of some words, such as ``on|off``."""
    words = tuple(metavar.split("|"))
    return ValueType("choice", lambda text, name: values.choice(text, name, words), choices=words)


def spelt(metavar: str) -> ValueType:
    """Return the type of some words, whatever the case in which they are typed."""
    words = tuple(metavar.split("|"))
    return ValueType("choice", lambda text, name: values.chosen(text, name, words), choices=words)


def kinds(known: str) -> ValueType:
    """Return the type of lists of some words, such as ``snapshots|deleted``, with commas between them."""
    return ValueType("kinds", lambda text, _: values.parse_included(text, known.split("|")))


def size(least: int, most: float = inf) -> ValueType:
    """Return the type of numbers of bytes between two others, both included."""

    def read(text: str, name: str) -> int:
        found = values.size(text, name, least=least)
        if found > most:
            raise UsageError(f"{name} {text!r} is more than {_write_size(int(most))}", hint="a smaller size")
        return found

    return ValueType("size", read, _write_size, bounds=(least, most))


def _read_query(text: str, name: str) -> str:
    """Return a query, which is JMESPath; that it means something to the result is seen later."""
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
TEXT = ValueType("text", values.not_empty)
#: The name of a file on this machine.
FILE = ValueType("file", lambda text, name: Path(values.not_empty(text, name)))
# No other option, and no address.
_ADDRESS = r"[a-z]+:[^\s{\[\"]"
#: Content to begin with: text that is no address, which would be the next word of the line.
INITIAL = ValueType("text", _read_initial)
#: Seconds: more than none.
DURATION = ValueType("duration", values.duration, _write_seconds)
#: Bytes.
SIZE = ValueType("size", values.size, _write_size)
#: The time that names a snapshot.
SNAPSHOT = ValueType("snapshot", values.snapshot_time)
#: KEY=VALUE, repeated: a mapping.
METADATA = ValueType("metadata", lambda texts, _: values.metadata(texts), of_many=True)
TAGS = ValueType("tags", lambda texts, _: values.tags(texts), of_many=True)
#: NAME,…, repeated: the names of properties.
NAMES = ValueType("names", lambda texts, _: values.parse_names(texts), of_many=True)
#: The value of a content header.
HEADER = ValueType("text", values.header)
#: An MD5 in base64.
MD5 = ValueType("md5", lambda text, _: values.md5(text))
# Of conditions the type tells people and programs alone: the core reads the value, in a line of a transaction as well.
ETAG = ValueType("etag", _keep)
TIME = ValueType("time", _keep)
EXPRESSION = ValueType("expression", _keep)
LEASE_ID = ValueType("lease_id", _keep)
POSITION = ValueType("size", _keep)
NUMBER = ValueType("integer", _keep)
#: The address of a service.
URL = ValueType("url", values.not_empty)
#: What of a result is shown.
JMESPATH = ValueType("jmespath", _read_query)
SCOPE = ValueType("scope", lambda text, _: scope.find_named(text, {}))
#: A port of this machine.
PORT = whole(1, 65_535)
#: A whole number above zero; ``*`` of az is None: no limit.
COUNT = ValueType("integer", values.count)
#: The id of a lease.
GUID = ValueType("guid", _read_guid)
#: The number of a lock's holder.
FENCE = ValueType("integer", _read_fence)
