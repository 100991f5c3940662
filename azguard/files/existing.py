"""What a create finds where a share or a directory is already."""

from azguard.accounts.target import Target
from azguard.conditions.etags import quote
from azguard.errors import NotFound
from azguard.files import writes
from azguard.requests.commits import WriteResult
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage
from azguard.resources.existence import judge_version, leave_alone


def find(target: Target, op: str, deadline: Deadline) -> WriteResult:
    """Return what is there: ours, if the network sent the create twice."""
    try:
        found = writes.fetch(target, None, deadline.fresh())
    except NotFound:  # deleted since
        return leave_alone(target, None, None)
    lineage = Lineage.parse((found.metadata or {}).get(KEY))
    return judge_version(target, quote(found.etag), found.last_modified, lineage, op)
