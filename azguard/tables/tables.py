"""Tables: thin calls into the SDK, frozen values out. A table has neither ETag nor metadata nor lease."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from itertools import islice
from typing import Any, ClassVar

from azguard import columns
from azguard.accounts.account import Account, Target
from azguard.address import Address, Kind
from azguard.documents.policies import Policies, PolicyRules
from azguard.errors import Exists
from azguard.guards.resolve import Conditions
from azguard.requests.calls import page_timeouts, pages, write_timeouts
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.results import Written, without_time
from azguard.requests.settle import Finding, WriteRequest, send_until_settled
from azguard.resources import existence
from azguard.resources.access_policies import UnversionedPolicies
from azguard.resources.existence import Contents, count_first_page
from azguard.tables import entities
from azguard.wire import sdk

# The most that one page holds.
_PAGE = 1000
# The character after "z", so that the names from "Ord" to "Ord{" are those that begin with "Ord".
_BEHIND_LETTERS = "{"


@dataclass(frozen=True)
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
    client = sdk.table(target.account, target.address)
    is_there = existence.look_before(lambda: exists(target, deadline))
    if is_there:
        raise Exists(f"{target} exists already", address=str(target.address))
    request = WriteRequest[object](
        target=target,
        send=lambda: client.create_table(**write_timeouts(deadline)),
        look=lambda patience: _find_create_outcome(target, patience, was_missing=is_there is False),
    )
    settled = send_until_settled(request, deadline)
    return without_time(target, "if-none-match", settled.attempts)


def exists(target: Target, deadline: Deadline) -> bool:
    """Return whether the table is there."""
    return existence.look_after(lambda: _require(target, deadline)) is not None


def _require(target: Target, deadline: Deadline) -> Target:
    """Ask for at most one entity of a table, and return the table."""
    next(entities.read_pages(target, deadline, "PartitionKey eq ''", "PartitionKey", 1), None)
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
    service = sdk.table_service(account)
    asked = {"results_per_page": limit and min(limit, _PAGE), **page_timeouts(deadline)}
    between = f"TableName ge '{prefix}' and TableName lt '{prefix}{_BEHIND_LETTERS}'"
    found: Any = service.query_tables(between, **asked) if prefix else service.list_tables(**asked)
    names = (item.name for item in pages(found, everything, deadline))
    for name in islice((name for name in names if name.startswith(prefix)), limit):
        yield TableShown(str(Address(Kind.TABLE, (name,))), name)


def delete(target: Target, conditions: Conditions, deadline: Deadline) -> Written:
    """Delete a table and everything in it; the service has no condition for that.

    Raises:
        NotFound: there is no such table.
        OutcomeUnknown: the answer was lost, or the request was refused. If the table that was there before is gone,
            another may have deleted it; if it is there, it may be a new one, and a lost request may still arrive.
    Source: https://learn.microsoft.com/rest/api/storageservices/delete-table
    """
    before = existence.look_before(lambda: _require(target, deadline))
    request = WriteRequest[None](
        target=target,
        send=lambda: _delete(target, deadline),
        look=lambda _: Finding(Verdict.UNKNOWN),
        look_after_refusal=lambda patience: existence.judge_refused_delete(before, lambda: _require(target, patience)),
    )
    settled = send_until_settled(request, deadline)
    return without_time(target, conditions.guard, settled.attempts)


def _delete(target: Target, deadline: Deadline) -> None:
    from azure.core.exceptions import ResourceNotFoundError

    answers: list[Any] = []

    def keep(response: Any) -> None:
        answers.append(response.http_response)

    sdk.table(target.account, target.address).delete_table(raw_response_hook=keep, **write_timeouts(deadline))
    # The SDK hides that there was no table.
    if answers and answers[-1].status_code == HTTPStatus.NOT_FOUND:
        raise ResourceNotFoundError(response=answers[-1])


def _set_policies(target: Target, policies: Policies, deadline: Deadline) -> None:
    from azure.data.tables import TableAccessPolicy

    made = {name: TableAccessPolicy(**policy) if any(policy.values()) else None for name, policy in policies.items()}
    sdk.table(target.account, target.address).set_table_access_policy(made, **write_timeouts(deadline))


#: See https://learn.microsoft.com/rest/api/storageservices/get-table-acl and set-table-acl.
POLICIES = UnversionedPolicies(
    reader=lambda target: sdk.table(target.account, target.address).get_table_access_policy,
    send=_set_policies,
    rules=PolicyRules("a table", re.compile(r"r?a?u?d?"), "of r (read), a (add), u (update), d (delete)"),
)


def count_entities(target: Target, deadline: Deadline) -> Contents:
    """Count the entities of a table, up to the end of the first page that has any.

    Raises:
        Forbidden: it may not be queried.
        NotFound: it is not there.
    Source: https://learn.microsoft.com/rest/api/storageservices/query-entities
    """
    client = sdk.table(target.account, target.address)
    asked = {"select": "PartitionKey", "results_per_page": _PAGE, **page_timeouts(deadline)}
    return count_first_page(client.list_entities(**asked).by_page(), target, deadline, "entity", "entities")
