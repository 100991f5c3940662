"""What a create finds where a queue is already."""

from azguard.accounts.target import Target
from azguard.errors import NotFound
from azguard.queues import queues
from azguard.requests.commits import WriteResult, without_time
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage
from azguard.resources.existence import leave_alone


def find_queue(target: Target, op: str, deadline: Deadline) -> WriteResult:
    """Return the queue that is there: ours, if the network sent the create twice."""
    try:
        found = queues.fetch(target, deadline.fresh())
    except NotFound:  # deleted since
        return leave_alone(target, None, None)
    if op in Lineage.parse((found.metadata or {}).get(KEY)):
        return without_time(target, "if-none-match", 1)
    return leave_alone(target, None, None)
