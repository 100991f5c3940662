"""The names of versions, as one process knows them.

A process does nothing with an ETag but keep it, compare it and give it back. So it is told names of its own, counted in
the order in which it hears of them: what it does is then the same in every interleaving that differs in names alone.
"""

import re
from dataclasses import replace
from functools import lru_cache
from typing import Any

from tests.explorer.wire import Answer, Asked

_OF_SERVICE = re.compile("0x[0-9A-F]{14}")
_OF_PROCESS = re.compile("0xE[0-9]{13}")


@lru_cache(maxsize=100_000)
def to_process(answer: Answer, versions: tuple[str, ...]) -> tuple[Answer, tuple[str, ...]]:
    """Return an answer under the names of a process, which knows these versions, and those that it knows then."""
    known = list(versions)

    def rename(found: re.Match[str]) -> str:
        if found[0] not in known:
            known.append(found[0])
        return f"0xE{known.index(found[0]):013d}"

    headers = tuple((name, _OF_SERVICE.sub(rename, value)) for name, value in answer.headers)
    body = answer.body
    if b"0x" in body:
        body = _OF_SERVICE.sub(rename, body.decode()).encode()
    return replace(answer, headers=headers, body=body), tuple(known)


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
