"""An HTTP proxy in front of the emulator that injects faults and records how every request really ended.

An answer is lost as on a real network: the emulator has done its work and answered, and the client's connection
closes without a byte. The bytes are passed on unchanged, so signatures stay valid (they cover the path, not the port).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from azguard.demo.proxy import GONE, HOST, LONGEST_HEAD, serve_clients
from tests.support.faultproxy.connection import FaultyConnection
from tests.support.faultproxy.faults import Chosen, Decide, Fault, ProxiedAnswer, Request, losing

__all__ = [
    "GONE",
    "HOST",
    "LONGEST_HEAD",
    "Chosen",
    "Decide",
    "Fault",
    "ProxiedAnswer",
    "Proxy",
    "Request",
    "losing",
    "running",
]


@dataclass(frozen=True)
class Proxy:
    """A running proxy."""

    #: On 127.0.0.1.
    port: int
    #: The answers so far, in the order in which they came.
    log: list[ProxiedAnswer] = field(default_factory=list)


@contextmanager
def running(
    upstream_port: int, decide: Decide, *, port: int = 0, record: Callable[[ProxiedAnswer], None] | None = None
) -> Iterator[Proxy]:
    """Run a proxy in a thread of this process for the length of a ``with`` block.

    In that thread ``decide`` is called once per request, before it is passed on, and ``record`` once per answer,
    before anything is sent to the client. ``port`` 0 is any that is free.

    Raises:
        OSError: no port can be opened.
    """
    log: list[ProxiedAnswer] = []

    def note(answer: ProxiedAnswer) -> None:
        log.append(answer)
        if record is not None:
            record(answer)

    with serve_clients(lambda client: FaultyConnection(client, upstream_port, decide, note), port) as own_port:
        yield Proxy(own_port, log)
