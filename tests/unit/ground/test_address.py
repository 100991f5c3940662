"""Addresses: one string names one resource, and never a secret."""

from dataclasses import astuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from azguard.address import Address, Kind, Location, parse
from azguard.cli.words.hints import in_words
from azguard.errors import UsageError
from tests.support.cases import cases

SNAPSHOT = "2026-11-21T10:00:00.1234567Z"


@cases(
    ("text", "kind", "parts"),
    ("container:site", Kind.CONTAINER, ("site",)),
    ("blob:site/config.json", Kind.BLOB, ("site", "config.json")),
    ("blob:$root/config.json", Kind.BLOB, ("$root", "config.json")),
    ("blob:site/a/b/c.txt", Kind.BLOB, ("site", "a/b/c.txt")),
    ("table:jobs", Kind.TABLE, ("jobs",)),
    ("entity:jobs/2026/17", Kind.ENTITY, ("jobs", "2026", "17")),
    ("queue:work", Kind.QUEUE, ("work",)),
    ("message:work/0f3c-11", Kind.MESSAGE, ("work", "0f3c-11")),
    ("share:docs", Kind.SHARE, ("docs",)),
    ("dir:docs/2026/may", Kind.DIR, ("docs", "2026/may")),
    ("file:docs/2026/a.txt", Kind.FILE, ("docs", "2026/a.txt")),
)
def test_every_kind_of_address_is_read_and_printed_as_it_was(text: str, kind: Kind, parts: tuple[str, ...]) -> None:
    found = parse(text)
    assert (found, str(found.address)) == (Location(Address(kind, parts)), text)


def test_the_prefix_may_be_left_out_where_the_command_knows_the_kind() -> None:
    assert parse("site/config.json", Kind.BLOB) == parse("blob:site/config.json", Kind.BLOB)


@cases("name", "a b", "käse/☃", "100%", "a?b", "a#b", "a+b", "a%20b", "/a", "a//b", "folder/", "a&b=c")
def test_a_plain_address_is_taken_literally(name: str) -> None:
    assert parse(f"site/{name}", Kind.BLOB).address == Address(Kind.BLOB, ("site", name))


@cases(
    ("text", "address"),
    (f"blob:site/a?snapshot={SNAPSHOT}", Address(Kind.BLOB, ("site", "a"), snapshot=SNAPSHOT)),
    (f"blob:site/a?versionid={SNAPSHOT}", Address(Kind.BLOB, ("site", "a"), version=SNAPSHOT)),
    (f"share:docs?snapshot={SNAPSHOT}", Address(Kind.SHARE, ("docs",), snapshot=SNAPSHOT)),
)
def test_snapshots_and_versions_are_part_of_the_address(text: str, address: Address) -> None:
    found = parse(text)
    assert (found.address, str(found.address)) == (address, text)


