"""The outcome of an upload whose answer was lost, from the lineage or from the ids of its blocks."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from azguard.blobs import properties
from azguard.conditions.etags import quote
from azguard.conditions.resolve import Conditions
from azguard.errors import NotFound
from azguard.requests.commits import Verdict, verdict_from_lineage
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage
from azguard.requests.settle import NOTHING_THERE, Finding

if TYPE_CHECKING:
    from azguard.blobs.upload import Upload


def find_outcome(upload: "Upload", ids: Sequence[str], patience: Deadline) -> Finding[Mapping[str, Any]]:
    """Return what is known about a put, with the ETag it made if that is known; ``ids`` are its blocks."""
    parent = upload.conditions.expected_etag
    try:
        found = properties.fetch(upload.target, Conditions(), patience)
    except NotFound:
        return Finding(Verdict.NOT_YET if upload.conditions.creates_only else Verdict.UNKNOWN, seen=NOTHING_THERE)
    history = Lineage.parse((found.metadata or {}).get(KEY))
    verdict = verdict_from_lineage(history, upload.op, parent, found.etag)
    if verdict is Verdict.UNKNOWN and ids:
        return _compare_blocks(upload, ids, patience)._replace(seen=found)
    if verdict is not Verdict.COMMITTED:
        return Finding(verdict, seen=found, same=verdict is Verdict.UNKNOWN and _equals(upload, found))
    position = next(index for index, (op, _) in enumerate(history.entries) if op == upload.op)
    if position == 0:
        return Finding(verdict, _as_answer(found) if _is_as_sent(upload, found) else {"etag": None})
    # The write after ours recorded which ETag it replaced: ours.
    return Finding(verdict, {"etag": quote(history.entries[position - 1][1])})


def _is_as_sent(upload: "Upload", found: Any) -> bool:
    """Return whether headers and metadata are ours: another tool may have changed them, and kept the lineage."""
    from azguard.blobs.headers import ContentHeaders

    wanted = {each.name: getattr(upload.settings, each.name) for each in fields(ContentHeaders)}
    # What the service sets where they are not given.
    wanted["content_type"] = wanted["content_type"] or "application/octet-stream"
    wanted["content_md5"] = wanted["content_md5"] or properties.encode_base64(upload.md5)
    return ContentHeaders.of(found) == ContentHeaders(**wanted) and properties.has_metadata(found, upload.metadata)


def _equals(upload: "Upload", found: Any) -> bool:
    """Return whether the content that is there equals ours, for an upload without a lineage."""
    theirs = found.content_settings.content_md5
    return upload.stamp is None and upload.md5 is not None and theirs is not None and bytes(theirs) == upload.md5


def _compare_blocks(upload: "Upload", ids: Sequence[str], patience: Deadline) -> Finding[Mapping[str, Any]]:
    """Return whether the blob consists of our blocks: no other upload has their ids."""
    from azguard.blobs import blocks

    try:
        current, etag = blocks.list_committed(upload.target, patience)
        if current != list(ids):
            return Finding(Verdict.UNKNOWN)
        found = properties.fetch(upload.target, Conditions(), patience)
    except NotFound:
        return Finding(Verdict.UNKNOWN)
    # Another writer may have changed the metadata since, which makes another version of the same blocks.
    same = etag == found.etag and _is_as_sent(upload, found)
    return Finding(Verdict.COMMITTED, _as_answer(found) if same else {"etag": None})


def _as_answer(found: Any) -> Mapping[str, Any]:
    return {"etag": found.etag, "last_modified": found.last_modified, "version_id": found.version_id}
