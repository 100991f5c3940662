"""What ``azguard status`` asks about: what this scope has read, of the account in use."""

from pathlib import Path

import pytest

from azguard import status
from azguard.accounts.account import Account, Auth, Target
from azguard.address import parse
from azguard.cache.etag_cache import EtagCache
from azguard.cache.records import Key
from azguard.errors import NotFound
from azguard.status import Read
from azguard.wire.rows import Part
from tests.support.caches import ACCOUNT, CONFIG, OTHER, Clock, never

EMULATOR = Account("devstoreaccount1", {"blob": ACCOUNT}, Auth.ANONYMOUS)
TIME = "2026-11-21T12:00:00Z"


def target(address: str) -> Target:
    return Target(EMULATOR, parse(address).address)


@pytest.fixture
def cache(tmp_path: Path) -> EtagCache:
    found = EtagCache.open(tmp_path, "mine", warn=never, now=Clock())
    found.record(CONFIG, etag='"0x1"', command="blob get")
    found.record(OTHER, etag='"0x2"', command="blob get")
    found.record_lease(OTHER, "11111111-1111-4111-8111-111111111111", duration=None, action="lease acquire")
    return found


def test_resources_that_are_named_are_read_in_their_order(cache: EtagCache) -> None:
    found = status.reads_of(cache, [target(OTHER.address), target(CONFIG.address)])
    assert found == [
        Read(target(OTHER.address), '"0x2"', TIME, None, held=True),
        Read(target(CONFIG.address), '"0x1"', TIME),
    ]


@pytest.mark.parametrize("part", [Part.METADATA, Part.ACL])
def test_a_resource_of_which_a_part_alone_was_read_is_found_by_its_name(cache: EtagCache, part: Part) -> None:
    site = target("container:site")
    cache.record_part(Key.of(site), part, etag='"0x7"', last_modified=None, lineage=None, command="get")
    assert status.reads_of(cache, [site]) == [Read(site, '"0x7"', TIME)]


def test_a_resource_that_was_never_read_here_is_not_found(cache: EtagCache) -> None:
    with pytest.raises(NotFound) as caught:
        status.reads_of(cache, [target(CONFIG.address), target("blob:site/new")])
    assert (caught.value.address, caught.value.reason) == ("blob:site/new", "address_not_in_account")


def test_all_reads_are_those_of_this_account_and_the_others_are_counted(cache: EtagCache) -> None:
    cache.record(Key("https://contoso.blob.core.windows.net", CONFIG.address), etag='"0x3"', command="blob get")
    others: list[int] = []
    found = status.all_reads(cache, "mine", EMULATOR, others.append)
    assert ({each.etag for each in found}, others) == ({'"0x1"', '"0x2"'}, [1])


def test_without_reads_in_other_accounts_nothing_is_told(cache: EtagCache) -> None:
    others: list[int] = []
    assert (len(status.all_reads(cache, "mine", EMULATOR, others.append)), others) == (2, [])
