"""The leases on the shares of an account. A listing of files does not tell their leases."""

from collections.abc import Iterator
from typing import Any

from azguard.accounts.account import Account
from azguard.accounts.target import Target
from azguard.address import Address, Kind
from azguard.conditions.etags import quote
from azguard.leases.state import LeaseState
from azguard.requests.calls import page_timeouts, pages
from azguard.requests.deadline import Deadline
from azguard.requests.service_codes import Answers

# An account without the service has an endpoint all the same, at which nothing answers.
_REACH_SECONDS = 2.0


def list_states(account: Account, deadline: Deadline, prefix: str) -> Iterator[LeaseState]:
    """Yield the state of the lease of every share, in order of name.

    ``prefix`` is as for blobs: of the share, or of something in it. An account that was given without the service has
    no shares.

    Raises:
        AzguardError: they cannot be listed, or nothing answers where the service would be.

    Source: https://learn.microsoft.com/rest/api/storageservices/list-shares
    """
    name, slash, _ = prefix.partition("/")
    if "file" not in account.endpoints or slash:
        return
    answers = Answers()
    reach = deadline.restart(seconds=min(_REACH_SECONDS, deadline.seconds))
    listed = account.share_service().list_shares(
        name_starts_with=name or None,
        include_metadata=True,
        raw_response_hook=answers.hear,
        **page_timeouts(reach),
    )
    everything = Target(account, Address(Kind.SHARE, ("",)))
    for item in pages(listed, everything, reach):
        yield _parse_state(item, answers)


def _parse_state(item: Any, answers: Answers) -> LeaseState:
    return LeaseState(
        address=str(Address(Kind.SHARE, (item.name,))),
        state=str(item.lease.state),
        status=str(item.lease.status),
        duration=item.lease.duration,
        etag=quote(item.etag),
        last_modified=item.last_modified,
        metadata=item.metadata or {},
        answered_at=answers.date,
    )
