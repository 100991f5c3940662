"""What an update had under way when it ended without knowing: the memory of a key, beside the lineage's.

The lineage forgets an op after sixteen more writes, and at once if a tool that is not azguard wipes it. A run that was
killed with a write on its way leaves here which version it was sent for, so that the next run with the same key settles
that first, and never writes a second time what may have landed.

Not guaranteed: on another machine, or with another cache folder, only the lineage tells. Nor is it forced to the disk:
it outlives the process, not a power failure.
"""

from pathlib import Path

from azguard.atomic_files import write_atomically
from azguard.requests.lineage import bare


class WriteJournal:
    """The version that the latest write of one op was sent for, which is enough: see ``lineage``.

    ``keyed`` says that the op has a key that a run after a kill will use again; without one only an end that leaves
    the outcome unknown is worth remembering, because its message names the op.
    """

    def __init__(self, folder: Path, op: str, *, keyed: bool) -> None:
        self._file, self._keyed = folder / op, keyed
        self._kept: str | None = None

    def read_pending(self) -> str | None:
        """Return the ETag, without quotes, of the write that was sent and has no recorded end; ``-`` is nothing.

        None is no such write.
        """
        try:
            self._kept = self._file.read_text("ascii") or None
        except (OSError, ValueError):
            return None
        return self._kept

    def record_sending(self, etag: str | None) -> None:
        """Write down that a write is about to be sent over this version."""
        if self._keyed:
            self.record_unknown(etag)

    def record_unknown(self, etag: str | None) -> None:
        """Write down that a write over this version was sent, and that its end is not known."""
        text = bare(etag)
        if text == self._kept:
            return
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_atomically(self._file, text.encode("ascii"), durable=False)
        except OSError:
            return  # No folder to remember in: then only the lineage tells.
        self._kept = text

    def forget(self) -> None:
        """Forget it: what became of every write is known."""
        if self._kept is None:
            return
        try:
            self._file.unlink(missing_ok=True)
        except OSError:
            pass  # The next run with this key settles it again.
        self._kept = None
