"""What a scope remembers of a resource, as the guard of a write, or why it cannot be one."""

from azguard.accounts.target import Target
from azguard.conditions import etags
from azguard.conditions.operations import Part
from azguard.conditions.seen import Remembered, SeenVersion
from azguard.errors import AzguardError, Changed, NotFound


def version(seen: SeenVersion, target: Target) -> str:
    """Return the ETag of a version that is remembered. It goes out as a guard, so it must name one version.

    Raises:
        Changed: it is no ETag: the cache was damaged, or edited by hand.
    """
    if not etags.is_version(target.kind, seen.etag):
        raise Changed(
            f"the remembered version of {target} is no ETag: the cache was damaged or edited",
            address=str(target.address),
            reason="remembered_version_damaged",
        )
    return seen.etag


def two_versions(target: Target, known: Remembered) -> Changed:
    """Return the error for a file whose path had one version and whose content came with another."""
    assert known.copy is not None
    assert known.other is not None
    return Changed(
        f"two versions of {target} go with this file, so neither can guard the write",
        address=str(target.address),
        detail=(
            f"{known.copy.etag} was last read or written under this path",
            f"{known.other.etag} came with the file that was moved or linked here",
        ),
        reason="two_versions_of_file",
    )


def never_read(target: Target, part: Part, *, reason: str) -> Changed:
    """Return the error for a write that needs a version, where this scope has read none."""
    # Another read of the resource tells the version of its metadata too, but never that of its tags.
    what = f"the tags of {target} were" if part is Part.TAGS else f"{target} was"
    return Changed(
        f"{what} never read here, so no version guards this; nothing was done",
        address=str(target.address),
        reason=reason,
        values={"part": part.value},
    )


def deleted_here(error: AzguardError, target: Target, moment: str) -> NotFound:
    """Return the error that a resource is gone in the place of ``error``, where this scope deleted it at a moment."""
    return error.as_kind(NotFound, message=f"{target} is gone: you deleted it at {moment}", reason="deleted_here")
