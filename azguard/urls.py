"""What a URL says: where it leads, which service it means, and what in its query is a SAS.

Source: https://learn.microsoft.com/rest/api/storageservices/naming-and-referencing-containers--blobs--and-metadata
"""

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from azguard.errors import UsageError

if TYPE_CHECKING:
    from urllib.parse import SplitResult

_SERVICES = ("blob", "table", "queue", "file")
# What a URL's query may say of the resource itself; the rest of it is the SAS.
_IN_ADDRESS = ("snapshot", "sharesnapshot", "versionid", "restype")
# The Table service's own way to name an entity, or a table.
_ODATA_ENTITY = re.compile(r"([A-Za-z0-9]+)\(PartitionKey='((?:[^']|'')*)', ?RowKey='((?:[^']|'')*)'\)")
_ODATA_TABLE = re.compile(r"(?:Tables\('([A-Za-z0-9]+)'\)|([A-Za-z0-9]+)\(\))")
# Azurite listens here; only a URL that neither its host nor the account in use tells needs the guess.
_EMULATOR_PORTS = {10000: "blob", 10001: "queue", 10002: "table", 10004: "file"}
# The endpoints of the account in use by service, asked for only where a URL's host does not tell its service.
Endpoints = Callable[[], Mapping[str, str]]


def base_of(url: "SplitResult") -> str:
    """Return where a URL leads, without its path: one spelling for each server, and never a password.

    Raises:
        ValueError: the host or the port is malformed.
    """
    host = url.hostname or ""
    host = f"[{host}]" if ":" in host else host
    usual = {"http": 80, "https": 443}.get(url.scheme)
    return f"{url.scheme}://{host}" + ("" if url.port in (None, usual) else f":{url.port}")


class UrlPlace(NamedTuple):
    """Where a URL leads: the endpoint, the account, its service if that can be told, and the path below it."""

    endpoint: str
    account: str
    service: str | None
    path: str


def locate(url: "SplitResult", base: str, taken: str | None, endpoints: Endpoints) -> UrlPlace:
    """Return where a URL leads; ``taken`` is the service that the command is about, if it is about one."""
    host, path = url.hostname or "", url.path.removeprefix("/")
    account, *labels = host.split(".")
    if not _is_path_style(host) and (told := next((each for each in labels if each in _SERVICES), None)):
        return UrlPlace(base, account, told, path)
    whole = f"{same_host(base)}/{path}"
    # Of services that share an endpoint, the one that the command takes.
    for service, endpoint in sorted(endpoints().items(), key=lambda pair: pair[0] != taken):
        known = endpoint.rstrip("/")
        if whole.startswith(f"{same_host(known)}/"):
            # An account's endpoint ends with its name where the host is one of many accounts.
            name = known.rpartition("/")[2] if "/" in known.partition("//")[2] else account
            return UrlPlace(known, name, service, whole.removeprefix(f"{same_host(known)}/"))
    # An emulator in a container has a name of any kind, such as azurite or host.docker.internal.
    if _is_path_style(host) or url.port in _EMULATOR_PORTS:
        account, _, path = path.partition("/")
        return UrlPlace(f"{base}/{account}", account, _EMULATOR_PORTS.get(url.port or 0), path)
    return UrlPlace(base, account, None, path)


def same_host(endpoint: str) -> str:
    """Return an endpoint with the names of this machine made one."""
    return re.sub(r"^(https?://)(localhost|\[::1\])(?=[:/]|$)", r"\g<1>127.0.0.1", endpoint)


def decode_path(path: str) -> str:
    """Decode the percent-encoding of a path, which must be UTF-8."""
    from urllib.parse import unquote

    try:
        return unquote(path, errors="strict")
    except UnicodeDecodeError:
        raise UsageError("that URL's percent-encoding is not UTF-8") from None


def sas(query: str) -> str | None:
    """Return the signature and what it signs, without what is part of the address."""
    pairs = [pair for pair in query.split("&") if pair and pair.partition("=")[0] not in _IN_ADDRESS]
    if not pairs:
        return None
    if not any(pair.startswith("sig=") and len(pair) > len("sig=") for pair in pairs):
        raise UsageError(
            "the part behind the '?' of that URL is neither a SAS nor a snapshot",
            reason="url_query_malformed",
        )
    return "&".join(pairs)


def from_odata(path: str) -> str:
    """Return ``T/P/R`` for ``T(PartitionKey='P',RowKey='R')``, and a table's name for its two forms."""
    if entity := _ODATA_ENTITY.fullmatch(path):
        return "/".join(each.replace("''", "'") for each in entity.groups())
    if table := _ODATA_TABLE.fullmatch(path):
        return table[1] or table[2]
    return path


def _is_path_style(host: str) -> bool:
    return host == "localhost" or ":" in host or re.fullmatch(r"[\d.]+", host) is not None