@cases(
    ("url", "kind", "address", "endpoint", "account", "sas"),
    ("https://acc.blob.core.windows.net/site/a.json", None, "blob:site/a.json",
     "https://acc.blob.core.windows.net", "acc", None),
    ("https://ACC.Blob.core.windows.net:443/site", None, "container:site",
     "https://acc.blob.core.windows.net", "acc", None),
    ("https://acc.blob.core.windows.net/a.json", Kind.BLOB, "blob:$root/a.json",
     "https://acc.blob.core.windows.net", "acc", None),
    ("https://acc.blob.core.windows.net/site/a%20b%23%3F%25%2B+c", None, "blob:site/a b#?%++c",
     "https://acc.blob.core.windows.net", "acc", None),
    ("https://acc.blob.core.windows.net/site/a?sv=2025&sp=r&sig=secret%3D", None, "blob:site/a",
     "https://acc.blob.core.windows.net", "acc", "sv=2025&sp=r&sig=secret%3D"),
    (f"https://acc.blob.core.windows.net/site/a?snapshot={SNAPSHOT}&sv=2025&sig=s", None,
     f"blob:site/a?snapshot={SNAPSHOT}", "https://acc.blob.core.windows.net", "acc", "sv=2025&sig=s"),
    ("http://127.0.0.1:10000/devstoreaccount1/site/a", None, "blob:site/a",
     "http://127.0.0.1:10000/devstoreaccount1", "devstoreaccount1", None),
    ("http://localhost:10001/devstoreaccount1/work", None, "queue:work",
     "http://localhost:10001/devstoreaccount1", "devstoreaccount1", None),
    ("http://azurite:10001/devstoreaccount1/work", None, "queue:work",
     "http://azurite:10001/devstoreaccount1", "devstoreaccount1", None),
    ("http://[::1]:10000/devstoreaccount1/site/a", None, "blob:site/a",
     "http://[::1]:10000/devstoreaccount1", "devstoreaccount1", None),
    ("https://acc.file.core.windows.net/docs/may/a.txt", None, "file:docs/may/a.txt",
     "https://acc.file.core.windows.net", "acc", None),
    ("https://acc.file.core.windows.net/docs/may/", Kind.DIR, "dir:docs/may",
     "https://acc.file.core.windows.net", "acc", None),
    ("https://acc.table.core.windows.net/jobs", None, "table:jobs",
     "https://acc.table.core.windows.net", "acc", None),
    ("https://acc.table.core.windows.net/Tables('jobs')", None, "table:jobs",
     "https://acc.table.core.windows.net", "acc", None),
    ("https://acc.table.core.windows.net/jobs()?sv=1&sig=abc", Kind.TABLE, "table:jobs",
     "https://acc.table.core.windows.net", "acc", "sv=1&sig=abc"),
    ("https://acc.table.core.windows.net/jobs(PartitionKey='a%20b',RowKey='O''Brien')", None,
     "entity:jobs/a b/O'Brien", "https://acc.table.core.windows.net", "acc", None),
    ("http://127.0.0.1:10002/devstoreaccount1/jobs(PartitionKey='%25',RowKey='%C3%BC')", Kind.ENTITY,
     "entity:jobs/%/ü", "http://127.0.0.1:10002/devstoreaccount1", "devstoreaccount1", None),
)  # fmt: skip
def test_a_url_is_split_into_address_endpoint_and_sas(
    url: str, kind: Kind | None, address: str, endpoint: str, account: str, sas: str | None
) -> None:
    found = parse(url, kind)
    assert (str(found.address), found.endpoint, found.account_name, found.sas) == (address, endpoint, account, sas)


def test_the_sas_shows_neither_in_the_address_nor_in_repr() -> None:
    found = parse("https://acc.blob.core.windows.net/site/a?sv=2025&sig=SECRETSECRET")
    assert "SECRET" not in f"{found!r} {found} {found.address} {found.address!r}"


@cases(
    ("text", "kind"),
    ("", Kind.BLOB), ("   ", Kind.BLOB), ("", None),
    ("site", Kind.BLOB), ("site/", Kind.BLOB), ("/a", Kind.BLOB), ("blob:", None), ("blob:site", None),
    ("entity:jobs/2026", None), ("entity:jobs//17", None), ("dir:docs", None),
    ("queue:work", Kind.BLOB), ("https://acc.queue.core.windows.net/work", Kind.BLOB),
    ("container:UPPER", None), ("container:ab", None), ("container:a--b", None), ("container:-ab", None),
    ("container:" + "a" * 64, None), ("share:a_b", None), ("queue:a.b", None),
    ("table:1abc", None), ("table:ab", None), ("table:a-bc", None), ("table:tables", None),
    ("entity:jobs/a#b/c", None), ("entity:jobs/a/b\\c", None), ("entity:jobs/" + "k" * 1025 + "/r", None),
    ("blob:site/" + "n" * 1025, None), ("blob:site/" + "a/" * 255 + "a", None), ("blob:site/a\x01b", None),
    ("blob:site/a\nb", None), ("blob:site/ends.", None), ("blob:site/a/../b", None), ("blob:site/./b", None),
    ("blob:site/a\udcff", None), ("blob:site/a\\b", None),
    ("file:docs/a:b", None), ("file:docs/a//b", None), ("file:docs/../b", None), ("file:docs/" + "a" * 256, None),
    ("blob:site/a?snapshot=", None), ("blob:site/a?snapshot=yesterday", None), ("blob:site/a?versionid=x", None),
    ("ftp://acc.blob.core.windows.net/site/a", None), ("https:///site/a", None), ("https://[::1/site/a", None),
    ("https://acc.blob.core.windows.net:port/site/a", None), ("https://acc.blob.core.windows.net/", None),
    ("https://acc.blob.core.windows.net/site/a#b", None), ("https://acc.blob.core.windows.net/site/%FF", None),
    ("https://acc.blob.core.windows.net/site/a?comp=metadata", None),
    ("https://acc.blob.core.windows.net/site/a?sv=2025&sig=", None),
    ("https://acc.blob.core.windows.net/site/a%3Fsnapshot=2026-11-21T10:00:00Z", None),
    ("https://acc.blob.core.windows.net/site/a%2F..%2Fb", None),
)  # fmt: skip
def test_what_names_nothing_or_something_the_service_forbids_is_a_usage_error(text: str, kind: Kind | None) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text, kind)
    assert caught.value.exit_code == 2


