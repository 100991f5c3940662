"""What can be asked before an upload begins, so that a doomed one ends early."""

from dataclasses import replace
from typing import TYPE_CHECKING

from azguard.blobs import fenced_writes, properties, types
from azguard.conditions.resolve import Conditions
from azguard.errors import Changed, Exists, NotFound

if TYPE_CHECKING:
    from azguard.blobs.upload import Upload


def check_early(upload: "Upload") -> None:
    """Ask before the first block whether the commit would fail.

    Raises:
        AzguardError: it would, for the reason that the commit would be given.
    """
    conditions = upload.conditions
    if conditions.fence is not None:
        fenced_writes.bind_to_what_is_there(upload.target, conditions, upload.deadline, creates=True)
        return
    try:
        found = properties.fetch(upload.target, replace(conditions, headers=_on_a_read(conditions)), upload.deadline)
    except NotFound as error:
        if error.service_code == "ContainerNotFound":
            raise
        if conditions.expected_etag is not None:
            raise properties.to_gone(upload.target, conditions.expected_etag, error) from error
        return
    except Changed as error:
        if conditions.expected_etag is None:
            raise
        told = f"{upload.target} changed since you read it"
        raise replace(error, message=told, expected_etag=conditions.expected_etag) from error
    if conditions.creates_only:
        raise Exists(f"{upload.target} exists already", address=str(upload.target.address))
    if not upload.any_type:
        types.refuse(upload.target, properties.type_of(found))


def _on_a_read(conditions: Conditions) -> dict[str, str]:
    """Return the conditions that mean on a read what they mean on the commit: those that fail with 412 there."""
    return {
        key: value
        for key, value in conditions.headers.items()
        if key in ("If-Match", "If-Unmodified-Since", "x-ms-if-tags")
    }
