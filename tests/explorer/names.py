"""The names of versions and of contents, as one process knows them.

A process does nothing with an ETag but keep it, compare it and give it back. So it is told names of its own, counted in
the order in which it hears of them: what it does is then the same in every interleaving that differs in names alone. An
update does no more with content than add its own letter, and so the content is such a name as well. What it has written
itself is told to it by the name that it gave: see ``own``.
"""

import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b, md5
from typing import Any

from tests.explorer.wire import Answer, Asked

_OF_SERVICE = re.compile("0x[0-9A-F]{14}")
_OF_PROCESS = re.compile("0xE[0-9]{13}")
_OF_CONTENT = re.compile("0xC[0-9A-F]{13}")
#: The contents that have names.
_contents: dict[str, str] = {}


def conceal(content: str) -> str:
    """Return the name of a content."""
    name = f"0xC{blake2b(content.encode(), digest_size=7).hexdigest().upper()[1:]}"
    _contents[name] = content
    return name


def reveal(text: str) -> str:
    """Return a text with the contents in it instead of their names."""
    return _OF_CONTENT.sub(lambda found: _contents[found[0]], text)


@lru_cache(maxsize=100_000)
def to_process(answer: Answer, versions: tuple[str, ...], own: str = "") -> tuple[Answer, tuple[str, ...]]:
    """Return an answer under the names of a process, which knows these versions, and those that it knows then.

    ``own`` is what the process adds to a content.
    """
    known = list(versions)

    def rename(found: re.Match[str]) -> str:
        name = found[0]
        if name not in known:
            if own and (base := _find_base(name, known, own)) is not None:
                return f"0xE{base:013d}{own}"
            known.append(name)
        return f"0xE{known.index(name):013d}"

    headers = tuple((name, _OF_SERVICE.sub(rename, value)) for name, value in answer.headers)
    body = answer.body
    if b"0x" in body:
        body = _OF_SERVICE.sub(rename, body.decode()).encode()
        headers = tuple((name, _DERIVED[name](body) if name in _DERIVED else value) for name, value in headers)
    return replace(answer, headers=headers, body=body), tuple(known)


def _find_base(name: str, known: list[str], own: str) -> int | None:
    """Return which known content a process made into this one by adding what it adds."""
    content = _contents.get(name)
    return next((at for at, each in enumerate(known) if each in _contents and _contents[each] + own == content), None)


def _digest(body: bytes) -> str:
    return b64encode(md5(body, usedforsecurity=False).digest()).decode()


#: What follows from content, where it is read as a whole.
_DERIVED: Mapping[str, Callable[[bytes], str]] = {
    "Content-MD5": _digest,
    "x-ms-blob-content-md5": _digest,
    "Content-Range": lambda body: f"bytes 0-{len(body) - 1}/{len(body)}",
}


@lru_cache(maxsize=100_000)
def to_service(asked: Asked, versions: tuple[str, ...]) -> Asked:
    """Return a request of a process under the names of the service."""

    def rename(found: re.Match[str]) -> str:
        return versions[int(found[0][3:])]

    headers = tuple((name, _OF_PROCESS.sub(rename, value)) for name, value in asked.headers)
    body = asked.body
    if b"0x" in body:
        body = _OF_PROCESS.sub(rename, body.decode()).encode()
    query = tuple((name, _OF_PROCESS.sub(rename, value)) for name, value in asked.query)
    return replace(asked, headers=headers, body=body, query=query)


def spell(
    texts: tuple[tuple[str, str], ...], versions: tuple[str, ...]
) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """Return what is on the disk of a process under its names, and the versions that it knows then."""
    answer, known = to_process(Answer(0, texts), versions)
    return answer.headers, known


def unspell(event: tuple[Any, ...], versions: tuple[str, ...]) -> tuple[Any, ...]:
    """Return what a process told under the names of the service."""

    def rename(found: re.Match[str]) -> str:
        return versions[int(found[0][3:])]

    return tuple(_OF_PROCESS.sub(rename, each) if isinstance(each, str) else each for each in event)


class Numbered:
    """Short names for a story: the versions in the order in which it tells of them."""

    def __init__(self) -> None:
        self._known: list[str] = []

    def shorten(self, line: str) -> str:
        """Return a line with short names."""
        return _OF_SERVICE.sub(self._number, line)

    def _number(self, found: re.Match[str]) -> str:
        if found[0] not in self._known:
            self._known.append(found[0])
        return str(self._known.index(found[0]) + 1)
