"""What Azure accepts as metadata (names that are C# identifiers, values that survive a header) and as index tags."""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Generic, TypeVar

from azguard.documents import json_text
from azguard.documents.paths import MISSING, Path, describe
from azguard.errors import TransformFailed, UsageError
from azguard.frozen import frozen

T = TypeVar("T")
# A C# identifier.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Visible ASCII, with blanks inside.
_VALUE = re.compile(r"([!-~]([ -~]*[!-~])?)?")
# Of all names and values together: https://learn.microsoft.com/rest/api/storageservices/set-blob-metadata
_MOST_BYTES = 8192
# https://learn.microsoft.com/rest/api/storageservices/set-blob-tags
MOST = 10
_KEY = re.compile(r"[A-Za-z0-9 +\-./:=_]{1,128}")
_TAG_VALUE = re.compile(r"[A-Za-z0-9 +\-./:=_]{0,256}")


@frozen
class PartOfFile(Generic[T]):
    """What a document says that a part is to be."""

    value: T
    #: The version that the document was printed with; None if it does not say.
    etag: str | None


def take_part(document: object, name: str) -> PartOfFile[object]:
    """Return the part of this name, with its version; a document without the part is the part itself."""
    if not isinstance(document, dict) or not isinstance(document.get(name), dict):
        return PartOfFile(document, None)
    etag = document.get("etag")
    return PartOfFile(document[name], etag if isinstance(etag, str) else None)


def is_name(text: str) -> bool:
    """Return whether the service accepts a text as the name of a metadata entry.

    Source: https://learn.microsoft.com/rest/api/storageservices/naming-and-referencing-containers--blobs--and-metadata
    """
    return _NAME.fullmatch(text) is not None


def is_value(text: str) -> bool:
    """Return whether a text fits into an HTTP header, which carries the value of a metadata entry, unchanged."""
    return _VALUE.fullmatch(text) is not None


def check(metadata: dict[str, str], names: Iterable[str]) -> None:
    """Refuse metadata that Azure would refuse or change on the way.

    ``names`` are the entries to be written anew; the others came from the service and are not judged.
    """
    for name in names:
        if not is_name(name):
            raise TransformFailed(f"{name!r} is not a metadata name", reason="metadata_name_malformed")
        if not is_value(metadata[name]):
            raise TransformFailed(
                f"the metadata value of {name} does not fit into an HTTP header: {metadata[name][:80]!r}",
                reason="metadata_value_malformed",
            )
    spellings: dict[str, str] = {}
    for name in metadata:
        other = spellings.setdefault(name.lower(), name)
        if other != name:
            raise TransformFailed(
                f"the metadata names {other} and {name} differ only in case, which Azure ignores",
                reason="metadata_names_differ_in_case",
                values={"name": other},
            )


def flatten(document: object) -> dict[str, str]:
    """Return an edited JSON object as metadata: numbers, true and false as their text, without what is null.

    Raises:
        TransformFailed: it is no object, or a value is nested.
    """
    if not isinstance(document, dict):
        raise TransformFailed(f"metadata must stay an object of strings, it would be {describe(document)}")
    nested = next((name for name, value in document.items() if isinstance(value, dict | list)), None)
    if nested is not None:
        raise TransformFailed(
            f"the metadata value of {nested} would be {describe(document[nested])}, it can only be text",
            reason="metadata_value_nested",
        )
    return {
        name: value if isinstance(value, str) else json_text.render(value, json_text.Style())
        for name, value in document.items()
        if value is not None
    }


def read_number(text: object, path: Path) -> object:
    """Return the number in a metadata value; MISSING stays what it is."""
    number: object = json_text.read_spelled(text) if isinstance(text, str) else MISSING
    if number is None:
        raise TransformFailed(
            f"{path} is {text!r}, not a number", reason="increment_of_no_number", values={"path": str(path)}
        )
    return number


def as_json(metadata: dict[str, str]) -> bytes:
    """Return metadata as indented JSON, which is what an update of it is made on."""
    return (json.dumps(metadata, indent=2, ensure_ascii=False, sort_keys=True) + "\n").encode()


