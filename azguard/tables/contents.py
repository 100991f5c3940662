"""How many entities are in a table."""

from azguard.accounts.target import Target
from azguard.requests.calls import page_timeouts
from azguard.requests.deadline import Deadline
from azguard.resources.contents import Contents, count_first_page

# The most that one page holds.
_PAGE = 1000


def count(target: Target, deadline: Deadline) -> Contents:
    """Count the entities of a table, up to the end of the first page that has any.

    Raises:
        Forbidden: it may not be queried.
        NotFound: it is not there.
    Source: https://learn.microsoft.com/rest/api/storageservices/query-entities
    """
    client = target.account.table(target.address)
    asked = {"select": "PartitionKey", "results_per_page": _PAGE, **page_timeouts(deadline)}
    return count_first_page(client.list_entities(**asked).by_page(), target, deadline, "entity", "entities")
