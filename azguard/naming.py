"""The names that the service takes, checked before any request.

Source: Naming and Referencing Containers, Blobs, and Metadata; Understanding the Table Service Data Model; Naming
Queues and Metadata; Naming and Referencing Shares, Directories, Files, and Metadata.
"""

import re

from azguard.errors import UsageError

_CONTAINER_NAME = re.compile(r"(?!.*--)[a-z0-9][a-z0-9-]{1,61}[a-z0-9]|\$root|\$logs|\$web|\$blobchangefeed")
_TABLE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]{2,62}")
_KEY_FORBIDDEN = re.compile(r"[/\\#?\x00-\x1f\x7f-\x9f]")
_PATH_FORBIDDEN = re.compile(r'["\\:|<>*?\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]')
# The names of devices, which no program could open over SMB.
_DEVICE = re.compile(r"CON|PRN|AUX|NUL|CLOCK\$|COM[1-9]|LPT[1-9]", re.IGNORECASE)
_LONGEST_BLOB_NAME = 1024
_MOST_SLASHES_OF_A_BLOB_NAME = 253
_LONGEST_PATH = 2048
_LONGEST_PART_OF_A_PATH = 255
_MOST_PARTS_OF_A_PATH = 251


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
    """Refuse what was typed as bytes that are not UTF-8; ``what`` names it.

    Raises:
        UsageError: it holds such bytes; shows them.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        shown = ascii(text.encode("utf-8", "surrogateescape"))[2:-1] if _is_typed(text) else ascii(text)[1:-1]
        raise UsageError(
            f"{what} is not UTF-8: {shown}",
            reason="text_not_utf8",
        ) from None


def _is_typed(text: str) -> bool:
    """Return whether every surrogate stands for a byte, as in words of a command line."""
    return not re.search(r"[\ud800-\udc7f\udd00-\udfff]", text)


def _check_first(service: str, name: str) -> None:
    if service == "table":
        if not _TABLE_NAME.fullmatch(name) or name.lower() == "tables":
            raise UsageError(f"{name!r} is not a table name", reason="table_name_malformed")
    elif service == "blob" and "/" in name:
        container, _, below = name.partition("/")
        raise UsageError(
            f"{name!r} is not a container name",
            reason="container_name_has_slash",
            values={"container": container, "text": below},
        )
    elif not _CONTAINER_NAME.fullmatch(name):
        noun = {"blob": "container", "queue": "queue", "file": "share"}[service]
        raise UsageError(
            f"{name!r} is not a {noun} name",
            reason="container_name_malformed",
        )


def _check_blob_name(name: str) -> None:
    if len(name) > _LONGEST_BLOB_NAME:
        raise UsageError(f"the blob's name has {len(name)} characters; the service takes at most 1,024")
    if name.count("/") > _MOST_SLASHES_OF_A_BLOB_NAME:
        raise UsageError("the blob's name has more than 254 path segments")
    if re.search(r"[\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]", name):
        raise UsageError("the blob's name has a control character, which the service refuses")
    if "\\" in name:
        raise UsageError(
            f"{name!r} holds a backslash, which the service takes for a slash", reason="name_has_backslash"
        )
    if name.endswith("."):
        raise UsageError(f"{name!r} ends with a dot, which the service drops", reason="name_ends_with_dot")
    if any(segment in (".", "..") for segment in name.split("/")):
        raise UsageError(f"{name!r} has a '.' or '..' segment, which is resolved on the way: it names another blob")


def check_key(key: str, name: str) -> None:
    """Refuse a value that no partition or row key can have; ``name`` says which of them it is.

    Raises:
        UsageError: it is too long or holds a forbidden character; lists those.
    """
    if len(key.encode("utf-16-le", "surrogatepass")) > 1024 * 2:
        raise UsageError(f"the {name} has more than 1,024 characters, and the service takes no more")
    if found := _KEY_FORBIDDEN.search(key):
        raise UsageError(
            f"the {name} {key!r} holds {found[0]!r}, which the service takes in no key",
            reason="key_has_slash" if found[0] == "/" else "key_has_character",
        )
    if re.search(r"[\ud800-\udfff]", key):
        raise UsageError(f"the {name} {key!r} is not Unicode text")


def _check_path(path: str) -> None:
    if found := _PATH_FORBIDDEN.search(path):
        raise UsageError(f"{path!r} holds {found[0]!r}", reason="path_character")
    segments = path.split("/")
    if not all(segments) or any(segment in (".", "..") for segment in segments):
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
        if _DEVICE.fullmatch(segment):
            raise UsageError(f"{path!r} has the part {segment!r}, which is the name of a device")


def fold_path(path: str) -> str:
    """Return the form that two paths of a share have in common if they differ only in case: such paths name one file.

    Letter by letter, as the service compares them: a sharp s is not two letters.
    """
    return path.upper() if path.isascii() else "".join(map(_fold_letter, path))


def _fold_letter(letter: str) -> str:
    upper = letter.upper()
    return upper if len(upper) == 1 else letter