def from_json(content: bytes) -> dict[str, str]:
    """Return the metadata that a JSON text holds.

    Raises:
        TransformFailed: it is none, or Azure would refuse or change it.
    """
    try:
        found = json.loads(content)
    except ValueError as error:
        raise TransformFailed(f"the new metadata is not JSON: {error}") from None
    flat = flatten(found)
    check(flat, flat)
    return flat


def parse(document: object, reserved: str) -> PartOfFile[dict[str, str]]:
    """Return the metadata in a JSON value: an object of strings, or all that a read of them prints.

    ``reserved`` is the name of azguard's own entry, which no other tool writes.

    Raises:
        UsageError: it is none, or the service would refuse or change it.
    """
    found = take_part(document, "metadata")
    try:
        flat = flatten(found.value)
        check(flat, flat)
    except TransformFailed as error:
        raise error.as_kind(UsageError) from None
    return PartOfFile(refuse_reserved(flat, reserved), found.etag)


def refuse_reserved(metadata: dict[str, str], reserved: str) -> dict[str, str]:
    """Return metadata without an entry of azguard's own.

    Raises:
        UsageError: there is one.
    """
    if reserved in (name.lower() for name in metadata):
        raise UsageError(f"the metadata entry {reserved} is azguard's own", reason="metadata_name_reserved")
    return metadata


def refuse_made(made: bytes, reserved: str) -> None:
    """Refuse edited metadata, as JSON, that have an entry of azguard's own: their source has none.

    Raises:
        TransformFailed: they have.
    """
    try:
        found = json.loads(made)
    except ValueError:
        return  # It is refused for that.
    if isinstance(found, dict) and reserved in (name.lower() for name in found):
        raise TransformFailed(f"{reserved} is how azguard knows its own writes; it cannot be edited")


def count_room(metadata: Mapping[str, str], name: str) -> int:
    """Return how many characters the value of one more entry may have; negative where there is no room."""
    return _MOST_BYTES - sum(len(each) + len(value) for each, value in metadata.items()) - len(name)


def check_size(metadata: Mapping[str, str], own: Collection[str]) -> None:
    """Refuse metadata that are too large; ``own`` are the names of azguard's entries among them.

    Raises:
        UsageError: they are.
    """
    sizes = {name: len(name) + len(value) for name, value in metadata.items()}
    if sum(sizes.values()) > _MOST_BYTES:
        raise UsageError(
            f"the metadata would have {sum(sizes.values()):,} bytes, and the service takes {_MOST_BYTES:,}; "
            f"azguard's own entries have {sum(sizes[name] for name in own):,} of them",
            reason="metadata_too_large",
        )


def is_tag(key: str, value: str) -> bool:
    """Return whether the service accepts a key with a value."""
    return _KEY.fullmatch(key) is not None and _TAG_VALUE.fullmatch(value) is not None


def parse_tags(document: object) -> PartOfFile[dict[str, str]]:
    """Return the tags in a JSON value: an object of strings, or all that a read of them prints.

    Raises:
        UsageError: it is none, or the service would refuse it.
    """
    found = take_part(document, "tags")
    return PartOfFile(check_tags(found.value), found.etag)


def check_tags(value: object) -> dict[str, str]:
    """Return a JSON value as tags.

    Raises:
        UsageError: it is no object of strings, or the service would refuse it.
    """
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise UsageError("the tags are not a JSON object of strings", reason="tags_not_object")
    for key, text in value.items():
        if not is_tag(key, text):
            raise UsageError(f"the service refuses the tag {key}={text}", reason="tag_malformed")
    check_count(value)
    return value


def check_count(tags: Mapping[str, str]) -> None:
    """Refuse more tags than the service takes.

    Raises:
        UsageError: there are more.
    """
    if len(tags) > MOST:
        raise UsageError(f"there are {len(tags)} tags, and the service takes {MOST}", reason="too_many_tags")
