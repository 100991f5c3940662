"""What one scope has read of a resource: asked for once, as one value, and recorded when a command has delivered it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.errors import AzguardError, Changed, Gone, NotFound
from azguard.frozen import frozen
from azguard.guards import resolve, versions
from azguard.guards.requested import RequestedConditions
from azguard.guards.resolve import Conditions
from azguard.guards.versions import Remembered, SeenVersion
from azguard.times import iso
from azguard.wire.rows import Guard, Lease, Operation, Part

if TYPE_CHECKING:
    from azguard.cache.copies import Copy
    from azguard.cache.etag_cache import EtagCache
    from azguard.cache.records import Entry, Key

_LAST = "@last"
_HELD = "@held"
# How a hash of content begins.
_SHA256 = "sha256:"
# The part of a resource under which it is recorded that the resource was deleted from here.
_DELETED = "deleted"
# The characters of a time such as 2026-11-21T10:00:00.
_TO_THE_SECOND = 19
_CODES_OF_PARENTS = frozenset({"ContainerNotFound", "ParentNotFound", "ShareNotFound", "TableNotFound"})
T = TypeVar("T")


@frozen
class KnownContent:
    """What a scope knows of the content of one version."""

    sha256: bytes
    lineage: str | None
    blob_type: str | None
    #: Whether to record it for that file again would tell nothing new.
    is_recorded: bool = False


@frozen
class Reads:
    """What one scope has read, and which leases it holds, as one run of one command sees and records it."""

    #: Returns the cache of the scope. It is opened when it is first needed: most reads need no cache.
    open_cache: "Callable[[], EtagCache]"
    #: The command that is recorded beside each version.
    command: str
    #: Returns the id of the lease that a ``lock run`` around us holds on a resource, None if there is none.
    outer_lease: Callable[[Target], str | None]
    #: Where versions went that this run has moved on already, by address and ETag.
    _moved: dict[tuple[str, str], str] = field(default_factory=dict, init=False, repr=False)

    def recall(self, target: Target, copy: "Copy | SeenVersion | None" = None, part: Part = Part.WHOLE) -> Remembered:
        """Return the versions that this scope remembers of a resource, or of a part of the resource.

        ``copy`` is the file whose content is to be written, or the version that the content itself names.
        """
        if copy is None or isinstance(copy, SeenVersion):
            last = self._last_of(target, part)
            if copy is None:
                deleted = self._find_deleted(target) if last is None and part is not Part.TAGS else None
                return Remembered(last=last, deleted=deleted)
            # What the scope knows of that version, its lineage for example, comes along.
            is_last = last is not None and last.etag == copy.etag
            return Remembered(last=last, copy=last if is_last else copy)
        whole, bound = self.open_cache().find_known(_key(target), copy)
        last = _convert(whole) if part is Part.WHOLE else self._last_of(target, part)
        path = _convert(bound.path)
        inode = _convert(bound.inode)
        is_moved = path is not None and inode is not None and path.etag != inode.etag
        return Remembered(last=last, copy=path or inode, other=inode if is_moved else None)

    def find_last(self, target: Target) -> SeenVersion | None:
        """Return the version that this scope last read or wrote."""
        return _convert(self.open_cache().find_last(_key(target)))

    def _last_of(self, target: Target, part: Part) -> SeenVersion | None:
        """Return the version of a part that this scope last read or wrote; tags alone have a version of their own."""
        if part is Part.WHOLE:
            return self.find_last(target)
        found = _convert(self.open_cache().find_part(_key(target), part))
        return self.find_last(target) if found is None and part is not Part.TAGS else found

    def find_content(self, target: Target, etag: str | None, copy: "Copy") -> "KnownContent | None":
        """Return the known facts of one version's content, if its hash is known; the file ``copy`` may hold it."""
        cache = self.open_cache()
        last, bound = cache.find_known(_key(target), copy)
        for each in (*bound, last):
            if each is not None and each.etag == etag and each.content_hash is not None:
                from azguard.cache import records

                digest = bytes.fromhex(each.content_hash.removeprefix(_SHA256))
                is_recorded = cache.are_recorded(each, self.command, last, *bound)
                return KnownContent(digest, each.lineage, records.find_blob_type(each.command), is_recorded)
        return None

    def find_read_hash(self, target: Target, copy: "Copy") -> bytes | None:
        """Return the SHA-256 of the content that this command has put into a file.

        None if another command was the last that did with the file, such as the one that wrote it there.
        """
        from azguard.cache import records

        bound = self.open_cache().find_bound(_key(target), copy)
        found = next((each for each in bound if each is not None), None)
        if found is None or found.content_hash is None or records.find_command(found.command) != self.command:
            return None
        return bytes.fromhex(found.content_hash.removeprefix(_SHA256))

    def check_copy(self, target: Target, file: Path, content_hash: str, *, overwrites: bool) -> None:
        """Refuse to replace a file by other content if the file was changed here since this scope got or put it.

        ``overwrites`` allows it. A file that neither came from there nor went there is replaced as by any other tool.

        Raises:
            Changed: it was changed here.
        """
        if not overwrites and self.is_changed_here(target, file, content_hash):
            raise Changed(
                f"{file} would be replaced: you changed it here since you got it",
                address=str(target.address),
                reason="copy_changed_here",
            )

    def is_changed_here(self, target: Target, file: Path, content_hash: str | None = None) -> bool:
        """Return whether a file holds neither what this scope got into it or put from it, nor content of this hash."""
        from azguard.cache import copies

        with suppress(OSError), open(file, "rb") as stream:
            bound = self.open_cache().find_bound(_key(target), copies.find_behind(stream.fileno(), file))
            known = {each.content_hash for each in bound if each is not None}
            if not known or None in known:
                return False
            import hashlib

            found = f"{_SHA256}{hashlib.file_digest(stream, 'sha256').hexdigest()}"
            return found not in known and found != content_hash
        # There is no such file any more, or none that can be read.
        return False

    def resolve_conditions(
        self,
        operation: Operation,
        asked: RequestedConditions,
        target: Target,
        copy: "Copy | SeenVersion | None" = None,
    ) -> Conditions:
        """Return the conditions that an operation sends: those asked for, or the guard from this scope's reads.

        Raises:
            UsageError: a condition is malformed, or the operation does not honour it.
            Changed: the write needs a version, and this scope has never read one.
            NotFound: ``@held``, and another job with this scope holds a lease.
        """
        if asked.lease_id == _HELD:
            self._refuse_another_jobs(target)
        known = self.recall(target, copy, operation.part) if _needs_reads(operation, asked) else None
        if known is not None and asked.lease_id == _HELD:
            known = replace(known, lease=self.find_held_id(target))
        found = resolve.resolve(operation, asked, target, known)
        outer = self.outer_lease(target)
        # One that azguard would guard by a lease of its own is guarded by that of the lock.
        uses_lease = operation.lease is Lease.REQUIRED or operation.guard is Guard.LEASE
        if outer is None or found.lease_id is not None or not uses_lease:
            return found
        # Without the lease id the service would refuse the write; the version still guards it.
        return replace(found, lease_id=outer, guard="lease" if found.guard == "none" else found.guard)

    def choose_lease_id(self, target: Target, asked: str | None) -> str | None:
        """Return the lease id that was asked for, ``@held`` included; by default that of the lock run around us.

        Raises:
            UsageError: it is no lease id, or ``@held`` and this scope holds none.
            NotFound: ``@held``, and another job with this scope holds one.
        """
        if asked is None:
            return self.outer_lease(target)
        from azguard.guards import requested

        if asked == _HELD:
            self._refuse_another_jobs(target)
        return requested.resolve_lease_id(asked, self.find_held_id(target) if asked == _HELD else None)

    def find_held_id(self, target: Target) -> str | None:
        """Return the id of the lease held on a resource: by the lock run around us, else by this scope in this job."""
        outer = self.outer_lease(target)
        if outer is not None:
            return outer
        found = self.open_cache().find_held(_key(target))
        return None if found is None else found.lease_id

    def _refuse_another_jobs(self, target: Target) -> None:
        """Refuse to take the lease of another job with this scope for the one that is held here."""
        other = self.open_cache().find_held_by_others(_key(target))
        if other is None or self.find_held_id(target) is not None:
            return
        from azguard.cache import scope

        raise NotFound(
            f"this job holds no lease on {target}: it was taken by {scope.describe_job(other.job)}, at {other.time}",
            address=str(target.address),
            reason="lease_of_another_job",
        )

    def record(
        self,
        target: Target,
        result: Any,
        copy: "Copy | None" = None,
        lineage: str | None = None,
        *,
        selected: str | None = None,
    ) -> None:
        """Record the version that was just delivered or written, so that it guards the next write.

        A write whose ETag could not be learnt leaves nothing that could guard the next one. What a create found and
        left alone was not read, so that nothing is recorded. ``copy`` is the file that holds the content, ``selected``
        names the properties that were delivered, None is all.
        """
        from azguard.cache import records
        from azguard.requests.results import EXISTS

        if getattr(result, "outcome", None) == EXISTS:
            return
        if result.etag is None:
            self.forget(target)
            return
        command = records.add_blob_type(
            records.add_selection(self.command, selected), getattr(result, "blob_type", None)
        )
        self.open_cache().record(
            _key(target),
            etag=result.etag,
            last_modified=iso(result.last_modified),
            length=getattr(result, "content_length", None),
            content_hash=getattr(result, "content_hash", None),
            lineage=lineage,
            copy=copy,
            command=records.add_hidden_until(command, getattr(result, "hidden_until", None)),
        )

    def record_content(self, target: Target, written: Any, content: bytes, lineage: str | None) -> None:
        """Record the version that was just written with this content, as ``record`` does."""
        import hashlib

        if written.etag is None:
            self.forget(target)
            return
        self.open_cache().record(
            _key(target),
            etag=written.etag,
            last_modified=iso(written.last_modified),
            length=len(content),
            content_hash=f"{_SHA256}{hashlib.sha256(content).hexdigest()}",
            lineage=lineage,
            command=self.command,
        )

    def record_part(self, target: Target, part: Part, result: Any, lineage: str | None = None) -> None:
        """Record the version of a part of a resource that was just delivered or written, so that it guards the next
        write of that part. What was read of the content still guards writes of the content.
        """
        if result.etag is not None:
            self.open_cache().record_part(
                _key(target),
                part,
                etag=result.etag,
                last_modified=iso(result.last_modified),
                lineage=lineage,
                command=self.command,
            )

    def follow_parts(self, target: Target, before: str | None, after: str | None, lineage: str | None) -> None:
        """Record that a version read here was replaced by our own write of its content, which left or set its parts."""
        if before is not None and after is not None:
            self.open_cache().follow(_key(target), self._find_moved(target, before), after, lineage, only_parts=True)

    def follow(self, target: Target, before: str | None, after: str | None, lineage: str | None) -> None:
        """Record that a version read here got a new ETag by our own write, with its content unchanged."""
        if before is not None and after is not None:
            self.open_cache().follow(_key(target), self._find_moved(target, before), after, lineage)
            self._moved[str(target.address), before] = after

    def _find_moved(self, target: Target, etag: str) -> str:
        """Return the ETag to which this run has moved a version on; that of tags begins with that of the blob."""
        address = str(target.address)
        blob, mark, tags = etag.partition("+")
        moved = self._moved.get((address, f'{blob}"')) if mark else None
        known = etag if moved is None else moved.removesuffix('"') + mark + tags
        return self._moved.get((address, etag), known)

    def move_leases(self, source: Target, target: Target) -> None:
        """Record that the files below a directory that was renamed have other addresses, with their leases."""
        before, after = (f"{Kind.FILE}:{each.address.short}/" for each in (source, target))
        self.open_cache().move_leases(source.endpoint, before, after)

    def forget(self, target: Target) -> None:
        self.open_cache().forget(_key(target))

    def delete(self, target: Target, conditions: Conditions, send: Callable[[], T]) -> T:
        """Delete a resource by ``send``, and record that; what was known of it is forgotten.

        Raises:
            NotFound: it is gone, since this scope deleted it.
            AzguardError: as ``send`` says.
        """
        with self.explain_deleted(target, conditions):
            done = send()
        self.record_deleted(target, conditions.expected_etag)
        return done

    def record_deleted(self, target: Target, etag: str | None) -> None:
        """Record that a resource was deleted from here: this version, or None where no version was named."""
        last = self.find_last(target) if etag is None else None
        etag = etag if last is None else last.etag
        self.forget(target)
        if etag is not None:
            self.open_cache().record_part(
                _key(target), _DELETED, etag=etag, last_modified=None, lineage=None, command=self.command
            )

    @contextmanager
    def explain_deleted(self, target: Target, conditions: Conditions) -> Iterator[None]:
        """Say of what is gone that this scope deleted it, if it did.

        Raises:
            NotFound: in the place of the error that says that it is gone.
        """
        try:
            yield
        except (Gone, NotFound) as error:
            if conditions.deleted is None or _is_of_parent(error, target):
                raise
            raise versions.deleted_here(error, target, conditions.deleted) from error

    def _find_deleted(self, target: Target) -> SeenVersion | None:
        """Return the version that this scope deleted, if that is the last it did with a resource."""
        found = self.open_cache().find_part(_key(target), _DELETED)
        return None if found is None else SeenVersion(found.etag, deleted=f"{found.time[:_TO_THE_SECOND]}Z")


def _needs_reads(operation: Operation, asked: RequestedConditions) -> bool:
    """Return whether what the scope knows can matter: an unconditional read needs no cache."""
    return operation.writes or _LAST in (asked.if_match, asked.if_none_match, asked.etag) or asked.lease_id == _HELD


def _is_of_parent(error: AzguardError, target: Target) -> bool:
    """Return whether it is the container, share or table of a resource that is missing."""
    return len(target.address.parts) > 1 and error.service_code in _CODES_OF_PARENTS


def _key(target: Target) -> "Key":
    # A read that asks for nothing needs no cache, and so none of its modules.
    from azguard.cache.records import Key

    return Key.of(target)


def _convert(entry: "Entry | None") -> SeenVersion | None:
    if entry is None:
        return None
    from azguard.cache import records

    return SeenVersion(
        etag=entry.etag,
        lineage=entry.lineage,
        last_modified=entry.last_modified,
        length=entry.length,
        selected=records.find_selection(entry.command),
        blob_type=records.find_blob_type(entry.command),
        hidden_until=records.find_hidden_until(entry.command),
    )
