"""What a create finds where an entity or a table is already."""

from typing import TYPE_CHECKING

from azguard.accounts.target import Target
from azguard.errors import NotFound
from azguard.requests.commits import WriteResult
from azguard.requests.deadline import Deadline
from azguard.resources.existence import judge_version, leave_alone

if TYPE_CHECKING:
    from azguard.tables.write import EntityWrite


def find_entity(made: "EntityWrite", deadline: Deadline) -> WriteResult:
    """Return the entity that is there."""
    from azguard.tables import calls, writes

    try:
        found = calls.get(made.target, deadline.fresh())
    except NotFound:  # deleted since
        return leave_alone(made.target, None, None)
    return judge_version(made.target, found.etag, writes.parse_timestamp(found.etag), found.lineage, made.op)


def find_table(target: Target) -> WriteResult:
    """Return the table that is there, of which there is no more to know."""
    return leave_alone(target, None, None)
