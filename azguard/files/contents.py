"""How many entries the root of a share has."""

from azguard.accounts.target import Target
from azguard.requests.calls import page_timeouts
from azguard.requests.deadline import Deadline
from azguard.resources.contents import Contents, count_first_page

_PAGE = 5000


def count(target: Target, deadline: Deadline) -> Contents:
    """Count the directories and files in the root of a share, up to the end of the first page that has any.

    Raises:
        Forbidden: it may not be listed.
        NotFound: it is not there.
    """
    client = target.account.directory(target.address)
    found = client.list_directories_and_files(results_per_page=_PAGE, **page_timeouts(deadline))
    return count_first_page(found.by_page(), target, deadline, "file or directory", "files and directories")
