"""Tables: thin calls of the wire, frozen values out. A table has neither ETag nor metadata nor lease."""

import json
import re
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import ClassVar

from azguard import columns
from azguard.accounts.account import Account, Target
from azguard.address import Address, Kind
from azguard.errors import Exists
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.requests.calls import follow
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.results import Written, without_time
from azguard.requests.settle import Finding, WriteRequest, send_until_settled
from azguard.resources import lifecycles
from azguard.resources.lifecycles import Contents, count_first
from azguard.tables import entities
from azguard.wire.call import call
from azguard.wire.client import Limits
from azguard.wire.failures import Unreadable
from azguard.wire.operations.tables import TABLE_CREATE, TABLE_QUERY_TABLES

# The most that one page holds.
_PAGE = 1000
# The character after "z", so that the names from "Ord" to "Ord{" are those that begin with "Ord".
_BEHIND_LETTERS = "{"


@frozen
class TableShown:
    """A table; the service tells nothing else about it."""

    COLUMNS: ClassVar = (columns.NAME, columns.ADDRESS)

    address: str
    name: str


def create(target: Target, deadline: Deadline) -> Written:
    """Create a table; it is always create-only.

    A table holds no mark of its creator. So it is asked for first: one that was there before is another's. One that was
    not, and is there after the answer was lost or the request refused, is of this request or of another writer.

    Raises:
        Exists: there is one of that name, whatever its case.
        OutcomeUnknown: the table was not there before, is there now, and whose it is cannot be known.
        Locked: a table of that name is still being deleted, which takes the service 40 seconds or more.
    Source: https://learn.microsoft.com/rest/api/storageservices/create-table
    """
    is_there = lifecycles.look_before(lambda: exists(target, deadline))
    if is_there:
        raise Exists(f"{target} exists already", address=str(target.address))
    body = json.dumps({"TableName": target.address.container}).encode()
    request = WriteRequest[object](
        operation=TABLE_CREATE,
        target=target,
        given={"body": body},
        look=lambda patience: _find_create_outcome(target, patience, was_missing=is_there is False),
    )
    settled = send_until_settled(request, deadline)
    return without_time(target, "if-none-match", settled.attempts)


def exists(target: Target, deadline: Deadline) -> bool:
    """Return whether the table is there."""
    return lifecycles.look_after(lambda: require(target, deadline)) is not None


def require(target: Target, deadline: Deadline) -> Target:
    """Return the table, asked for at most one entity.

    Raises:
        NotFound: it is not there.
    Source: https://learn.microsoft.com/rest/api/storageservices/query-entities
    """
    next(entities.walk_pages(target, deadline, "PartitionKey eq ''", "PartitionKey", 1), None)
    return target


def _find_create_outcome(target: Target, patience: Deadline, *, was_missing: bool) -> Finding[object]:
    if exists(target, patience):
        return Finding(Verdict.UNKNOWN, seen=target, may_be_ours=was_missing)
    # While there is none, sending again is safe: the service makes at most one.
    return Finding(Verdict.NOT_YET)


def list_tables(account: Account, deadline: Deadline, prefix: str | None, limit: int | None) -> Iterator[TableShown]:
    """Yield the account's tables, page by page.

    Source: https://learn.microsoft.com/rest/api/storageservices/query-tables
    """
    prefix = prefix or ""
    if not re.fullmatch(r"[A-Za-z0-9]*", prefix):
        return  # no table's name begins like that
    everything = Target(account, Address(Kind.TABLE, ("",)))
    between = f"TableName ge '{prefix}' and TableName lt '{prefix}{_BEHIND_LETTERS}'" if prefix else None
    top = limit and min(limit, _PAGE)

    def ask(marker: str | None, timeouts: Limits) -> tuple[list[str], str | None]:
        answer = call(TABLE_QUERY_TABLES, everything, timeouts, filter=between, top=top, next_table=marker)
        try:
            found = [str(each["TableName"]) for each in json.loads(answer.content)["value"]]
        except (ValueError, KeyError, TypeError) as error:
            raise Unreadable("the answer is no list of tables") from error
        return found, answer.next_table

    names = (name for page, _ in follow(ask, everything, deadline) for name in page)
    for name in islice((name for name in names if name.startswith(prefix)), limit):
        yield TableShown(str(Address(Kind.TABLE, (name,))), name)


def delete(target: Target, conditions: Conditions, deadline: Deadline) -> Written:
    """Delete a table and everything in it; see ``lifecycles.delete_unguarded``.

    Source: https://learn.microsoft.com/rest/api/storageservices/delete-table
    """
    return lifecycles.delete_unguarded(target, conditions.guard, deadline, partial(require, target))


def count_entities(target: Target, deadline: Deadline) -> Contents:
    """Count the entities of a table, up to the end of the first page that has any.

    Raises:
        Forbidden: it may not be queried.
        NotFound: it is not there.
    Source: https://learn.microsoft.com/rest/api/storageservices/query-entities
    """
    pages = entities.walk_pages(target, deadline, None, "PartitionKey", _PAGE)
    return count_first(((len(found), more) for found, more in pages), target, "entity", "entities")
