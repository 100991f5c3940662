"""One string names one resource: ``blob:site/config.json``, or a full URL.

An address carries no account and no secret. A URL is split into its address, its endpoint and its SAS,
so that the SAS never becomes part of an address, a cache key or a message.
"""

import re
from dataclasses import field, replace
from enum import StrEnum

from azguard import naming
from azguard.errors import UsageError
from azguard.frozen import frozen


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
    def noun(self) -> str:
        """Return it as a word, for messages."""
        return "directory" if self is Kind.DIR else self.value

    @property
    def one(self) -> str:
        """Return it with its article, for messages."""
        return f"{'an' if self is Kind.ENTITY else 'a'} {self.noun}"

    @property
    def form(self) -> str:
        """Return how one is written, without the prefix: ``CONTAINER/NAME``."""
        return "/".join(_PARTS[self])


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
_SUFFIXES = {
    Kind.BLOB: ("snapshot", "versionid"), Kind.SHARE: ("snapshot",), Kind.DIR: ("snapshot",), Kind.FILE: ("snapshot",),
}  # fmt: skip
_MOMENT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z"
_HOST_LABEL = r"[a-z0-9-]+"
_DOMAINS = ("blob.", "table.", "queue.", "file.", "dfs.")
# A SAS names its version first, and its signature somewhere.
_SAS_BEGINS = r"(?i)\?(?:sv=\d{4}-\d\d-\d\d(?:&|$)|(?:[^/?]*&)?sig=.)"


@frozen
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

    @property
    def folded(self) -> "Address":
        """Return the address that all have in common which name this resource.

        The service ignores the case of the letters of a table's name, and of a path in a share.

        Source: https://learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model
        """
        first, *rest = self.parts
        if self.kind.service == "table":
            return replace(self, parts=(first.lower(), *rest))
        if self.kind.service == "file":
            return replace(self, parts=(first, *map(naming.fold_path, rest)))
        return self

    @property
    def path(self) -> str:
        """Return the path inside a share; empty for the share itself."""
        return self.parts[1] if len(self.parts) > 1 else ""


@frozen
class Location:
    """An address, and where a URL said it lives."""

    address: Address
    endpoint: str | None = None
    account_name: str | None = None
    sas: str | None = field(default=None, repr=False)


def parse(text: str, kind: Kind | None = None, endpoints: naming.Endpoints = dict) -> Location:
    """Read an address or a full URL.

    ``kind`` is what the command takes; without it a plain address is a blob's, or has its prefix. ``endpoints`` tells
    the service of a URL whose host does not.

    Raises:
        UsageError: the text is empty, malformed, of another kind, or a name the service forbids.
    """
    naming.check_text(text, "the address")
    if not text.strip():
        raise UsageError("the address is empty", reason="address_empty")
    if "://" in text and re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", text):
        return _parse_url(text, kind, endpoints)
    _refuse_cut_url(text)
    _refuse_sas(text)
    prefix, colon, rest = text.partition(":")
    if colon and prefix not in _PARTS:
        _refuse_prefix(prefix, rest)
    if colon and prefix in _PARTS:
        found = Kind(prefix)
        if kind is not None and found is not kind:
            raise UsageError(f"{text!r} names {found.one}, and this command takes {kind.one}", address=text)
        return Location(_build(found, rest, text))
    if kind is None and "/" in text:
        return Location(_build(Kind.BLOB, text, text))
    if kind is None:
        raise UsageError(
            f"{text!r} does not say what kind of resource it is",
            reason="address_without_kind",
            values={"text": text, "kinds": _list_kinds()},
        )
    return Location(_build(kind, text, text))


def _refuse_prefix(prefix: str, rest: str) -> None:
    """Refuse a kind in capitals, and what is no kind: no container, table or share has a colon in its name."""
    wrong = f"{prefix!r} is no kind of resource"
    if prefix.lower() in _PARTS:
        raise UsageError(wrong, reason="address_kind_in_capitals", values={"kind": prefix.lower()})
    if "/" in rest and "/" not in prefix:
        raise UsageError(wrong, reason="address_kind_unknown", values={"kinds": _list_kinds()})


def _list_kinds() -> str:
    return " ".join(f"{each}:" for each in Kind)


def find_service(text: str, endpoints: naming.Endpoints = dict) -> str | None:
    """Return the service that a URL tells: blob, table, queue or file; None if it tells none, or is no URL."""
    from urllib.parse import urlsplit

    try:
        url = urlsplit(text)
        return naming.locate_url(url, naming.find_url_base(url), None, endpoints).service if url.hostname else None
    except ValueError:
        return None


