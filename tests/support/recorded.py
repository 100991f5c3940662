"""What the live services answered: the facts of the recordings in tests/data/answers, in the order of the requests."""

import base64
import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from azguard.wire.connections import Headers, Reply
from tests.support.answering_client import AnsweringClient, Asked
from tests.support.places import DATA

SERVICES = ("blob", "file", "queue", "table", "others")
# What an answer of binary content begins with; the rest is base64.
_BINARY = "b64:"
# What the end of a long content became when it was handed over.
_CUT = re.compile(rb"\.\.\.\[\d+ chars\]$")


class Recorded(NamedTuple):
    """A request to a live service, and its answer."""

    #: The name of the test that sent it, and its place there.
    recording: str
    number: int
    #: The row of the operation; None where azguard has none.
    operation: str | None
    method: str
    path: str
    query: str
    #: The headers of the request, without a signature.
    sends: Mapping[str, str]
    #: The content of the request, kept for files alone.
    body: bytes
    #: How long the test waited before.
    wait_seconds: float
    status: int
    code: str | None
    headers: Mapping[str, str]
    content: bytes

    @property
    def is_refusal(self) -> bool:
        """Return whether the service refused it, or had nothing new."""
        return self.status >= 300

    @property
    def is_cut(self) -> bool:
        """Return whether the end of its content was not kept."""
        return _CUT.search(self.content) is not None


@cache
def read(service: str) -> tuple[Recorded, ...]:
    """Return all that one service answered."""
    lines = (DATA / f"answers/{service}.jsonl").read_text(encoding="utf-8").splitlines()
    numbers: dict[str, int] = {}
    found = []
    for line in lines:
        told = json.loads(line)
        number = numbers.get(told["recording"], 0)
        numbers[told["recording"]] = number + 1
        found.append(_build(told, number))
    return tuple(found)


def group(service: str) -> Mapping[str, list[Recorded]]:
    """Return the answers of one service, by the names of the recordings."""
    found: dict[str, list[Recorded]] = {}
    for each in read(service):
        found.setdefault(each.recording, []).append(each)
    return found


def find(recording: str, number: int) -> Recorded:
    """Return one answer by the name of its recording and its place there."""
    return next(
        each for service in SERVICES for each in read(service) if (each.recording, each.number) == (recording, number)
    )


class Replayed(AnsweringClient):
    """Answers each request with what was recorded."""

    def __init__(self, recorded: Recorded) -> None:
        self._recorded = recorded

    def answer(self, asked: Asked) -> Reply:
        # The newer recordings were kept without the version.
        told = {"x-ms-version": "2026-10-06", **self._recorded.headers}
        if self._recorded.code:
            told["x-ms-error-code"] = self._recorded.code
        headers = Headers([f"{name}: {value}" for name, value in told.items()])
        return Reply(self._recorded.status, "", headers, self._recorded.content)


def _build(told: Mapping[str, Any], number: int) -> Recorded:
    body = base64.b64decode(told["body_base64"]) if "body_base64" in told else told.get("body", "").encode()
    content = told.get("content", "")
    return Recorded(
        recording=told["recording"],
        number=number,
        operation=told["operation"],
        method=told["method"],
        path=told["path"],
        query=told["query"],
        sends=told["sends"],
        body=body,
        wait_seconds=told.get("wait_seconds", 0),
        status=told["status"],
        code=told["code"],
        headers=told["headers"],
        content=base64.b64decode(content[len(_BINARY) :]) if content.startswith(_BINARY) else content.encode(),
    )
