"""Who has a file or a directory open, told with a refusal that is because of it.

The service is asked after the refusal, for a moment and once. Whatever comes of that, the refusal is what is raised.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from azguard.accounts.target import Target
from azguard.address import Kind
from azguard.errors import AzguardError, Locked
from azguard.files import handles
from azguard.files.handles import Handle
from azguard.requests.deadline import Deadline
from azguard.times import iso

_REASONS = ("file_is_open", "file_delete_pending")
# Bounded: the refusal is known already.
_ASK_SECONDS = 3.0
_SHOWN = 5


@contextmanager
def tell(target: Target, deadline: Deadline) -> Iterator[None]:
    """Add to a refusal who has the file or directory open.

    Raises:
        Locked: the refusal, with ``facts["handles"]`` if that could be learnt.
    """
    try:
        yield
    except Locked as error:
        if error.reason not in _REASONS or "handles" in error.facts or target.kind is Kind.SHARE:
            raise
        found = _ask(target, deadline)
        if found is None:
            raise
        raise _add(error, found) from error


def _ask(target: Target, deadline: Deadline) -> list[Handle] | None:
    try:
        return list(handles.list_handles(target, deadline.restart(seconds=_ASK_SECONDS), limit=_SHOWN))
    except AzguardError:
        return None


def _add(error: Locked, found: list[Handle]) -> Locked:
    told = [
        {
            "handle_id": each.handle_id,
            "client": each.client,
            "client_name": each.client_name,
            "access": list(each.access),
            "opened": iso(each.opened),
        }
        for each in found
    ]
    return error.but(detail=(*error.detail, *map(_describe, found)), facts={**error.facts, "handles": told})


def _describe(handle: Handle) -> str:
    who = f"{handle.client_name} ({handle.client})" if handle.client_name else handle.client
    access = f" for {', '.join(handle.access)}" if handle.access else ""
    since = f" since {iso(handle.opened)}" if handle.opened else ""
    return f"open by {who}{access}{since}: handle {handle.handle_id}"
