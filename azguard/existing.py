"""What a create finds where something is already: left alone, and told with the outcome ``exists``.

The create itself settles its own doubt. Here is looked once more whose the thing is, because a refusal may be of the
second copy of a request that the network has sent twice.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from azguard import blobs, containers
from azguard.account import Target
from azguard.conditions import Conditions
from azguard.deadline import Deadline
from azguard.errors import Changed, Exists, Locked, NotFound, OutcomeUnknown
from azguard.lineage import KEY, Lineage
from azguard.settled import Written

if TYPE_CHECKING:
    from azguard.entities.writes import EntityWrite
    from azguard.uploads import Upload

T = TypeVar("T")
# Only what exists has a lease, and Azure looks at that first.
_LEASED = "LeaseIdMissing"
EXISTS = "exists"


def unless_exists(create: Callable[[], T], look: Callable[[], Written]) -> T | Written:
    """Return what ``create`` made, or what ``look`` finds where something is already.

    Raises:
        OutcomeUnknown: it cannot be known whether what is there is ours.
    """
    try:
        return create()
    except OutcomeUnknown as error:
        raise replace(error, hint="run it again: with --if-exists skip that is safe") from error
    except Exists:
        return look()
    # To a create-only write this says the same, unless it says that its blocks were discarded.
    except Changed:
        found = look()
        if found.etag is None:
            raise
        return found
    except Locked as error:
        if error.service_code != _LEASED:
            raise
        return look()


def blob(upload: "Upload") -> Written:
    """Return the blob that is there."""
    try:
        found = blobs.properties(upload.target, Conditions(), upload.deadline.fresh())
    except NotFound:  # deleted since
        return _there(upload.target, None, None)
    return _judged(upload.target, found, upload.op)


def container(target: Target, op: str, deadline: Deadline) -> Written:
    """Return the container that is there."""
    try:
        found = containers.properties(target, deadline.fresh())
    except NotFound:  # deleted since
        return _there(target, None, None)
    return _judged(target, found, op)


def entity(made: "EntityWrite", deadline: Deadline) -> Written:
    """Return the entity that is there."""
    from azguard.entities import requests, writes

    try:
        found = requests.get(made.target, deadline.fresh())
    except NotFound:  # deleted since
        return _there(made.target, None, None)
    return _of_version(made.target, found.etag, writes.modified(found.etag), found.lineage, made.op)


def table(target: Target) -> Written:
    """Return the table that is there, of which there is no more to know."""
    return _there(target, None, None)


def _judged(target: Target, found: Any, op: str) -> Written:
    lineage = Lineage.parse((found.metadata or {}).get(KEY))
    return _of_version(target, found.etag, found.last_modified, lineage, op)


def _of_version(target: Target, etag: str, modified: datetime | None, lineage: Lineage, op: str) -> Written:
    """Return a version as somebody else's or, if our op made it or one before it, as ours."""
    if op not in lineage:
        return _there(target, etag, modified)
    newest = lineage.entries[0][0] == op
    return Written(str(target.address), etag if newest else None, modified if newest else None, "if-none-match", 1)


def _there(target: Target, etag: str | None, modified: datetime | None) -> Written:
    return Written(str(target.address), etag, modified, "if-none-match", 1, outcome=EXISTS)
