"""XML bodies, as the services take and give them."""

from typing import TYPE_CHECKING

from azguard.wire.answers import Answer
from azguard.wire.failures import Unreadable

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"}


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
