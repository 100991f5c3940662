"""How many messages are in a queue."""

from azguard.accounts.target import Target
from azguard.errors import Forbidden
from azguard.queues import queues
from azguard.requests.deadline import Deadline
from azguard.resources.contents import Contents


def count(target: Target, deadline: Deadline) -> Contents:
    """Return about how many messages are in a queue, hidden ones included: there may be fewer, never more.

    Raises:
        Forbidden: its metadata may not be read.
        NotFound: it is not there.
    """
    try:
        found = queues.show(target, deadline).approximate_message_count
    except Forbidden as error:
        raise error.but(
            message=f"{error.message}: so it is not known whether {target} is empty",
            reason="contents_not_listed",
        ) from error
    return Contents(found, "message" if found == 1 else "messages")
