"""The Queue service in memory: what a worker asks for.

Sources: the REST reference of each operation; a stale receipt is refused as Azure does it, and not as Azurite.
``test_services.py`` sends the same requests to Azurite, ``test_recorded.py`` those of recordings of the live service.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from xml.sax.saxutils import escape, unescape

from tests.explorer.service import accept, http_date, name_version, refuse
from tests.explorer.wire import Answer, Asked

_TEXT = re.compile(r"<MessageText>(.*)</MessageText>", re.DOTALL)
_WEEK_SECONDS = 604800.0


@dataclass(frozen=True)
class Message:
    """A message with its receipt."""

    id: str
    text: str
    inserted: float = 0.0
    #: When it can be received.
    visible: float = 0.0
    receipt: str = ""
    count: int = 0

    def show(self, *, is_received: bool) -> str:
        """Return it as an answer has it."""
        receipt = f"<PopReceipt>{self.receipt}</PopReceipt><TimeNextVisible>{http_date(self.visible)}</TimeNextVisible>"
        count = f"<DequeueCount>{self.count}</DequeueCount><MessageText>{escape(self.text)}</MessageText>"
        return (
            f"<QueueMessage><MessageId>{self.id}</MessageId><InsertionTime>{http_date(self.inserted)}</InsertionTime>"
            f"<ExpirationTime>{http_date(self.inserted + _WEEK_SECONDS)}</ExpirationTime>{receipt}"
            f"{count if is_received else ''}</QueueMessage>"
        )


@dataclass(frozen=True)
class QueueService:
    """All messages, by queue, in their order."""

    queues: Mapping[str, tuple[Message, ...]] = field(default_factory=dict)
    #: Those of the queues that were made with some.
    metadata: Mapping[str, frozenset[tuple[str, str]]] = field(default_factory=dict)

    @cached_property
    def key(self) -> int:
        """Return a digest."""
        return hash((frozenset(self.queues.items()), frozenset(self.metadata.items())))

    def answer(self, asked: Asked, now: float) -> "tuple[QueueService, Answer]":
        """Return the service after a request, with its answer."""
        queue, _, rest = asked.path.partition("/")
        found = self.queues.get(queue)
        if asked.method == "PUT" and not rest:
            return self._create(queue, asked, now)
        if found is None:
            return self, refuse(404, "QueueNotFound", now)
        if not rest:
            told = dict(self.metadata.get(queue, ()))
            return self, accept(200, now, x_ms_approximate_messages_count=str(len(found)), **told)
        if rest == "messages":
            return self._receive(queue, asked, now) if asked.method == "GET" else self._put(queue, asked, now)
        message = next((each for each in found if each.id == rest.removeprefix("messages/")), None)
        if message is None or message.receipt != asked.asks("popreceipt"):
            return self, refuse(404, "MessageNotFound", now)
        if asked.method == "DELETE":
            return self._with(queue, tuple(each for each in found if each is not message)), accept(204, now)
        return self._update(queue, message, asked, now)

    def _create(self, queue: str, asked: Asked, now: float) -> "tuple[QueueService, Answer]":
        given = frozenset(pair for pair in asked.headers if pair[0].startswith("x-ms-meta-"))
        if queue not in self.queues:
            return replace(self._with(queue, ()), metadata={**self.metadata, queue: given}), accept(201, now)
        is_same = given == self.metadata.get(queue, frozenset())
        return self, accept(204, now) if is_same else refuse(409, "QueueAlreadyExists", now)

    def _receive(self, queue: str, asked: Asked, now: float) -> "tuple[QueueService, Answer]":
        most, hidden = int(asked.asks("numofmessages") or 1), float(asked.asks("visibilitytimeout") or 30)
        taken = [each for each in self.queues[queue] if each.visible <= now][:most]
        received = [
            replace(
                each,
                visible=now + hidden,
                count=each.count + 1,
                receipt=name_version(each.id, each.receipt, "received").strip('"'),
            )
            for each in taken
        ]
        kept = [each for each in self.queues[queue] if each not in taken]
        shown = "".join(each.show(is_received=True) for each in received)
        body = f"<?xml version='1.0'?><QueueMessagesList>{shown}</QueueMessagesList>".encode()
        after = self._with(queue, tuple(sorted([*kept, *received], key=lambda each: (each.inserted, each.id))))
        return after if received else self, accept(200, now, body, Content_Type="application/xml")

    def _put(self, queue: str, asked: Asked, now: float) -> "tuple[QueueService, Answer]":
        found = _TEXT.search(asked.body.decode())
        hidden = float(asked.asks("visibilitytimeout") or 0)
        before = self.queues[queue]
        receipt = name_version(queue, len(before), asked.body).strip('"')
        number = 1 + sum(each.id.startswith("n") for each in before)
        made = Message(f"n{number}", unescape(found[1]) if found else "", now, now + hidden, receipt)
        body = f"<?xml version='1.0'?><QueueMessagesList>{made.show(is_received=False)}</QueueMessagesList>".encode()
        return self._with(queue, (*before, made)), accept(201, now, body, Content_Type="application/xml")

    def _update(self, queue: str, message: Message, asked: Asked, now: float) -> "tuple[QueueService, Answer]":
        found = _TEXT.search(asked.body.decode())
        made = replace(
            message,
            text=unescape(found[1]) if found else message.text,
            visible=now + float(asked.asks("visibilitytimeout") or 0),
            receipt=name_version(message.receipt, asked.body, asked.asks("visibilitytimeout")).strip('"'),
        )
        told = {"x_ms_popreceipt": made.receipt, "x_ms_time_next_visible": http_date(made.visible)}
        after = tuple(made if each is message else each for each in self.queues[queue])
        return self._with(queue, after), accept(204, now, **told)

    def _with(self, queue: str, messages: tuple[Message, ...]) -> "QueueService":
        return replace(self, queues={**self.queues, queue: messages})
