"""One string names one resource: ``blob:site/config.json``, or a full URL.

An address carries no account and no secret. A URL is split into its address, its endpoint and its SAS,
so that the SAS never becomes part of an address, a cache key or a message.
"""

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from azguard import names
from azguard.errors import UsageError

if TYPE_CHECKING:
    from urllib.parse import SplitResult


class Kind(StrEnum):
    """What an address names; the value is its prefix."""

    CONTAINER = "container"
    BLOB = "blob"
    TABLE = "table"
    ENTITY = "entity"
    QUEUE = "queue"
    MESSAGE = "message"
    SHARE = "share"
    DIR = "dir"
    FILE = "file"

    @property
    def service(self) -> str:
        """Return the service it lives in: blob, table, queue or file."""
        return _SERVICE[self]

    @property
    def one(self) -> str:
        """Return it with its article, for messages."""
        return f"{'an' if self is Kind.ENTITY else 'a'} {self}"


_SERVICE = {
    Kind.CONTAINER: "blob", Kind.BLOB: "blob", Kind.TABLE: "table", Kind.ENTITY: "table",
    Kind.QUEUE: "queue", Kind.MESSAGE: "queue", Kind.SHARE: "file", Kind.DIR: "file", Kind.FILE: "file",
}  # fmt: skip
# How many parts each kind has, and what they are called in messages.
_PARTS = {
    Kind.CONTAINER: ("NAME",), Kind.BLOB: ("CONTAINER", "NAME"), Kind.TABLE: ("NAME",),
    Kind.ENTITY: ("TABLE", "PARTITION", "ROW"), Kind.QUEUE: ("NAME",), Kind.MESSAGE: ("QUEUE", "ID"),
    Kind.SHARE: ("NAME",), Kind.DIR: ("SHARE", "PATH"), Kind.FILE: ("SHARE", "PATH"),
}  # fmt: skip
_SUFFIXES = {Kind.BLOB: ("snapshot", "versionid"), Kind.SHARE: ("snapshot",)}
_IN_ADDRESS = ("snapshot", "sharesnapshot", "versionid")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z")
# The Table service's own way to name an entity, or a table.
_ODATA_ENTITY = re.compile(r"([A-Za-z0-9]+)\(PartitionKey='((?:[^']|'')*)', ?RowKey='((?:[^']|'')*)'\)")
_ODATA_TABLE = re.compile(r"(?:Tables\('([A-Za-z0-9]+)'\)|([A-Za-z0-9]+)\(\))")
# Azurite and the service emulator listen here; only a path-style URL without a kind needs the guess.
_EMULATOR_PORTS = {10000: "blob", 10001: "queue", 10002: "table"}


@dataclass(frozen=True, slots=True)
class Address:
    """The name of one resource: its kind, its parts, and a snapshot or version where it has one."""

    kind: Kind
    parts: tuple[str, ...]
    snapshot: str | None = None
    version: str | None = None

    def __str__(self) -> str:
        return f"{self.kind}:{self.short}"

    @property
    def short(self) -> str:
        """Return the address as the service's own commands take it, without the prefix."""
        suffix = ""
        if self.snapshot is not None:
            suffix = f"?snapshot={self.snapshot}"
        elif self.version is not None:
            suffix = f"?versionid={self.version}"
        return "/".join(self.parts) + suffix

    @property
    def container(self) -> str:
        """Return the first part: the container, table, queue or share."""
        return self.parts[0]

    @property
    def name(self) -> str:
        """Return the last part: the blob's name, the row, the message id, the path."""
        return self.parts[-1]


@dataclass(frozen=True, slots=True)
class Location:
    """An address, and where a URL said it lives."""

    address: Address
    endpoint: str | None = None
    account_name: str | None = None
    sas: str | None = field(default=None, repr=False)


def parse(text: str, kind: Kind | None = None) -> Location:
    """Read an address or a full URL.

    ``kind`` is what the command takes; without it a plain address needs its prefix.

    Raises:
        UsageError: the text is empty, malformed, of another kind, or a name the service forbids.
    """
    if not text.strip():
        raise UsageError(
            "the address is empty",
            hint="an unset shell variable looks like this; write for example site/config.json",
        )
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", text):
        return _parse_url(text, kind)
    prefix, colon, rest = text.partition(":")
    if colon and prefix in _PARTS:
        found = Kind(prefix)
        if kind is not None and found is not kind:
            raise UsageError(f"{text!r} names {found.one}, and this command takes {kind.one}", address=text)
        return Location(_build(found, rest, text))
    if kind is None:
        raise UsageError(
            f"{text!r} does not say what kind of resource it is",
            hint=f"write blob:{text} or another of: " + " ".join(f"{each}:" for each in Kind),
        )
    return Location(_build(kind, text, text))


def _build(kind: Kind, body: str, text: str) -> Address:
    rest, snapshot, version = _split_suffix(kind, body)
    return _named(kind, rest, text, snapshot, version)


def _named(kind: Kind, body: str, text: str, snapshot: str | None, version: str | None) -> Address:
    wanted = _PARTS[kind]
    parts = tuple(body.split("/", len(wanted) - 1))
    if len(parts) < len(wanted) or not all(parts):
        raise UsageError(
            f"{text!r} is not the address of {kind.one}: " + _missing(wanted, parts),
            hint=f"write {kind}:{'/'.join(wanted)}",
        )
    for value, suffix in ((snapshot, "snapshot"), (version, "versionid")):
        if value is not None and not _MOMENT.fullmatch(value):
            raise UsageError(
                f"?{suffix}={value} is not one the service hands out",
                hint="it looks like 2026-11-21T10:00:00.0000000Z; azguard blob list --include snapshots shows them",
            )
    address = Address(kind, parts, snapshot, version)
    names.check(address.kind, address.kind.service, address.parts)
    return address


