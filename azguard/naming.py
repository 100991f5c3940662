"""The names that the service takes, checked before any request; and the URLs that are made of them.

What a URL says: where it leads, which service it means, and what in its query is a SAS.

Source: Naming and Referencing Containers, Blobs, and Metadata; Understanding the Table Service Data Model; Naming
Queues and Metadata; Naming and Referencing Shares, Directories, Files, and Metadata.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from azguard.errors import UsageError
from azguard.frozen import frozen

if TYPE_CHECKING:
    from urllib.parse import SplitResult


_CONTAINER_NAME = r"(?!.*--)[a-z0-9][a-z0-9-]{1,61}[a-z0-9]|\$root|\$logs|\$web|\$blobchangefeed"
_TABLE_NAME = r"[A-Za-z][A-Za-z0-9]{2,62}"
_KEY_FORBIDDEN = r"[/\\#?\x00-\x1f\x7f-\x9f]"
_PATH_FORBIDDEN = r'["\\:|<>*?\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]'
# The names of devices, which no program could open over SMB.
_DEVICE = r"(?i)CON|PRN|AUX|NUL|CLOCK\$|COM[1-9]|LPT[1-9]"
_LONGEST_BLOB_NAME = 1024
_MOST_SLASHES_OF_A_BLOB_NAME = 253
_RESOLVED = frozenset((".", ".."))
_LONGEST_PATH = 2048
_LONGEST_PART_OF_A_PATH = 255
_MOST_PARTS_OF_A_PATH = 251
_SERVICES = ("blob", "table", "queue", "file")
# What a URL's query may say of the resource itself; the rest of it is the SAS.
_IN_ADDRESS = ("snapshot", "sharesnapshot", "versionid", "restype")
# The Table service's own way to name an entity, or a table.
_ODATA_ENTITY = r"([A-Za-z0-9]+)\(PartitionKey='((?:[^']|'')*)', ?RowKey='((?:[^']|'')*)'\)"
_ODATA_TABLE = r"(?:Tables\('([A-Za-z0-9]+)'\)|([A-Za-z0-9]+)\(\))"
#: Azurite and the Files emulator listen here. Only a URL that neither its host nor the account in use tells needs it.
EMULATOR_PORTS = {10000: "blob", 10001: "queue", 10002: "table", 10004: "file"}
# The endpoints of the account in use by service, asked for only where a URL's host does not tell its service.
Endpoints = Callable[[], Mapping[str, str]]


def check(kind: str, service: str, parts: tuple[str, ...]) -> None:
    """Refuse the parts of an address that the service would refuse, or quietly take for another.

    Raises:
        UsageError: one of them is such a name.
    """
    _check_first(service, parts[0])
    if kind == "blob":
        _check_blob_name(parts[-1])
    elif kind == "entity":
        check_key(parts[1], "partition key")
        check_key(parts[2], "row key")
    elif kind in ("dir", "file"):
        _check_path(parts[-1])


def check_text(text: str, what: str) -> None:
    """Refuse a text that was typed as bytes that are not UTF-8; ``what`` names it.

    Raises:
        UsageError: it holds such bytes; shows them.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        shown = ascii(text.encode("utf-8", "surrogateescape"))[2:-1] if _is_typed(text) else ascii(text)[1:-1]
        raise UsageError(f"{what} is not UTF-8: {shown}", reason="text_not_utf8") from None


def _is_typed(text: str) -> bool:
    """Return whether every surrogate stands for a byte, as in words of a command line."""
    return not re.search(r"[\ud800-\udc7f\udd00-\udfff]", text)


# Of a tree all names have the same one.
@lru_cache(maxsize=8)
def _check_first(service: str, name: str) -> None:
    if service == "table":
        if not re.fullmatch(_TABLE_NAME, name) or name.lower() == "tables":
            raise UsageError(f"{name!r} is not a table name", reason="table_name_malformed")
    elif service == "blob" and "/" in name and re.fullmatch(_CONTAINER_NAME, name.partition("/")[0]):
        # A key has slashes too: its parts would be shown by themselves, and no longer look like a secret.
        container, _, below = name.partition("/")
        raise UsageError(
            f"{name!r} is not a container name",
            reason="container_name_has_slash",
            values={"container": container, "text": below},
        )
    elif not re.fullmatch(_CONTAINER_NAME, name):
        noun = {"blob": "container", "queue": "queue", "file": "share"}[service]
        raise UsageError(f"{name!r} is not a {noun} name", reason="container_name_malformed")


def _check_blob_name(name: str) -> None:
    if len(name) > _LONGEST_BLOB_NAME:
        raise UsageError(f"the blob's name has {len(name)} characters; the service takes at most 1,024")
    if name.count("/") > _MOST_SLASHES_OF_A_BLOB_NAME:
        raise UsageError("the blob's name has more than 254 path segments")
    if not name.isprintable() and re.search(r"[\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]", name):
        raise UsageError("the blob's name has a control character, which the service refuses")
    if "\\" in name:
        raise UsageError(
            f"{name!r} holds a backslash, which the service takes for a slash", reason="name_has_backslash"
        )
    if name.endswith("."):
        raise UsageError(f"{name!r} ends with a dot, which the service drops", reason="name_ends_with_dot")
    if not _RESOLVED.isdisjoint(name.split("/")):
        raise UsageError(f"{name!r} has a '.' or '..' segment, which is resolved on the way: it names another blob")


