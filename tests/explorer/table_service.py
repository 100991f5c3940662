"""The Table service in memory: what updates of an entity ask for, transactions included.

Sources: the REST reference of each operation, and of entity group transactions. ``test_services.py`` sends the same
requests to Azurite, ``test_recorded.py`` those of recordings of the live service.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from tests.explorer import names
from tests.explorer.service import accept, moment, name_version
from tests.explorer.wire import Answer, Asked

_KEYS = ("PartitionKey", "RowKey")
_TYPE = "@odata.type"
_END = "\r\n"


@dataclass(frozen=True)
class Entity:
    """A version of an entity; its properties are JSON."""

    etag: str
    written: float
    properties: str

    @cached_property
    def values(self) -> Mapping[str, Any]:
        """Return the properties, with the types of those that are no text."""
        found: dict[str, Any] = json.loads(self.properties)
        return found


@dataclass(frozen=True)
class TableService:
    """All entities, by their paths."""

    entities: Mapping[str, Entity] = field(default_factory=dict)
    gone: Mapping[str, str] = field(default_factory=dict)
    #: Of which property readers are told the name of its value, and no time: see ``names``.
    concealed: str | None = None
    #: Whether the refusals tell the time: those of a gateway may not.
    tells_time: bool = True

    @cached_property
    def key(self) -> int:
        """Return a digest."""
        return hash((frozenset(self.entities.items()), frozenset(self.gone.items())))

    def answer(self, asked: Asked, now: float) -> "tuple[TableService, Answer]":
        """Return the service after a request, with its answer."""
        if asked.path == "$batch":
            return self._transact(asked, now)
        if asked.method == "GET":
            found = self.entities.get(asked.path)
            return self, self._refuse_read(now) if found is None else self._show(found, now)
        return self._write(asked.method, asked.path, asked.header("if-match"), asked.body, now)

    def put(self, path: str, now: float, values: Mapping[str, Any]) -> "TableService":
        """Return the service after a write over any version."""
        before = self.entities.get(path)
        text = json.dumps(values, sort_keys=True)
        name = name_version(before.etag if before else self.gone.get(path), text).strip('"')
        made = Entity(f"W/\"datetime'{name}'\"", now, text)
        return replace(self, entities={**self.entities, path: made})

    def delete(self, path: str) -> "TableService":
        """Return the service without an entity."""
        rest = {name: each for name, each in self.entities.items() if name != path}
        return replace(self, entities=rest, gone={**self.gone, path: self.entities[path].etag})

    def _refuse_read(self, now: float) -> Answer:
        refusal = _refuse(404, "ResourceNotFound", now)
        return refusal if self.tells_time else replace(refusal, body=refusal.body.replace(b"Time:", b"At:"))

    def _show(self, found: Entity, now: float) -> Answer:
        told = {"odata.etag": found.etag, **found.values}
        if self.concealed in told:
            told[self.concealed] = names.conceal(told[self.concealed])
        else:
            told |= {
                f"Timestamp{_TYPE}": "Edm.DateTime",
                "Timestamp": f"{moment(found.written):%Y-%m-%dT%H:%M:%S.%f}0Z",
            }
        kind = "application/json;odata=minimalmetadata"
        return accept(200, now, json.dumps(told).encode(), ETag=found.etag, Content_Type=kind)

    def _write(
        self, method: str, path: str, if_match: str | None, body: bytes, now: float
    ) -> "tuple[TableService, Answer]":
        if method == "DELETE":
            return self._delete(path, if_match, now)
        values = _drop_text_types(json.loads(body))
        if self.concealed in values:
            values[self.concealed] = names.reveal(values[self.concealed])
        if method == "POST":
            path = f"{path}(PartitionKey='{values['PartitionKey']}',RowKey='{values['RowKey']}')"
        before = self.entities.get(path)
        if method == "POST" and before is not None:
            return self, _refuse(409, "EntityAlreadyExists", now)
        # Without a condition it inserts what is not there.
        if method != "POST" and if_match is not None and (refusal := _check(before, if_match, now)):
            return self, refusal
        if method in ("PATCH", "MERGE") and before is not None:
            values = {**before.values, **values}
        after = self.put(path, now, values)
        return after, accept(204, now, ETag=after.entities[path].etag)

    def _delete(self, path: str, if_match: str | None, now: float) -> "tuple[TableService, Answer]":
        refusal = _check(self.entities.get(path), if_match, now)
        return (self, refusal) if refusal else (self.delete(path), accept(204, now))

    def _transact(self, asked: Asked, now: float) -> "tuple[TableService, Answer]":
        """Do all writes of a transaction, or none."""
        service, answers = self, []
        for number, (method, path, if_match, body) in enumerate(_read_parts(asked.body.decode())):
            service, answer = service._write(method, path, if_match, body, now)
            if answer.status >= 300:
                return self, _to_batch(
                    [replace(answer, body=answer.body.replace(b'"value": "', b'"value": "%d:' % number))], now
                )
            answers.append(answer)
        return service, _to_batch(answers, now)


def _drop_text_types(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if not (name.endswith(_TYPE) and value == "Edm.String")}


def _check(before: Entity | None, if_match: str | None, now: float) -> Answer | None:
    """Return the refusal of a write over a version, if there is one."""
    if before is None:
        return _refuse(404, "ResourceNotFound", now)
    return None if if_match in ("*", before.etag) else _refuse(412, "UpdateConditionNotSatisfied", now)


def _refuse(status: int, code: str, now: float) -> Answer:
    text = f"{code}\nRequestId:0\nTime:{moment(now):%Y-%m-%dT%H:%M:%S.%f}0Z"
    body = json.dumps({"odata.error": {"code": code, "message": {"lang": "en-US", "value": text}}}).encode()
    return accept(status, now, body, Content_Type="application/json")


def _read_parts(text: str) -> list[tuple[str, str, str | None, bytes]]:
    """Return the requests of a transaction: method, path, If-Match and body."""
    found = []
    for part in text.replace(_END, "\n").split("Content-Type: application/http\n")[1:]:
        _, request, body = part.split("\n\n", 2)
        line, *headers = request.split("\n")
        method, url, _ = line.split(" ")
        conditions = [each.partition(": ")[2] for each in headers if each.lower().startswith("if-match:")]
        path = url.partition("://")[2].partition("/")[2].partition("?")[0]
        found.append((method, path, conditions[0] if conditions else None, body.split("\n--")[0].encode()))
    return found


def _to_batch(answers: list[Answer], now: float) -> Answer:
    parts = "".join(
        _END.join(
            [
                "--changesetresponse_1", "Content-Type: application/http", "Content-Transfer-Encoding: binary", "",
                f"HTTP/1.1 {each.status} X", *(f"{name}: {value}" for name, value in each.headers), "",
                each.body.decode(), "",
            ]
        )
        for each in answers
    )  # fmt: skip
    text = _END.join(
        [
            "--batchresponse_1", "Content-Type: multipart/mixed; boundary=changesetresponse_1", "",
            f"{parts}--changesetresponse_1--", "--batchresponse_1--", "",
        ]
    )  # fmt: skip
    return accept(202, now, text.encode(), Content_Type="multipart/mixed; boundary=batchresponse_1")