def _missing(names: tuple[str, ...], parts: tuple[str, ...]) -> str:
    empty = [name for index, name in enumerate(names) if index >= len(parts) or not parts[index]]
    return f"{' and '.join(empty)} is missing" if len(empty) == 1 else f"{' and '.join(empty)} are missing"


def _split_suffix(kind: Kind, body: str) -> tuple[str, str | None, str | None]:
    for suffix in _SUFFIXES.get(kind, ()):
        head, found, value = body.rpartition(f"?{suffix}=")
        if found:
            if not value:
                raise UsageError(f"?{suffix}= is empty in {body!r}")
            return (head, value, None) if suffix == "snapshot" else (head, None, value)
    return body, None, None


def _parse_url(text: str, kind: Kind | None) -> Location:
    from urllib.parse import parse_qsl, urlsplit

    try:
        url = urlsplit(text)
        endpoint = base_of(url)
    except ValueError:
        raise UsageError("that is not a URL: its host or port is malformed") from None
    if url.scheme not in ("http", "https") or not url.hostname:
        raise UsageError(f"{url.scheme}:// is not a storage URL", hint="a storage URL begins with https://")
    if url.fragment or "#" in text:
        raise UsageError("that URL has a '#' in it", hint="in a name, write it as %23")
    account, service, path = _placed(url.hostname, url.port, url.path)
    if _is_path_style(url.hostname):
        endpoint = f"{endpoint}/{account}"
    query = dict(parse_qsl(url.query, keep_blank_values=True))
    body = _unquoted(path) if kind is Kind.BLOB else _unquoted(path).rstrip("/")
    if (service or (kind and kind.service)) == "table":
        body = _from_odata(body)
    found = kind or _guess(service or "blob", body)
    if service is not None and service != found.service:
        raise UsageError(f"that URL is of the {service} service, and this command takes {found.one}")
    if not account or not body:
        raise UsageError("that URL names no resource", hint="add the container and the name to it")
    if found is Kind.BLOB and "/" not in body:
        body = f"$root/{body}"
    if any(f"?{suffix}=" in body for suffix in _SUFFIXES.get(found, ())):
        raise UsageError("a name with ?snapshot= or ?versionid= in it cannot be told from a snapshot's or version's")
    snapshot = query.get("snapshot", query.get("sharesnapshot"))
    address = _named(found, body, f"{endpoint}/{body}", snapshot, query.get("versionid"))
    return Location(address, endpoint, account, _sas(url.query))


def _from_odata(path: str) -> str:
    """Return ``T/P/R`` for ``T(PartitionKey='P',RowKey='R')``, and a table's name for its two forms."""
    if entity := _ODATA_ENTITY.fullmatch(path):
        return "/".join(each.replace("''", "'") for each in entity.groups())
    if table := _ODATA_TABLE.fullmatch(path):
        return table[1] or table[2]
    return path


def base_of(url: "SplitResult") -> str:
    """Return where a URL leads, without its path: one spelling for each server, and never a password.

    Raises:
        ValueError: the host or the port is malformed.
    """
    host = url.hostname or ""
    host = f"[{host}]" if ":" in host else host
    usual = {"http": 80, "https": 443}.get(url.scheme)
    return f"{url.scheme}://{host}" + ("" if url.port in (None, usual) else f":{url.port}")


def _placed(host: str, port: int | None, path: str) -> tuple[str, str | None, str]:
    """Return the account, the service if the host tells it, and the path of the resource."""
    path = path.removeprefix("/")
    if _is_path_style(host):
        account, _, rest = path.partition("/")
        return account, _EMULATOR_PORTS.get(port or 0), rest
    account, *labels = host.split(".")
    return account, next((label for label in labels if label in ("blob", "table", "queue", "file")), None), path


def _unquoted(path: str) -> str:
    from urllib.parse import unquote

    try:
        return unquote(path, errors="strict")
    except UnicodeDecodeError:
        raise UsageError("that URL's percent-encoding is not UTF-8") from None


def _sas(query: str) -> str | None:
    """Return the signature and what it signs, without what is part of the address."""
    pairs = [pair for pair in query.split("&") if pair and pair.partition("=")[0] not in _IN_ADDRESS]
    if not pairs:
        return None
    if not any(pair.startswith("sig=") and len(pair) > len("sig=") for pair in pairs):
        raise UsageError(
            "what stands behind the '?' of that URL is neither a SAS nor a snapshot",
            hint="quote the URL, so that the shell does not cut it at the first &; in a name, write %3F for ?",
        )
    return "&".join(pairs)


def _guess(service: str, body: str) -> Kind:
    deep = "/" in body
    return {
        "blob": Kind.BLOB if deep else Kind.CONTAINER,
        "table": Kind.ENTITY if deep else Kind.TABLE,
        "queue": Kind.QUEUE,
        "file": Kind.FILE if deep else Kind.SHARE,
    }[service]


def _is_path_style(host: str) -> bool:
    return host == "localhost" or ":" in host or re.fullmatch(r"[\d.]+", host) is not None
