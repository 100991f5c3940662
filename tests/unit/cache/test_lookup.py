"""What was read of an address, in whichever account: what ``cache show`` and ``cache forget`` are about."""

from pathlib import Path

import pytest

from azguard.address import Location, parse
from azguard.cache import etag_cache
from azguard.cache.etag_cache import EtagCache
from azguard.cache.records import Key
from azguard.errors import NotFound
from tests.support.caches import ACCOUNT, CONFIG, OTHER, Clock, never

ELSEWHERE = Key("https://contoso.blob.core.windows.net", CONFIG.address)
PLAIN = parse("blob:site/config.json")
URL = parse(f"{ACCOUNT.replace('127.0.0.1', 'localhost')}/site/config.json")


@pytest.fixture
def cache(tmp_path: Path) -> EtagCache:
    found = EtagCache.open(tmp_path, "mine", warn=never, now=Clock())
    for key in (CONFIG, OTHER, ELSEWHERE):
        found.record(key, etag='"0x1"', command="blob get")
    return found


def test_an_address_is_of_every_account(cache: EtagCache) -> None:
    assert {each.key for each in etag_cache.find_entries(cache, PLAIN, "mine")} == {CONFIG, ELSEWHERE}


def test_a_url_is_of_its_own_account_by_either_name_of_this_machine(cache: EtagCache) -> None:
    assert [each.key for each in etag_cache.find_entries(cache, URL, "mine")] == [CONFIG]


def test_a_longer_name_is_another_resource(cache: EtagCache) -> None:
    cache.record(Key(ACCOUNT, f"{CONFIG.address}.bak"), etag='"0x1"', command="blob get")
    assert [each.key for each in etag_cache.find_entries(cache, URL, "mine")] == [CONFIG]


def test_what_another_scope_read_is_not_required_here(cache: EtagCache) -> None:
    with pytest.raises(NotFound) as caught:
        etag_cache.require_entries(cache, PLAIN, "another")
    assert (caught.value.message, caught.value.reason) == (
        "blob:site/config.json was never read here",
        "address_not_in_scope",
    )


@pytest.mark.parametrize(("scope", "left"), [("mine", []), ("another", [CONFIG]), (None, [])])
def test_forgetting_is_of_one_scope_or_of_all(cache: EtagCache, scope: str | None, left: list[Key]) -> None:
    forgotten = _forget(cache, URL, scope)
    assert [each.key for each in etag_cache.find_entries(cache, URL, None)] == left
    assert forgotten == 1 - len(left)


def test_what_was_read_of_a_part_alone_is_forgotten_and_counted(cache: EtagCache) -> None:
    part = Key(ACCOUNT, "container:site")
    cache.record_part(part, "acl", etag='"0x1"', last_modified=None, lineage=None, command="container acl get")
    assert (_forget(cache, parse("container:site"), "mine"), cache.find_part(part, "acl")) == (1, None)


def _forget(cache: EtagCache, location: Location, scope: str | None) -> int:
    known = cache.list_known(location, scope)
    return sum(cache.forget(key, all_scopes=scope is None) for key in known)
