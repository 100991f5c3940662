"""Parts of a resource that are read and replaced alike, whatever service keeps them: its metadata."""

from collections.abc import Mapping

from azguard.accounts.account import Target
from azguard.guards.resolve import Conditions
from azguard.requests.calls import write_timeouts
from azguard.requests.deadline import Deadline
from azguard.wire.answers import Answer
from azguard.wire.call import call
from azguard.wire.catalogue import ALL
from azguard.wire.rows import Operation


def find_setter(target: Target) -> Operation:
    """Return the operation that replaces the metadata of a resource."""
    return ALL[f"{target.kind.noun}.set_metadata"]


def send_metadata(target: Target, stamped: Mapping[str, str], under: Conditions, deadline: Deadline) -> Answer:
    """Replace the metadata of a resource by one request, and return its answer."""
    headers = under.request_headers
    return call(find_setter(target), target, write_timeouts(deadline), headers=headers, metadata=stamped)
