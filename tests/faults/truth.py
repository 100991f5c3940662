"""The proxy's log as JSON lines: what the emulator really answered, when, and for which client's request.

One line per request, in the order of the answers. ``sent`` and ``answered`` are seconds since the epoch; the emulator
did its work between them. ``status`` is null if the emulator never answered, and ``sent`` if it was never asked.
"""

import json
from collections.abc import Callable
from typing import Any, TextIO

from azguard.requests.lineage import KEY
from tests.faults.rules import operation
from tests.support.faultproxy.faults import ProxiedAnswer

_ASKED = {
    "client_request_id": "x-ms-client-request-id",
    "user_agent": "user-agent",
    "if_match": "if-match",
    "if_none_match": "if-none-match",
    "lease_id": "x-ms-lease-id",
    "proposed_lease_id": "x-ms-proposed-lease-id",
    "lineage": f"x-ms-meta-{KEY}",
}
_ANSWERED = {"request_id": "x-ms-request-id", "error": "x-ms-error-code", "found_lineage": f"x-ms-meta-{KEY}"}


def line(answer: ProxiedAnswer) -> dict[str, Any]:
    """Return what is known about one request, ready for JSON."""
    request = answer.request
    return {
        "operation": operation(request),
        "path": request.path,
        "fault": answer.fault.value,
        "status": answer.status,
        "etag": answer.etag,
        "sent": answer.sent,
        "answered": answer.answered,
        **{name: request.headers.get(header) for name, header in _ASKED.items()},
        **{name: answer.headers.get(header) for name, header in _ANSWERED.items()},
    }


def into(stream: TextIO) -> Callable[[ProxiedAnswer], None]:
    """Return what writes each answer to a stream, whole lines at once, so that a crash loses none."""

    def record(answer: ProxiedAnswer) -> None:
        stream.write(json.dumps(line(answer)) + "\n")
        stream.flush()

    return record
