"""The ETag cache against a model of it, in whatever order things happen."""

from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from azguard.cache import copies
from azguard.cache.etag_cache import EtagCache
from azguard.cache.records import Key
from tests.support.caches import CONFIG, OTHER, Clock, etag_of, never

KEYS = st.sampled_from([CONFIG, OTHER])
SCOPES = st.sampled_from(["one", "two"])
FILES = st.sampled_from(["x", "y"])


class AgainstADict(RuleBasedStateMachine):
    """The cache does what two dicts would do: one per scope and resource, one per file besides."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.clock = Clock()
        self.caches = {scope: self._open(scope) for scope in ("one", "two")}
        self.seen: dict[tuple[str, Key], tuple[str, datetime]] = {}
        self.copies: dict[tuple[str, Key, str], tuple[str, datetime]] = {}
        self.versions = 0

    def _open(self, scope: str) -> EtagCache:
        return EtagCache.open(Path(self.folder.name), scope, warn=never, now=self.clock)

    def _file(self, name: str) -> Path:
        return Path(self.folder.name, name)

    def teardown(self) -> None:
        for cache in self.caches.values():
            cache.close()
        self.folder.cleanup()

    @rule(scope=SCOPES, key=KEYS, name=st.none() | FILES)
    def record(self, scope: str, key: Key, name: str | None) -> None:
        self.versions += 1
        self.clock.after(seconds=1)
        version = (f'"{self.versions}"', self.clock())
        copy = None if name is None else copies.find_at(self._file(name))
        self.caches[scope].record(key, etag=version[0], copy=copy, command="blob get")
        self.seen[scope, key] = version
        if name is not None:
            self.copies[scope, key, name] = version

    @rule(scope=SCOPES, key=KEYS, everywhere=st.booleans())
    def forget(self, scope: str, key: Key, everywhere: bool) -> None:
        gone = [each for each in self.seen if each[1] == key and (everywhere or each[0] == scope)]
        assert self.caches[scope].forget(key, all_scopes=everywhere) == len(gone)
        self._drop(gone)

    @rule(scope=st.none() | SCOPES)
    def clear(self, scope: str | None) -> None:
        gone = [each for each in self.seen if scope in (None, each[0])]
        assert self.caches["one"].clear(scope) == len(gone)
        self._drop(gone)

    @rule(seconds=st.integers(0, 8))
    def prune(self, seconds: int) -> None:
        before = self.clock() - timedelta(seconds=seconds)
        gone = [each for each, (_, moment) in self.seen.items() if moment < before]
        assert self.caches["one"].prune(timedelta(seconds=seconds)) == len(gone)
        self._drop(gone)

    @rule(scope=SCOPES)
    def another_process(self, scope: str) -> None:
        self.caches[scope].close()
        self.caches[scope] = self._open(scope)

    @rule()
    def move_to_another_machine(self) -> None:
        records = list(self.caches["one"].export())
        self.caches["one"].clear()
        assert self.caches["two"].import_records(records) == len(records)

    @invariant()
    def the_same_is_found(self) -> None:
        for scope, cache in self.caches.items():
            for key in (CONFIG, OTHER):
                assert etag_of(cache.find_last(key)) == self.seen.get((scope, key), (None,))[0]
                for name in ("x", "y"):
                    expected = self.copies.get((scope, key, name), (None,))[0]
                    assert etag_of(cache.find_bound(key, copies.find_at(self._file(name))).path) == expected
        listed = [entry.etag for entry in self.caches["one"].list_entries()]
        assert listed == [etag for etag, _ in sorted(self.seen.values(), key=lambda each: each[1], reverse=True)]

    def _drop(self, gone: list[tuple[str, Key]]) -> None:
        for each in gone:
            del self.seen[each]
        self.copies = {each: version for each, version in self.copies.items() if each[:2] not in gone}


AgainstADict.TestCase.settings = settings(stateful_step_count=25)
TestAgainstADict = AgainstADict.TestCase