def check_key(key: str, name: str) -> None:
    """Refuse a value that no partition or row key can have; ``name`` says which of them it is.

    Raises:
        UsageError: it is too long or holds a forbidden character; lists those.
    """
    if len(key.encode("utf-16-le", "surrogatepass")) > 1024 * 2:
        raise UsageError(f"the {name} has more than 1,024 characters, and the service takes no more")
    if found := re.search(_KEY_FORBIDDEN, key):
        raise UsageError(
            f"the {name} {key!r} holds {found[0]!r}, which the service takes in no key",
            reason="key_has_slash" if found[0] == "/" else "key_has_character",
        )
    if not key.isprintable() and re.search(r"[\ud800-\udfff]", key):
        raise UsageError(f"the {name} {key!r} is not Unicode text")


def _check_path(path: str) -> None:
    if found := re.search(_PATH_FORBIDDEN, path):
        raise UsageError(f"{path!r} holds {found[0]!r}", reason="path_character")
    segments = path.split("/")
    if not all(segments) or not _RESOLVED.isdisjoint(segments):
        raise UsageError(f"{path!r} has an empty, '.' or '..' segment")
    if len(path) > _LONGEST_PATH or any(len(segment) > _LONGEST_PART_OF_A_PATH for segment in segments):
        raise UsageError("the path is over 2,048 characters, or a part of it is over 255")
    if len(segments) > _MOST_PARTS_OF_A_PATH:
        raise UsageError("the path has more than 250 directories")


def check_new_path(path: str) -> None:
    """Refuse the path of a new file in a share that no program could open over SMB.

    Raises:
        UsageError: a part of it ends with a dot or a space, which Windows drops, or is the name of a device.
    """
    for segment in path.split("/"):
        if segment.endswith((".", " ")):
            raise UsageError(f"{path!r} has a part that ends with a dot or a space", reason="path_part_end")
        if re.fullmatch(_DEVICE, segment):
            raise UsageError(f"{path!r} has the part {segment!r}, which is the name of a device")


def fold_path(path: str) -> str:
    """Return the form that two paths of a share have in common if they differ only in case: such paths name one file.

    Letter by letter, as the service compares them: a sharp s is not two letters.
    """
    return path.upper() if path.isascii() else "".join(map(_fold_letter, path))


def _fold_letter(letter: str) -> str:
    upper = letter.upper()
    return upper if len(upper) == 1 else letter


def find_url_base(url: "SplitResult") -> str:
    """Return where a URL leads, without its path: one spelling for each server, and never a password.

    Raises:
        ValueError: the host or the port is malformed.
    """
    host = url.hostname or ""
    host = f"[{host}]" if ":" in host else host
    usual = {"http": 80, "https": 443}.get(url.scheme)
    return f"{url.scheme}://{host}" + ("" if url.port in (None, usual) else f":{url.port}")


@frozen
class UrlPlace:
    """Where a URL leads: the endpoint, the account, its service if that can be told, and the path below it."""

    endpoint: str
    account: str
    service: str | None
    path: str


def locate_url(url: "SplitResult", base: str, taken: str | None, endpoints: Endpoints) -> UrlPlace:
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
    if _is_path_style(host) or url.port in EMULATOR_PORTS:
        account, _, path = path.partition("/")
        return UrlPlace(f"{base}/{account}", account, EMULATOR_PORTS.get(url.port or 0), path)
    return UrlPlace(base, account, None, path)


def same_host(endpoint: str) -> str:
    """Return an endpoint with the names of this machine made one."""
    return re.sub(r"^(https?://)(localhost|\[::1\])(?=[:/]|$)", r"\g<1>127.0.0.1", endpoint)


def decode_url_path(path: str) -> str:
    """Decode the percent-encoding of a path, which must be UTF-8."""
    from urllib.parse import unquote

    try:
        return unquote(path, errors="strict")
    except UnicodeDecodeError:
        raise UsageError("that URL's percent-encoding is not UTF-8") from None


def find_sas(query: str) -> str | None:
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


def parse_odata(path: str) -> str:
    """Return ``T/P/R`` for ``T(PartitionKey='P',RowKey='R')``, and a table's name for its two forms."""
    if entity := re.fullmatch(_ODATA_ENTITY, path):
        return "/".join(each.replace("''", "'") for each in entity.groups())
    if table := re.fullmatch(_ODATA_TABLE, path):
        return table[1] or table[2]
    return path


def _is_path_style(host: str) -> bool:
    return host == "localhost" or ":" in host or re.fullmatch(r"[\d.]+", host) is not None