def is_snapshot_time(text: str) -> bool:
    """Return whether a text names a snapshot or a version as the service does."""
    return re.fullmatch(_MOMENT, text) is not None


def _refuse_cut_url(text: str) -> None:
    """Refuse a URL that lacks its scheme, or a slash of it: no name of a container, a table or a share has a dot."""
    scheme, _, rest = text.lower().partition(":")
    label, _, domain = text.lower().partition(".")
    is_host = domain.startswith(_DOMAINS) and re.fullmatch(_HOST_LABEL, label)
    if is_host or (scheme in ("http", "https") and rest.strip("/")):
        raise UsageError("that looks like a URL without its https://", reason="url_without_scheme")


def _refuse_sas(text: str) -> None:
    """Refuse a SAS behind a plain address, which would become part of the name; the message does not show it."""
    if "?" in text and (found := re.search(_SAS_BEGINS, text)):
        raise UsageError(
            f"a SAS stands behind {text[: found.start()]!r}, and a plain address takes none",
            reason="sas_behind_address",
        )


def _build(kind: Kind, body: str, text: str) -> Address:
    rest, snapshot, version = _split_suffix(kind, body)
    return _build_checked(kind, rest, text, snapshot, version)


def _build_checked(kind: Kind, body: str, text: str, snapshot: str | None, version: str | None) -> Address:
    wanted = _PARTS[kind]
    parts = tuple(body.split("/", len(wanted) - 1))
    if len(parts) < len(wanted) or not all(parts):
        raise UsageError(
            f"{text!r} is not the address of {kind.one}: " + _missing(wanted, parts),
            reason="address_incomplete",
            values={"kind": kind, "form": kind.form},
        )
    for value, suffix in ((snapshot, "snapshot"), (version, "versionid")):
        if value is not None and not is_snapshot_time(value):
            raise UsageError(f"?{suffix}={value} is not one the service hands out", reason="snapshot_malformed")
    address = Address(kind, parts, snapshot, version)
    naming.check(address.kind, address.kind.service, address.parts)
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


def _parse_url(text: str, kind: Kind | None, endpoints: naming.Endpoints) -> Location:
    from urllib.parse import parse_qsl, urlsplit

    try:
        url = urlsplit(text)
        base = naming.find_url_base(url)
    except ValueError:
        raise UsageError("that is not a URL: its host or port is malformed") from None
    if url.scheme not in ("http", "https") or not url.hostname:
        raise UsageError(f"{url.scheme}:// is not a storage URL", reason="url_not_of_storage")
    if url.fragment or "#" in text:
        raise UsageError("that URL has a '#' in it", reason="url_has_fragment")
    place = naming.locate_url(url, base, kind and kind.service, endpoints)
    query = dict(parse_qsl(url.query, keep_blank_values=True))
    service = place.service or (kind.service if kind else "blob")
    if kind is not None and service != kind.service:
        raise UsageError(f"that URL is of the {service} service, and this command takes {kind.one}")
    found, body = _resource(service, naming.decode_url_path(place.path), kind, query.get("restype"))
    if not place.account or not body:
        raise UsageError("that URL names no resource", reason="url_names_nothing")
    if any(f"?{suffix}=" in body for suffix in _SUFFIXES.get(found, ())):
        raise UsageError("a name with ?snapshot= or ?versionid= in it cannot be told from a snapshot's or version's")
    snapshot = query.get("snapshot", query.get("sharesnapshot"))
    address = _build_checked(found, body, f"{place.endpoint}/{body}", snapshot, query.get("versionid"))
    return Location(address, place.endpoint, place.account, naming.find_sas(url.query))


def _resource(service: str, path: str, kind: Kind | None, restype: str | None) -> tuple[Kind, str]:
    """Return the kind of resource that the path of a URL names, and its address without the prefix."""
    folder = restype == "directory" or path.endswith("/")
    body = path if kind is Kind.BLOB or (service == "blob" and "/" in path.rstrip("/")) else path.rstrip("/")
    if service == "table":
        body = naming.parse_odata(body)
        return kind or (Kind.ENTITY if "/" in body else Kind.TABLE), body
    if service == "queue":
        queue, messages, rest = body.partition("/messages")
        message = messages and rest.removeprefix("/")
        return kind or (Kind.MESSAGE if message else Kind.QUEUE), f"{queue}/{message}" if message else queue
    if service == "file":
        deep = Kind.DIR if folder else Kind.FILE
        return kind or (deep if "/" in body else Kind.SHARE), body
    if kind is Kind.BLOB and body and "/" not in body:
        return kind, f"$root/{body}"
    return kind or (Kind.BLOB if "/" in body else Kind.CONTAINER), body
