"""Who has a file or a directory open, told with a refusal that is because of it.

The service is asked after the refusal, for a moment and once. Whatever comes of that, the refusal is what is raised.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from azguard.accounts.target import Target
from azguard.address import Kind
from azguard.errors import AzguardError, Locked
from azguard.files import handles
from azguard.files.handles import Handle
from azguard.requests.deadline import Deadline
from azguard.requests.service_errors import translate
from azguard.times import iso

E = TypeVar("E", bound=AzguardError)

_REASONS = ("file_is_open", "file_delete_pending")
# In the values of a refusal: that the handles could not be listed, so that they are not asked for again.
_ASKED = "handles_not_listed"
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
        raise add(error, target, deadline) from error


@contextmanager
def tell_of_rename(source: Target, target: Target, deadline: Deadline, *, creates_only: bool) -> Iterator[None]:
    """Add to the refusal of a rename which end is open, which the service does not say, and who has it open.

    Raises:
        Locked: the refusal, for the source if a program has that open, or if nothing that is open would be replaced;
            else for the target.
    """
    try:
        yield
    except Locked as error:
        if error.reason not in _REASONS:
            raise
        told = add(translate(error.__cause__ or error, source), source, deadline)
        is_of_source = creates_only and error.reason == "file_is_open"
        if isinstance(told, Locked) and (is_of_source or told.facts.get("handles")):
            raise told from error
        raise add(error, target, deadline) from error


def add(error: E, target: Target, deadline: Deadline) -> E:
    """Return a refusal with who has the file or directory open, if it is because of that, and if that can be learnt."""
    is_asked = "handles" in error.facts or _ASKED in error.values
    if error.reason not in _REASONS or is_asked or target.kind is Kind.SHARE:
        return error
    found = _ask(target, deadline)
    return error.but(values={**error.values, _ASKED: True}) if found is None else _add(error, found)


def _ask(target: Target, deadline: Deadline) -> list[Handle] | None:
    try:
        return list(handles.list_handles(target, deadline.restart(seconds=_ASK_SECONDS), limit=_SHOWN))
    except AzguardError:
        return None


def _add(error: E, found: list[Handle]) -> E:
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
