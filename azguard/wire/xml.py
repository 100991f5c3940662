"""XML bodies, as the services take and give them, and their listings: items with the fields of an answer."""

from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from azguard.wire.answers import FIELDS, TOGETHER, Answer
from azguard.wire.failures import Unreadable

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"}
# The field of each element, and how it is read.
_ELEMENTS = {field.element: (name, field.read) for name, field in FIELDS.items() if field.element}


def escape(text: str) -> str:
    """Return a text as it stands in XML, its carriage returns included."""
    return "".join(_ESCAPES.get(character, character) for character in text)


def build_document(element: str) -> bytes:
    """Return a body that consists of one element."""
    return f'<?xml version="1.0" encoding="utf-8"?>{element}'.encode()


def parse(answer: Answer, what: str) -> "Element":
    """Return the root of an answer.

    Raises:
        Unreadable: it is none; ``what`` says what it must be.
    """
    from xml.etree import ElementTree as ET

    try:
        return ET.fromstring(answer.content)  # noqa: S314  # an answer of the service
    except ET.ParseError as error:
        raise Unreadable(f"the answer is no {what}: {error}") from error


def read_tags(element: "Element") -> dict[str, str]:
    """Return the index tags in an element ``Tags``."""
    return {each.findtext("Key") or "": each.findtext("Value") or "" for each in element.iterfind("TagSet/Tag")}


class Listed:
    """One item of a listing; what it does not tell is None. The name of a handle is its path, empty in a root.

    Raises:
        ValueError: it has no name, or tells something in a form that is none.
    """

    def __init__(self, element: "Element") -> None:
        self.tag = element.tag
        self.name = ""
        self.metadata: dict[str, str] = {}
        self.tags: dict[str, str] = {}
        #: Whether the listing hides the metadata, which are encrypted with a key of their writer's.
        self.hides_metadata = False
        #: Of a handle: for what it is open.
        self.access: tuple[str, ...] = ()
        for each in element:
            if each.tag in ("Name", "Path"):
                # What XML cannot hold is encoded as in a URL.
                self.name = unquote(each.text or "") if each.get("Encoded") == "true" else each.text or ""
            elif each.tag == "Metadata":
                self.metadata = {entry.tag: entry.text or "" for entry in each}
                self.hides_metadata = each.get("Encrypted") == "true"
            elif each.tag == "Tags":
                self.tags = read_tags(each)
            elif each.tag == "Properties":
                self._read(each)
            elif each.tag == "AccessRightList":
                self.access = tuple(right.text or "" for right in each)
        self._read(element)
        if not self.name and self.handle_id is None:
            raise ValueError("an item has no name")

    def _read(self, element: "Element") -> None:
        told = self.__dict__
        for each in element:
            if (text := each.text) and (field := _ELEMENTS.get(each.tag)):
                told[field[0]] = field[1](text)

    def __getattr__(self, name: str) -> Any:
        if name in FIELDS:
            return None
        if name not in TOGETHER:
            raise AttributeError(name)
        kind, prefix = TOGETHER[name]
        return kind(*(self.__dict__.get(prefix + each) for each in kind.__match_args__))


class Page(NamedTuple):
    """A page of a listing."""

    items: list[Listed]
    #: Where the next one begins; None after the last one.
    marker: str | None
    answer: Answer


def parse_page(answer: Answer, wrapper: str, *tags: str) -> Page:
    """Return a page: what is in its element ``wrapper``, in the order of these tags.

    Raises:
        Unreadable: it is no such page.
    """
    root = parse(answer, "list")
    listed = root.find(wrapper)
    if listed is None:
        raise Unreadable(f"the answer is no list of {wrapper.lower()}")
    try:
        items = [Listed(each) for tag in tags for each in listed.iterfind(tag)]
    except (ValueError, OverflowError) as error:
        raise Unreadable(f"the answer is no list of {wrapper.lower()}: {error}") from error
    return Page(items, root.findtext("NextMarker") or None, answer)
