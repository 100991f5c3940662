"""What a write of tags under a fence owes to the versions of the blob.

A write of tags moves no ETag. So a holder with a lower fence, whose write is bound to the version that it compared the
fence on, could still replace the blob, and the higher fence with it. After tags were written under a fence, the blob
gets another version of the same content, under the same lease: then such a write is refused.
"""

from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any, ClassVar

from azguard.accounts.target import Target
from azguard.blobs import properties
from azguard.blobs.headers import ContentHeaders
from azguard.conditions.etags import quote
from azguard.conditions.operations import Condition
from azguard.conditions.resolve import Conditions
from azguard.errors import Forbidden
from azguard.leases.owner_records import Moved
from azguard.requests.calls import write_timeouts
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY
from azguard.requests.settle import Finding, WriteRequest, send_until_settled

_IMMUTABLE = "BlobImmutableDueToPolicy"


class VersionNotMoved(Forbidden):
    """The tags were written, and the caller may not give the blob another version."""

    #: By which ``calls.outcome_of`` knows it for a refusal.
    status_code: ClassVar[int] = HTTPStatus.FORBIDDEN


def move_version(target: Target, lease_id: str | None, deadline: Deadline) -> Moved:
    """Give a blob another ETag and leave all else as it is; ``lease_id`` is held, so that no one else can write it.

    Raises:
        Locked: the lease is not held any more.
        OutcomeUnknown: it was sent, and whether it was done cannot be known.
        VersionNotMoved: the caller may not do that.
    Source: https://learn.microsoft.com/rest/api/storageservices/set-blob-properties
    """
    under = Conditions(lease_id=lease_id)
    found = properties.fetch(target, under, deadline)
    tied = replace(under, headers={Condition.IF_MATCH.header: found.etag}).request_headers
    client, same = target.account.blob(target.address), ContentHeaders.of(found).for_sdk()

    def look(patience: Deadline) -> Finding[Mapping[str, Any]]:
        current, is_held = properties.fetch_whatever_lease(target, lease_id, patience)
        if current.etag == found.etag:
            return Finding(Verdict.NOT_YET)
        return Finding(Verdict.COMMITTED if is_held else Verdict.UNKNOWN, {"etag": current.etag})

    request = WriteRequest(
        target=target,
        send=lambda: client.set_http_headers(same, headers=tied, **write_timeouts(deadline)),
        look=look,
        expected_etag=found.etag,
    )
    try:
        after: str = send_until_settled(request, deadline).answer["etag"]
    except Forbidden as error:
        if error.service_code != _IMMUTABLE:
            told = "the tags were written, but a holder with a lower fence may still overwrite them"
            raise error.as_kind(VersionNotMoved, detail=(*error.detail, told)) from error
        after = found.etag  # No holder can replace the content.
    return Moved(quote(found.etag), quote(after), found.last_modified, (found.metadata or {}).get(KEY))
