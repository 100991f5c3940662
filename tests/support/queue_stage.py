"""The stage of the walk for the commands of queues and messages: a queue with a message that was received."""

import uuid
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any

from azure.core.exceptions import ResourceNotFoundError

from azguard.address import Kind, parse
from tests.support import sdk_clients
from tests.support.cli_world import Ran
from tests.support.condition_stage import LEASE, Stage


@dataclass
class QueueStage(Stage):
    """A queue with a message, which the scope has received, and a scenario whose command is done to them."""

    def prepare(self) -> None:
        """Make what the scenario needs."""
        queue = f"w{uuid.uuid4().hex[:20]}"
        self.facts |= {"queue": queue, "lease": LEASE}
        self.client.create_queue(metadata={"owner": "ops"})
        self.client.send_message("old")
        if "{message}" in self.scenario.line:
            (got,) = self.cli.call("message", "get", queue).json
            self.facts |= {"message": f"{queue}/{got['id']}", "receipt": got["pop_receipt"]}

    @cached_property
    def client(self) -> Any:
        """Return the SDK's client of the queue, past the proxy."""
        return sdk_clients.queue(self.direct, parse(self.facts["queue"], Kind.QUEUE).address)

    def run_with(self, receipt: str) -> Ran:
        """Run the scenario's command with a receipt."""
        self.facts["receipt"] = receipt
        return self.run()

    def look(self) -> Any:
        """Return everything that is there: the queue, its policies and how many messages it has."""
        try:
            found = self.client.get_queue_properties()
        except ResourceNotFoundError:
            return None
        seen = [(each.id, each.content, each.dequeue_count) for each in self.client.peek_messages(32)]
        return found.metadata, found.approximate_message_count, self.client.get_queue_access_policy(), seen

    def subject(self, *, source: bool = False) -> Any:
        """Return what a version is about: the metadata or the policies of the queue, with azguard's ETag of them."""
        assert not source
        _, part, _ = self.scenario.line.split(maxsplit=2)
        return SimpleNamespace(etag=self.cli.call("queue", part, "get", self.facts["queue"]).json["etag"])
