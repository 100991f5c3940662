"""The access policies of a share, by which a SAS gets its terms."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from azguard.accounts.target import Target
from azguard.conditions.etags import quote
from azguard.conditions.resolve import Conditions
from azguard.documents.policies import Policies, PolicyRules
from azguard.files import guarding
from azguard.files.guarding import Guarding
from azguard.files.writes import FileWrite
from azguard.requests.calls import read, write_timeouts
from azguard.requests.commits import WriteResult
from azguard.requests.deadline import Deadline
from azguard.resources import access_policies
from azguard.resources.access_policies import parse_answer, parse_version

RULES = PolicyRules("a share", re.compile(r"r?c?w?d?l?"), "of r (read), c (create), w (write), d (delete), l (list)")


@dataclass(frozen=True)
class ShareAcl:
    """The access policies of a share, and the version that they are of."""

    address: str
    etag: str
    last_modified: datetime
    policies: Policies


def get(target: Target, conditions: Conditions, deadline: Deadline) -> ShareAcl:
    """Read the access policies of a share.

    Raises:
        NotFound: there is no such share.
    Source: https://learn.microsoft.com/rest/api/storageservices/get-share-acl
    """
    client = target.account.share(target.address)
    answers: list[Any] = []

    def once(timeouts: Mapping[str, Any]) -> None:
        try:
            client.get_share_access_policy(
                headers=conditions.request_headers, raw_response_hook=answers.append, **timeouts
            )
        except ValueError:
            pass  # a time that the SDK cannot parse; the text of the answer is read instead

    read(once, target, deadline)
    answer = answers[-1].http_response
    etag, modified = parse_version(target, answer.headers)
    return ShareAcl(
        address=str(target.address),
        etag=quote(etag),
        last_modified=modified,
        policies=parse_answer(target, answer.text()),
    )


def replace(
    target: Target, policies: Policies, conditions: Conditions, guarding_by: Guarding, deadline: Deadline
) -> WriteResult:
    """Replace all access policies of a share.

    Raises:
        Changed: the share is no longer the version that the conditions name.
        OutcomeUnknown: the answer was lost, and no lease tells whose the policies are.
    Source: https://learn.microsoft.com/rest/api/storageservices/set-share-acl
    """
    client = target.account.share(target.address)
    body = access_policies.replace_body(access_policies.build_policies(policies))

    def send(headers: Mapping[str, str], patience: Deadline) -> Any:
        return client.set_share_access_policy(
            {}, headers=dict(headers), raw_request_hook=body, **write_timeouts(patience)
        )

    write = FileWrite(target=target, conditions=conditions, send=send)
    return guarding.perform(write, guarding_by, deadline)
