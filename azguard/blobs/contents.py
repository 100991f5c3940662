"""How many blobs are in a container."""

from azguard.accounts.target import Target
from azguard.requests.calls import page_timeouts
from azguard.requests.deadline import Deadline
from azguard.resources.contents import Contents, count_first_page

# The most that one page holds.
_PAGE = 5000


def count(target: Target, deadline: Deadline) -> Contents:
    """Count the blobs of a container, up to the end of the first page that has any.

    Blobs that are being uploaded count. Snapshots do not: each has its blob. Versions and soft-deleted blobs do not
    either: to delete them was an act of its own.

    Raises:
        Forbidden: it may not be listed.
        NotFound: it is not there.
    Source: https://learn.microsoft.com/rest/api/storageservices/list-blobs
    """
    client = target.account.container(target.address)
    asked = {"include": ["uncommittedblobs"], "results_per_page": _PAGE, **page_timeouts(deadline)}
    return count_first_page(client.list_blobs(**asked).by_page(), target, deadline, "blob", "blobs")
