"""URLs on the ports of the account in use, for the commands that take any kind of resource."""

import re
import uuid

import pytest

from tests.support.cases import cases
from tests.support.cli_world import CliWorld


def endpoint(cli: CliWorld, service: str) -> str:
    found = re.search(rf"{service}Endpoint=([^;]+)", cli.connection_string or "")
    assert found is not None
    return found[1]


@pytest.fixture
def entity(cli: CliWorld) -> str:
    """Return the URL of an entity that this scope has read."""
    table = f"T{uuid.uuid4().hex}"
    assert cli.call("table", "create", table).code == 0
    assert cli.call("entity", "insert", f"{table}/eu/1", "n:int32=1").code == 0
    assert cli.call("entity", "get", f"{table}/eu/1").code == 0
    return f"{endpoint(cli, 'Table')}/{table}(PartitionKey='eu',RowKey='1')"


def test_an_entity_is_updated_looked_up_and_forgotten_by_its_url(cli: CliWorld, entity: str) -> None:
    assert cli.call("safe-update", entity, "--set", "n=2").json["outcome"] == "committed"
    assert [each["state"] for each in cli.call("status", entity).json] == ["unchanged"]
    assert [each["address"] for each in cli.call("cache", "show", entity).json] == [address(entity)]
    assert cli.call("cache", "forget", entity).json == {"forgotten": 1, "dry_run": False}
    assert cli.call("cache", "show", entity).code == 44


def address(url: str) -> str:
    found = re.search(r"/(\w+)\(", url)
    assert found is not None
    return f"entity:{found[1]}/eu/1"


def test_a_url_means_the_account_it_names_and_no_other(cli: CliWorld) -> None:
    container = cli.container()
    assert cli.call("blob", "put", f"{container}/a", stdin=b"1").code == 0
    there = f"https://other.blob.core.windows.net/{container}/a"
    assert cli.call("cache", "show", there).code == 44
    assert cli.call("cache", "forget", there).json == {"forgotten": 0, "dry_run": False}
    assert len(cli.call("cache", "show", f"{endpoint(cli, 'Blob')}/{container}/a").json) == 1
    assert len(cli.call("cache", "show", f"{container}/a").json) == 1


def test_a_lock_is_named_by_the_url_of_its_table(cli: CliWorld) -> None:
    url = f"{endpoint(cli, 'Table')}/Orders"
    assert "table:Orders has no lease of its own" in cli.call("lock", "show", url).err


def test_a_sas_behind_a_plain_address_is_refused_and_shown_nowhere(cli: CliWorld) -> None:
    ran = cli.call("blob", "get", "site/a?sv=2025-11-05&sig=c2VjcmV0c2VjcmV0", "--debug")
    assert (ran.code, "c2VjcmV0" in ran.err) == (2, False)
    assert "a SAS stands behind 'site/a', and a plain address takes none" in ran.err


@cases(
    "words",
    ("blob", "get", "site/\udcff"),
    ("container", "create", "\udcff"),
    ("table", "create", "\udcff"),
    ("entity", "get", "Orders/eu/\udcff"),
    ("safe-update", "blob:site/\udcff", "--set", "a=1"),
    ("status", "blob:site/\udcff"),
    ("cache", "show", "blob:site/\udcff"),
    ("blob", "list", "site", "--prefix", "\udcff"),
    ("blob", "list", "site", "--delimiter", "\udcff"),
    ("container", "list", "--prefix", "\udcff"),
    ("table", "list", "--prefix", "\udcff"),
    ("lock", "list", "locks", "--prefix", "\udcff"),
    ("lease", "list", "site", "--prefix", "\udcff"),
    ("entity", "insert", "Orders/eu/1", "n=\udcff"),
    ("entity", "insert", "Orders/eu/1", "\udcff=1"),
    ("entity", "query", "Orders", "--filter", "n eq '\udcff'"),
    ("entity", "query", "Orders", "--filter", "n eq @n", "--param", "n=\udcff"),
    ("entity", "get", "Orders/eu/1", "--select", "\udcff"),
    ("blob", "put", "site/a", "--metadata", "a=\udcff"),
    ("blob", "put", "site/a", "--tags", "a=\udcff"),
    ("blob", "put", "site/a", "--content-type", "\udcff"),
    ("blob", "put", "site/a", "--if-tags", "a = '\udcff'"),
    ("cache", "list", "--prefix", "\udcff"),
    ("cache", "list", "--scope", "\udcff"),
    ("blob", "show", "site/a", "--query", "\udcff"),
    ("lock", "break", "blob:locks/x", "--if-owner", "\udcff"),
)
def test_a_name_that_is_not_utf8_is_refused_before_any_request(offline: CliWorld, words: tuple[str, ...]) -> None:
    account = ("--account-name", "acc", "--account-key", "a2V5") if words[0] != "cache" else ()
    ran = offline.call(*words, *account)
    assert (ran.code, r"is not UTF-8: " in ran.err, r"\xff" in ran.err) == (2, True, True), ran.err
