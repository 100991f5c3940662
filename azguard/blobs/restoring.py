"""What a restore of a blob would change: its content, headers, metadata and index tags; nothing is written."""

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

from azguard.accounts.target import Target
from azguard.blobs import properties, update_states
from azguard.blobs.copies import BlobCopy
from azguard.blobs.download import Download
from azguard.conditions import fences
from azguard.conditions.resolve import Conditions
from azguard.documents import diffs
from azguard.errors import Changed, NotFound
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import drop_lineage


@dataclass(frozen=True)
class RestorePreview:
    """What a restore would do now."""

    address: str
    source: str
    #: Of the version that is there now; None where there is none.
    etag: str | None
    #: ``dry_run``, ``unchanged`` where both are equal, or ``would refuse``.
    outcome: str
    #: Why it would be refused; None where it would not.
    reason: str | None
    diff: str


class _Whole(NamedTuple):
    """One version, read whole."""

    content: bytes
    #: The headers, metadata and tags that a restore sets, as JSON on many lines.
    settings: bytes
    #: The properties that the service told; None where there is no blob.
    found: Any = None


def preview(plan: BlobCopy) -> RestorePreview:
    """Compare what is there now with what a restore would write.

    Raises:
        NotFound: there is no such snapshot or version, or no container.
        Changed: the blob is overwritten faster than it can be read before the deadline.
    """
    kept = _read(plan.source, plan.deadline)
    try:
        current = _read(plan.target, plan.deadline)
    except NotFound as error:
        if error.service_code == "ContainerNotFound":
            raise
        current = _Whole(b"", b"")
    reason = _find_refusal(plan.conditions, current.found)
    name = plan.target.address.short
    diff = diffs.compare(current.content, kept.content, name)
    diff += diffs.compare(current.settings, kept.settings, f"{name} properties")
    planned = "dry_run" if diff or current.found is None else "unchanged"
    return RestorePreview(
        address=str(plan.target.address),
        source=str(plan.source.address),
        etag=None if current.found is None else current.found.etag,
        outcome=planned if reason is None else "would refuse",
        reason=reason,
        diff=diff,
    )


def _read(target: Target, deadline: Deadline) -> _Whole:
    while True:
        download = Download(target, Conditions(), lambda: deadline)
        try:
            content = b"".join(download)
        except (Changed, NotFound):
            # Another version, or none any more: that is read next.
            if deadline.passed:
                raise
            continue
        return _Whole(content, _describe(target, download.properties, deadline), download.properties)


def _describe(target: Target, found: Any, deadline: Deadline) -> bytes:
    settings = update_states.to_settings(found, drop_lineage(found.metadata))
    tags = properties.fetch_tags(target, None, deadline) if found.tag_count else {}
    tags.pop(fences.TAG, None)
    named = {**vars(settings), "blob_type": properties.type_of(found), "tags": tags}
    told = {key: value for key, value in named.items() if value not in (None, "", {})}
    return (json.dumps(told, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()


def _find_refusal(conditions: Conditions, current: Any) -> str | None:
    """Return why a restore would be refused now, as far as a look tells; None if it would not."""
    if current is None:
        return None if conditions.expected_etag is None else "it was deleted since it was read here"
    if conditions.creates_only:
        return "it exists, and was never read here"
    if conditions.expected_etag not in (None, current.etag):
        return "it changed since it was read here"
    if current.lease.status == "locked" and conditions.lease_id is None:
        return "it is leased, and no lease id was given"
    return None
