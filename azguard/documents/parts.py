"""A part of a resource in a JSON document: by itself, or among all that a read of it prints, its version included."""

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class PartOfFile(Generic[T]):
    """What a document says that a part is to be."""

    value: T
    #: The version that the document was printed with; None if it does not say.
    etag: str | None


def take(document: object, name: str) -> PartOfFile[object]:
    """Return the part of this name, with its version; a document without the part is the part itself."""
    if not isinstance(document, dict) or not isinstance(document.get(name), dict):
        return PartOfFile(document, None)
    etag = document.get("etag")
    return PartOfFile(document[name], etag if isinstance(etag, str) else None)
