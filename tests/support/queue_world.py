"""Queues for tests: made, and looked into, past azguard."""

import re
import uuid
from dataclasses import replace
from typing import Any

from tests.support.cli_world import CliWorld, Ran
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Fault, Request


def queue(cli: CliWorld, *messages: str) -> str:
    """Return a new queue of no other test's, with these messages in it."""
    name = f"q{uuid.uuid4().hex[:20]}"
    cli.make("queue", "PUT", name)
    for each in messages:
        sdk(cli, name).send_message(each)
    return name


def sdk(cli: CliWorld, name: str) -> Any:
    """Return the SDK's client of a queue."""
    from azure.storage.queue import QueueClient

    return QueueClient.from_connection_string(str(cli.connection_string), name)


def port(cli: CliWorld) -> int:
    """Return the port of the emulator's queue service."""
    found = re.search(r"QueueEndpoint=http://127\.0\.0\.1:(\d+)", str(cli.connection_string))
    assert found is not None
    return int(found[1])


def through(cli: CliWorld, proxy_port: int) -> CliWorld:
    """Return the same folder, with the queue service behind a proxy."""
    text = str(cli.connection_string)
    begins = "QueueEndpoint=http://127.0.0.1:"
    return replace(cli, connection_string=text.replace(f"{begins}{port(cli)}", f"{begins}{proxy_port}"))


def spoilt(
    cli: CliWorld, method: str, fault: Fault, *words: str, once: bool = False, stdin: bytes = b""
) -> tuple[Ran, list[tuple[str, bool]]]:
    """Run a command whose requests of one method meet a fault, all or only the first; return what was really done."""
    met: list[Request] = []

    def decide(request: Request) -> Fault:
        if request.method != method or (once and met):
            return Fault.NONE
        met.append(request)
        return fault

    with proxy.running(port(cli), decide) as between:
        ran = through(cli, between.port).call(*words, "-o", "json", "--timeout", "1s", stdin=stdin)
    return ran, [(each.request.method, each.committed) for each in between.log]