@cases("text", "", "site")
def test_a_refused_address_says_how_to_write_it(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert in_words(caught.value).hint


@cases("kind", None, Kind.BLOB, Kind.SHARE, Kind.TABLE)
@cases(
    ("text", "reason"),
    ("acc.blob.core.windows.net/site/a", "url_without_scheme"),
    ("acc.file.core.windows.net/docs?sig=x", "url_without_scheme"),
    ("https:/acc.blob.core.windows.net/site/a", "url_without_scheme"),
    ("http:acc/site/a", "url_without_scheme"),
    ("Blob:site/a", "address_kind_in_capitals"),
    ("TABLE:jobs", "address_kind_in_capitals"),
    ("lob:site/a", "address_kind_unknown"),
)
def test_what_was_meant_by_an_address_is_told(text: str, reason: str, kind: Kind | None) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text, kind)
    assert caught.value.reason == reason


@given(st.text(min_size=1, max_size=60))
def test_an_address_that_is_accepted_reads_back_as_itself(name: str) -> None:
    try:
        address = parse(f"blob:site/{name}").address
    except UsageError:
        return
    assert astuple(parse(str(address)).address) == astuple(address)


@given(st.text(max_size=200))
def test_no_text_at_all_crashes_the_reader(text: str) -> None:
    for written in (text, f"https://{text}", f"https://acc.blob.core.windows.net/{text}", f"entity:{text}"):
        try:
            parse(written)
        except UsageError:
            pass


OWN = {
    "blob": "http://127.0.0.1:4001/dev", "queue": "http://127.0.0.1:4002/dev", "table": "http://127.0.0.1:4003/dev",
    "file": "http://127.0.0.1:4004/dev",
}  # fmt: skip


@cases(
    ("url", "address"),
    ("http://127.0.0.1:4001/dev/site", "container:site"),
    ("http://localhost:4001/dev/site/a/b.txt", "blob:site/a/b.txt"),
    ("http://127.0.0.1:4003/dev/jobs", "table:jobs"),
    ("http://127.0.0.1:4003/dev/jobs/p/r", "entity:jobs/p/r"),
    ("http://127.0.0.1:4003/dev/jobs(PartitionKey='p',RowKey='r')", "entity:jobs/p/r"),
    ("http://127.0.0.1:4002/dev/work", "queue:work"),
    ("http://127.0.0.1:4002/dev/work/messages", "queue:work"),
    ("http://127.0.0.1:4002/dev/work/messages/0f3c-11", "message:work/0f3c-11"),
    ("http://127.0.0.1:4004/dev/docs", "share:docs"),
    ("http://127.0.0.1:4004/dev/docs/2026/a.txt", "file:docs/2026/a.txt"),
    ("http://127.0.0.1:4004/dev/docs/2026/", "dir:docs/2026"),
    ("http://127.0.0.1:4004/dev/docs/2026?restype=directory", "dir:docs/2026"),
)
def test_the_account_in_use_tells_the_service_of_a_url_whose_host_does_not(url: str, address: str) -> None:
    found = parse(url, None, lambda: OWN)
    assert (str(found.address), found.account_name, found.sas) == (address, "dev", None)
    assert found.endpoint == OWN[found.address.kind.service]


