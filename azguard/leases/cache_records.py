"""The records of leases in the cache of one scope, so that a lease left behind by a crash can be found."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from azguard.accounts.account import Target
from azguard.cache.etag_cache import EtagCache
from azguard.cache.reads import Reads
from azguard.cache.records import GIVEN_UP, WITH_REASON, HeldLease, Key
from azguard.leases.owner_records import Moved, Version
from azguard.requests.lineage import KEY

# No network keeps a request for so long.
_LATEST = timedelta(hours=1)


class LeaseRecords:
    """The cache of this scope, as the place where leases are written down.

    ``tell_given_up`` is called with a lease that was given up although a request for it may still come, and with its
    term; ``tell_left`` with a lease without a term that could not be given back.
    """

    def __init__(
        self, reads: Reads, tell_given_up: Callable[[Target, int | None], None], tell_left: Callable[[Target], None]
    ) -> None:
        self._reads = reads
        self._tell_given_up = tell_given_up
        self._tell_left = tell_left

    @property
    def _cache(self) -> EtagCache:
        return self._reads.open_cache()

    def find_held(self, target: Target) -> HeldLease | None:
        """Return the newest lease that was asked for and is not known to be released."""
        return self._cache.find_held(Key.of(target))

    def find_released(self, target: Target) -> str | None:
        """Return the id of the last lease for which a release was sent, unless another was asked for since."""
        return self._cache.find_released(Key.of(target))

    def note_release(self, target: Target, lease_id: str) -> None:
        """Record that a release is about to be sent."""
        self._cache.record_release(Key.of(target), lease_id, self._reads.command)

    def forget_release(self, target: Target) -> None:
        """Record that no release of this scope is known to have ended a lease."""
        self._cache.forget_release(Key.of(target))

    def knows(self, target: Target, etag: str) -> bool:
        """Return whether this version is the last that this scope has read or written."""
        last = self._reads.find_last(target)
        return last is not None and last.etag == etag

    def add(self, target: Target, lease_id: str, seconds: int | None, *, has_reason: bool = False) -> None:
        """Record a lease before it is asked for; ``seconds`` None is infinite, or not known."""
        action = self._reads.command + (WITH_REASON if has_reason else "")
        self._cache.record_lease(Key.of(target), lease_id, duration=seconds, action=action)

    def confirm(self, target: Target, lease_id: str, since: datetime | None = None) -> None:
        """Record that it was granted; ``since`` is the moment from which its term counts, by default unchanged."""
        self._cache.confirm(Key.of(target), lease_id, since=since)

    def remove(self, target: Target, lease_id: str) -> None:
        """Delete the record of a lease that is not held any more."""
        self._cache.forget_lease(Key.of(target), lease_id)

    def give_up(self, target: Target, lease_id: str, seconds: int | None, *, is_told: bool = True) -> None:
        """Record that a lease was given up although a request for it may still come, and tell people."""
        # What was seen of it before does not count any more.
        self._cache.forget_lease(Key.of(target), lease_id)
        self._cache.record_lease(Key.of(target), lease_id, duration=seconds, action=self._reads.command + GIVEN_UP)
        if is_told:
            self._tell_given_up(target, seconds)

    def find_given_up(self, target: Target) -> list[str]:
        """Return the ids of the leases of this scope that were given up so in the last hour; forget those before."""
        key, found = Key.of(target), list[str]()
        for each in self._cache.list_given_up(key):
            if datetime.fromisoformat(each.time) + _LATEST > datetime.now(UTC):
                found.append(each.lease_id)
            else:
                self._cache.forget_lease(key, each.lease_id)
        return found

    def note_left(self, target: Target) -> None:
        self._tell_left(target)

    def record_move(self, target: Target, moved: Moved) -> None:
        """Move on what this scope has read, if that is the version whose metadata changed: the content is the same."""
        self._reads.follow(target, moved.before, moved.after, moved.lineage)

    def record_creation(self, target: Target, made: Version) -> None:
        """Write down the empty version that we have made, as any other write of this scope."""
        lineage = made.metadata.get(KEY)
        self._cache.record(Key.of(target), etag=made.etag, length=0, lineage=lineage, command=self._reads.command)
