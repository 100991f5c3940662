"""The content headers of a blob: changing some of them. The service clears each one that is not sent."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from azguard.accounts.target import Target
from azguard.blobs import properties, rewrites
from azguard.blobs.rewrites import Rewritten
from azguard.blobs.upload import decode_md5
from azguard.conditions.resolve import Conditions
from azguard.leases.kept import LeaseRecords
from azguard.requests.calls import write_timeouts
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY
from azguard.requests.settle import Finding, Settled, WriteRequest, send_until_settled


@dataclass(frozen=True)
class ContentHeaders:
    """The content headers of a blob; None is not set."""

    content_type: str | None = None
    content_encoding: str | None = None
    content_language: str | None = None
    content_disposition: str | None = None
    cache_control: str | None = None
    #: In base64.
    content_md5: str | None = None

    @classmethod
    def of(cls, found: Any) -> "ContentHeaders":
        """Return those of the SDK's properties."""
        settings = found.content_settings
        return cls(
            content_type=settings.content_type or None,
            content_encoding=settings.content_encoding or None,
            content_language=settings.content_language or None,
            content_disposition=settings.content_disposition or None,
            cache_control=settings.cache_control or None,
            content_md5=properties.encode_base64(settings.content_md5),
        )

    @property
    def given(self) -> Mapping[str, str]:
        """Return those that are set."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    def for_sdk(self) -> Any:
        """Return the SDK's value."""
        from azure.storage.blob import ContentSettings

        return ContentSettings(
            content_type=self.content_type,
            content_encoding=self.content_encoding,
            content_language=self.content_language,
            content_disposition=self.content_disposition,
            cache_control=self.cache_control,
            content_md5=decode_md5(self.content_md5),
        )


def change(
    target: Target,
    headers: ContentHeaders,
    conditions: Conditions,
    records: LeaseRecords,
    deadline: Deadline,
    *,
    clear_others: bool = False,
) -> Rewritten:
    """Change the content headers that are given; the others stay, or are cleared.

    Raises:
        Changed: it is not the version that the conditions name, or they do not hold.
        OutcomeUnknown: the answer was lost. Nothing in these headers tells whose they are; only a lease does.
    Source: https://learn.microsoft.com/rest/api/storageservices/set-blob-properties
    """

    def attempt(found: Any, under: Conditions) -> Settled[Any]:
        wanted = headers if clear_others else ContentHeaders(**{**ContentHeaders.of(found).given, **headers.given})
        client = target.account.blob(target.address)

        def look(patience: Deadline) -> Finding[Any]:
            return rewrites.find_outcome(
                found, target, under.lease_id, patience, lambda current: ContentHeaders.of(current) == wanted
            )

        request = WriteRequest(
            target=target,
            send=lambda: client.set_http_headers(
                wanted.for_sdk(), headers=under.request_headers, **write_timeouts(deadline)
            ),
            look=look,
            expected_etag=under.expected_etag,
            resend=rewrites.excludes_copies(conditions, under),
        )
        settled = send_until_settled(request, deadline)
        return Settled({**settled.answer, "lineage": (found.metadata or {}).get(KEY)}, settled.attempts, settled.doubts)

    return rewrites.rewrite(target, conditions, records, deadline, attempt)
