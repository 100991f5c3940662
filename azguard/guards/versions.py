"""ETags, and the versions that a scope has seen of a resource, and its lease there; which of these guards a write."""

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.errors import AzguardError, Changed, NotFound, UsageError
from azguard.frozen import frozen
from azguard.wire.rows import Part

if TYPE_CHECKING:
    from azguard.requests.settle import Settled

_BLOB = r'"[!#-&(-)+\--?A-~][!#-&(-)+\--~]*"'
# A table has none of its own; azguard makes one of its access policies.
_TABLE = r'"acl-[0-9a-f]{32}"'
_ENTITY = r"""W/"datetime'[!#-&(-)+-~]+'\""""
# The pop receipt of a message is its version.
_RECEIPT = r"[!#-~]+"
_OF_KIND = dict.fromkeys((Kind.CONTAINER, Kind.BLOB, Kind.QUEUE, Kind.SHARE, Kind.DIR, Kind.FILE), _BLOB) | {
    Kind.TABLE: _TABLE,
    Kind.MESSAGE: _RECEIPT,
    Kind.ENTITY: _ENTITY,
}
BLOCK_BLOB = "BlockBlob"


def is_version(kind: Kind, text: str) -> bool:
    """Return whether a text names one version of such a resource, byte for byte as the service gives it.

    Only that may be remembered and sent as a guard: ``*``, or a list, would match a version that was never read.
    """
    pattern = _OF_KIND.get(kind)
    return pattern is not None and re.fullmatch(pattern, text) is not None


def parse_blob_etag(etag: str, argument: str = "etag") -> str:
    """Return a blob-service ETag in quotes, as it is sent; bare and quoted are accepted.

    Raises:
        UsageError: it is neither, or it is weak, which these services never hand out.
    """
    text = etag.strip()
    if text.startswith("W/"):
        raise UsageError(f"{etag!r} is a weak ETag, which only tables have", argument=argument, reason="etag_weak")
    bare = text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text
    if not re.fullmatch(r"[!#-)+\--~]+", bare) or "'" in bare or bare.startswith("@"):
        raise UsageError(f"{etag!r} is not an ETag", argument=argument, reason="etag_malformed")
    return f'"{bare}"'


def find_metadata_etag(answer: Mapping[str, Any], stamped: Mapping[str, str]) -> str | None:
    """Return the ETag of metadata: that in the answer of the service, and of a queue, which has none, one of azguard's.

    ``stamped`` are the metadata with azguard's own entry: so no two writes of azguard have the same one.
    """
    if "etag" in answer:
        etag: str | None = answer["etag"]
        return etag
    canonical = sorted((name.lower(), value) for name, value in stamped.items())
    return f'"metadata-{hashlib.sha256(json.dumps(canonical).encode()).hexdigest()[:32]}"'


def build_changed(
    target: Target, expected: str | None, current: str | None, *, reason: str | None = None, what: str = ""
) -> Changed:
    """Build the error for a version that a write was for and that is no longer the current one.

    ``what`` are the parts of the target that the ETag is of; without it, it is of all of the target.
    """
    return Changed(
        f"{what or target} changed since you read {'them' if what else 'it'}",
        address=str(target.address),
        expected_etag=expected,
        current_etag=current,
        reason=reason,
    )


def require_version(
    target: Target, expected: str | None, current: str | None, *, reason: str | None = None, what: str = ""
) -> None:
    """Compare an ETag with that of the version that a write is for; None is any version.

    Raises:
        Changed: it is another one.
    """
    if expected not in (None, current):
        raise build_changed(target, expected, current, reason=reason, what=what)


def parse_table_etag(kind: Kind, etag: str, argument: str) -> str:
    """Return the ETag of an entity, or of a table's access policies, as it is, byte for byte."""
    if is_version(kind, etag):
        return etag
    if kind is Kind.TABLE:
        raise UsageError(
            f"{etag!r} is not the ETag of a table's policies", argument=argument, reason="policies_etag_malformed"
        )
    raise UsageError(f"{etag!r} is not the ETag of an entity", argument=argument, reason="entity_etag_malformed")


@frozen
class SeenVersion:
    """A version that this scope has seen."""

    etag: str
    #: The azguard lineage that it carried.
    lineage: str | None = None
    last_modified: str | None = None
    #: In bytes.
    length: int | None = None
    #: The properties of an entity that were seen; None is all. What was seen in part could not be written back whole.
    selected: str | None = None
    #: Of a blob: BlockBlob, AppendBlob or PageBlob.
    blob_type: str = BLOCK_BLOB
    #: Of a message: until when no other reader can receive it.
    hidden_until: datetime | None = None
    #: When this scope deleted it; None where it did not.
    deleted: str | None = None

    @property
    def partial(self) -> bool:
        """Return whether only some properties were seen."""
        return self.selected is not None


@frozen
class Remembered:
    """What this scope knows of a resource."""

    #: What it last read or wrote, which is ``@last``.
    last: SeenVersion | None = None
    #: The version that the copy being written came with: it guards by default, even if another was read since.
    copy: SeenVersion | None = None
    #: The version that the file itself came with, where its path had another one: then neither guards.
    other: SeenVersion | None = None
    #: The id of the lease it holds.
    lease: str | None = None
    #: The version that it deleted, where it has seen none since.
    deleted: SeenVersion | None = None

    @property
    def guard(self) -> SeenVersion | None:
        """Return the version that guards a write without a condition of its own."""
        return self.copy or self.last

    def describe(self, etag: str | None) -> dict[str, Any]:
        """Return the facts about a version, as fields of ``Conditions``; a fact that is not known is None."""
        seen = [each for each in (self.copy, self.other, self.last) if each is not None and each.etag == etag]
        return {
            "lineage": next((each.lineage for each in seen if each.lineage is not None), None),
            "length": next((each.length for each in seen if each.length is not None), None),
            "blob_type": next((each.blob_type for each in seen), None),
        }

    def find_deletion(self, etag: str | None) -> str | None:
        """Return when this scope deleted a version, if it did."""
        return self.deleted.deleted if self.deleted is not None and self.deleted.etag == etag else None


def version_of(seen: SeenVersion, target: Target) -> str:
    """Return the ETag of a version that is remembered. It goes out as a guard, so it must name one version."""
    if not is_version(target.kind, seen.etag):
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


def describe_write(target: Target, guard: str, settled: "Settled[Any]") -> dict[str, Any]:
    """Return the first fields of the result of a write, which its answer tells; see ``Written``."""
    answer = settled.answer if isinstance(settled.answer, Mapping) else {}
    return {
        "address": str(target.address),
        "etag": answer.get("etag"),
        "last_modified": answer.get("last_modified"),
        "guard": guard,
        "attempts": settled.attempts,
    }