def test_the_host_name_tells_before_the_account_in_use() -> None:
    found = parse("https://acc.table.core.windows.net/jobs/p/r", None, lambda: pytest.fail("asked for nothing"))
    assert str(found.address) == "entity:jobs/p/r"


def test_an_endpoint_may_be_a_name_with_the_account_in_its_path_or_a_name_of_its_own() -> None:
    named = {"blob": "http://azurite:10000/dev", "table": "https://tables.example.com"}
    assert str(parse("http://azurite:10000/dev/site/a", None, lambda: named).address) == "blob:site/a"
    assert str(parse("https://tables.example.com/jobs/p/r", None, lambda: named).address) == "entity:jobs/p/r"


def test_of_two_services_at_one_endpoint_the_url_is_of_the_one_the_command_takes() -> None:
    shared = dict.fromkeys(("blob", "table"), "http://127.0.0.1:4001/dev")
    url = "http://127.0.0.1:4001/dev/jobs/p/r"
    assert str(parse(url, Kind.ENTITY, lambda: shared).address) == "entity:jobs/p/r"


@cases(("port", "kind"), (10000, "blob"), (10001, "queue"), (10002, "table"), (10004, "share"))
def test_the_well_known_ports_tell_at_last(port: int, kind: str) -> None:
    found = parse(f"http://127.0.0.1:{port}/dev/jobs" + ("/a" if kind == "blob" else ""), None, lambda: OWN)
    assert found.address.kind == kind


def test_a_url_of_another_service_than_the_command_takes_is_refused_on_any_port() -> None:
    with pytest.raises(UsageError, match="of the table service, and this command takes a blob"):
        parse("http://127.0.0.1:4003/dev/jobs/p", Kind.BLOB, lambda: OWN)


def test_a_plain_address_with_a_slash_is_a_blob_where_any_kind_is_taken() -> None:
    assert str(parse("site/config.json").address) == "blob:site/config.json"


SAS = "sv=2025-11-05&ss=b&sp=r&sig=c2VjcmV0c2VjcmV0%3D"


@cases("address", "blob:site/a", "site/a", "container:site", "entity:jobs/p/r", "share:docs")
@cases("sas", SAS, "sig=c2VjcmV0", "se=2026&SIG=x&sv=1", "sv=2025-11-05")
def test_a_sas_behind_a_plain_address_is_refused_and_not_shown(address: str, sas: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(f"{address}?{sas}")
    assert (sas in caught.value.message, address in caught.value.message) == (False, True)


@cases("text", "blob:site/\udcff", "jobs/p/\udce4", "https://acc.blob.core.windows.net/site/\udcff")
def test_a_name_that_is_not_utf8_is_called_that(text: str) -> None:
    with pytest.raises(UsageError, match=r"is not UTF-8: .*\\x(ff|e4)"):
        parse(text)


@cases(
    ("one", "other", "alike"),
    ("table:Orders", "table:orders", True),
    ("entity:Orders/eu/1", "entity:oRDERS/eu/1", True),
    ("entity:Orders/eu/1", "entity:Orders/EU/1", False),
    ("file:share/Logs/a.txt", "file:share/logs/A.TXT", True),
    ("dir:share/Stra\u00dfe", "dir:share/strasse", False),
    ("blob:site/Config.json", "blob:site/config.json", False),
)
def test_names_that_differ_in_case_are_one_where_the_service_ignores_it(one: str, other: str, alike: bool) -> None:
    assert (parse(one).address.folded == parse(other).address.folded) is alike
