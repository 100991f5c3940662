"""One string names one resource: ``blob:site/config.json``, or a full URL.

An address carries no account and no secret. A URL is split into its address, its endpoint and its SAS,
so that the SAS never becomes part of an address, a cache key or a message.
"""

import re
from dataclasses import dataclass, field
from enum import StrEnum

from azguard.errors import UsageError


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
            raise UsageError(f"{text!r} names a {found}, and this command takes a {kind}", address=text)
        return Location(_build(found, rest, text))
    if kind is None:
        raise UsageError(
            f"{text!r} does not say what kind of resource it is",
            hint=f"write blob:{text} or another of: " + " ".join(f"{each}:" for each in Kind),
        )
    return Location(_build(kind, text, text))


def _build(kind: Kind, body: str, text: str) -> Address:
    body, snapshot, version = _split_suffix(kind, body)
    names = _PARTS[kind]
    parts = tuple(body.split("/", len(names) - 1))
    if len(parts) < len(names) or not all(parts):
        raise UsageError(
            f"{text!r} is not a {kind} address: " + _missing(names, parts),
            hint=f"write {kind}:{'/'.join(names)}",
        )
    address = Address(kind, parts, snapshot, version)
    _check_names(address)
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
    from urllib.parse import parse_qsl, unquote, urlsplit

    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        raise UsageError("that is not a URL: its host or port is malformed") from None
    host = url.hostname or ""
    if url.scheme not in ("http", "https") or not host:
        raise UsageError(f"{url.scheme}:// is not a storage URL", hint="a storage URL begins with https://")
    segments = url.path.lstrip("/")
    endpoint = f"{url.scheme}://{url.netloc.rpartition('@')[2]}"
    if _is_path_style(host):
        account, _, segments = segments.partition("/")
        endpoint = f"{endpoint}/{account}"
        service = _EMULATOR_PORTS.get(port or 0)
    else:
        account = host.split(".")[0]
        labels = host.split(".")
        service = next((label for label in labels[1:] if label in ("blob", "table", "queue", "file")), None)
    query = parse_qsl(url.query, keep_blank_values=True)
    special = {key: value for key, value in query if key in ("snapshot", "sharesnapshot", "versionid")}
    sas = "&".join(pair for pair in url.query.split("&") if pair.partition("=")[0] not in special) or None
    body = unquote(segments).rstrip("/") if kind is not Kind.BLOB else unquote(segments)
    found = kind or _guess(service or "blob", body)
    if service is not None and service != found.service:
        raise UsageError(f"that URL is of the {service} service, and this command takes a {found}")
    if not account or not body:
        raise UsageError("that URL names no resource", hint="add the container and the name to it")
    if found is Kind.BLOB and "/" not in body:
        body = f"$root/{body}"
    snapshot = special.get("snapshot") or special.get("sharesnapshot")
    built = _build(found, body, f"{endpoint}/{body}")
    address = Address(built.kind, built.parts, snapshot or built.snapshot, special.get("versionid") or built.version)
    return Location(address, endpoint, account, sas)


def _guess(service: str, body: str) -> Kind:
    deep = "/" in body
    return {
        "blob": Kind.BLOB if deep else Kind.CONTAINER,
        "table": Kind.TABLE,
        "queue": Kind.QUEUE,
        "file": Kind.FILE if deep else Kind.SHARE,
    }[service]


def _is_path_style(host: str) -> bool:
    return host == "localhost" or ":" in host or re.fullmatch(r"[\d.]+", host) is not None


_CONTAINER_NAME = re.compile(r"(?!.*--)[a-z0-9][a-z0-9-]{1,61}[a-z0-9]|\$root|\$logs|\$web|\$blobchangefeed")
_TABLE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]{2,62}")
_KEY_FORBIDDEN = re.compile(r"[/\\#?\x00-\x1f\x7f-\x9f]")
_PATH_FORBIDDEN = re.compile(r'["\\:|<>*?\x00-\x1f]')


def _check_names(address: Address) -> None:
    """Refuse what the service refuses, before any request.

    Source: Naming and Referencing Containers, Blobs, and Metadata; Understanding the Table Service Data
    Model; Naming Queues and Metadata; Naming and Referencing Shares, Directories, Files, and Metadata.
    """
    first = address.container
    if address.kind.service == "table":
        if not _TABLE_NAME.fullmatch(first) or first.lower() == "tables":
            raise UsageError(f"{first!r} is not a table name", hint="3 to 63 letters and digits, the first a letter")
    elif not _CONTAINER_NAME.fullmatch(first):
        noun = {"blob": "container", "queue": "queue", "file": "share"}[address.kind.service]
        raise UsageError(
            f"{first!r} is not a {noun} name",
            hint="3 to 63 lower-case letters, digits and single hyphens, beginning and ending with a letter or digit",
        )
    if address.kind is Kind.BLOB:
        _check_blob_name(address.name)
    elif address.kind is Kind.ENTITY:
        _check_keys(address.parts[1:])
    elif address.kind in (Kind.DIR, Kind.FILE):
        _check_path(address.name)


def _check_blob_name(name: str) -> None:
    if len(name) > 1024:
        raise UsageError(f"the blob's name has {len(name)} characters; the service takes at most 1,024")
    if name.count("/") > 253:
        raise UsageError("the blob's name has more than 254 path segments")
    if re.search(r"[\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]", name):
        raise UsageError("the blob's name has a control character, which the service refuses")
    if name.endswith("."):
        raise UsageError(f"{name!r} ends with a dot, which the service drops", hint="take another name")


def _check_keys(keys: tuple[str, ...]) -> None:
    for key in keys:
        if len(key.encode("utf-16-le")) > 1024 * 2:
            raise UsageError("a partition or row key has more than 1,024 characters")
        if found := _KEY_FORBIDDEN.search(key):
            raise UsageError(f"{key!r} holds {found[0]!r}", hint="keys may not hold / \\ # ? or control characters")


def _check_path(path: str) -> None:
    if found := _PATH_FORBIDDEN.search(path):
        raise UsageError(f"{path!r} holds {found[0]!r}", hint='paths may not hold " \\ : | < > * ?')
    segments = path.split("/")
    if not all(segments) or any(segment in (".", "..") for segment in segments):
        raise UsageError(f"{path!r} has an empty, '.' or '..' segment")
    if len(path) > 2048 or any(len(segment) > 255 for segment in segments):
        raise UsageError("the path is over 2,048 characters, or a part of it is over 255")
