"""What a scope knows of a resource: the versions it has seen, and the lease it holds."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Seen:
    """A version this scope has seen, and the azguard lineage that version carried.

    ``partial`` says that only some properties of it were seen, so that nobody here could write it back whole.
    """

    etag: str
    lineage: str | None = None
    last_modified: str | None = None
    partial: bool = False


@dataclass(frozen=True, slots=True)
class Known:
    """What this scope knows of a resource.

    ``last`` is what it last read, which is ``@last``. ``copy`` is the version whose content is in the file being
    written, if that is known: it guards by default, whatever was read since. ``lease`` is the lease id it holds.
    """

    last: Seen | None = None
    copy: Seen | None = None
    lease: str | None = None

    @property
    def guard(self) -> Seen | None:
        """Return the version that guards a write nobody named a condition for."""
        return self.copy or self.last

    def lineage(self, etag: str | None) -> str | None:
        """Return the lineage of a version, if it is known."""
        return next((seen.lineage for seen in (self.copy, self.last) if seen is not None and seen.etag == etag), None)
