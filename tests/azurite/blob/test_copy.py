"""``azguard blob copy`` and ``blob restore`` against Azurite.

Azurite ends every copy at once, answers a failed condition of either side with one code, and takes a finite lease on
the destination. What the live service does otherwise is in ``test_copy_status``.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from azure.storage.blob import BlobSasPermissions, generate_blob_sas

from azguard.accounts.endpoints import EMULATOR_KEY, EMULATOR_NAME
from azguard.requests.lineage import KEY, Lineage
from tests.faults.rules import operation
from tests.support.blob_world import client as sdk
from tests.support.cli_world import CliWorld, Ran
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Fault, ProxiedAnswer, Request

PAST, FUTURE = "2001-01-01", "2101-01-01"
OTHER = "0x8DC1234567890AB"
LEASE = "0f3c1111-2222-3333-4444-555566667777"


@pytest.fixture
def site(cli: CliWorld) -> str:
    """Return a container with a source that this scope has never read."""
    name = cli.container()
    facts = ("--metadata", "owner=me", "--tags", "env=dev")
    headers = ("--content-type", "text/x-source", "--content-cache", "no-store")
    assert cli.call("blob", "put", f"{name}/source", *facts, *headers, stdin=b"new", scope="setup").code == 0
    return name


def copy(cli: CliWorld, site: str, *words: str, scope: str = "test") -> Ran:
    return cli.call("blob", "copy", f"{site}/copy", "--source", f"{site}/source", *words, "-o", "json", scope=scope)


def source_etag(cli: CliWorld, site: str) -> str:
    return str(cli.call("blob", "show", f"{site}/source").json["etag"])


def lineage(cli: CliWorld, blob: str) -> Lineage:
    return Lineage.parse(sdk(cli, blob).get_blob_properties().metadata.get(KEY))


def sent(log: list[ProxiedAnswer]) -> list[dict[str, str]]:
    """Return the conditions of each copy in a log."""
    return [
        {
            name: value
            for name, value in each.request.headers.items()
            if name.startswith(("if-", "x-ms-source", "x-ms-if"))
        }
        for each in log
        if operation(each.request) == "PUT copy"
    ]


def test_a_copy_has_the_content_headers_and_metadata_of_its_source_and_not_its_tags(cli: CliWorld, site: str) -> None:
    assert copy(cli, site).code == 0
    shown = cli.call("blob", "show", f"{site}/copy").json
    wanted = {
        "content_type": "text/x-source",
        "cache_control": "no-store",
        "metadata": {"owner": "me"},
        "content_length": 3,
        "tag_count": None,
    }
    assert {name: shown[name] for name in wanted} == wanted


def test_metadata_and_tags_that_are_given_are_those_of_the_copy(cli: CliWorld, site: str) -> None:
    assert copy(cli, site, "--metadata", "a=b", "--tags", "c=d", "--tier", "cool").code == 0
    found = sdk(cli, f"{site}/copy").get_blob_properties()
    assert ({k: v for k, v in found.metadata.items() if k != KEY}, found.blob_tier) == ({"a": "b"}, "Cool")
    assert sdk(cli, f"{site}/copy").get_blob_tags() == {"c": "d"}


def test_the_history_of_the_source_is_not_that_of_the_copy(cli: CliWorld, site: str) -> None:
    cli.call("blob", "put", f"{site}/copy", stdin=b"old")
    mine, theirs = lineage(cli, f"{site}/copy"), lineage(cli, f"{site}/source")
    assert copy(cli, site).code == 0
    found = lineage(cli, f"{site}/copy")
    assert (found.entries[1:], [op for op, _ in theirs.entries if op in found]) == (mine.entries, [])


@pytest.mark.parametrize("metadata", [(), ("--metadata", "owner=me")])
def test_without_a_lineage_a_copy_has_none_of_its_source(cli: CliWorld, site: str, metadata: tuple[str, ...]) -> None:
    cli.call("blob", "put", f"{site}/source", *metadata, "--last-writer-wins", stdin=b"new", scope="setup")
    assert copy(cli, site, "--no-lineage").code == 0
    assert lineage(cli, f"{site}/copy").entries == ()
    assert cli.call("blob", "show", f"{site}/copy").json["metadata"] == ({"owner": "me"} if metadata else {})


def test_a_copy_creates_then_replaces_its_own_version_and_nothing_of_another_writer(cli: CliWorld, site: str) -> None:
    first, second = copy(cli, site).json, copy(cli, site).json
    assert ([first["guard"], second["guard"]], second["outcome"]) == (["if-none-match", "if-match"], "committed")
    sdk(cli, f"{site}/copy").upload_blob(b"theirs", overwrite=True)
    refused = copy(cli, site)
    assert (refused.code, refused.error["expected_etag"], refused.error["side"]) == (42, second["etag"], "destination")
    assert cli.call("blob", "get", f"{site}/copy").out == "theirs"


def test_what_was_never_read_here_is_not_replaced(cli: CliWorld, site: str) -> None:
    cli.call("blob", "put", f"{site}/copy", stdin=b"theirs", scope="setup")
    assert (copy(cli, site).code, copy(cli, site, "--if-exists", "skip").json["outcome"]) == (45, "exists")
    assert copy(cli, site, "--last-writer-wins").json["guard"] == "none"


def test_what_a_copy_wrote_guards_the_next_put(cli: CliWorld, site: str) -> None:
    etag = copy(cli, site).json["etag"]
    assert cli.call("blob", "put", f"{site}/copy", stdin=b"mine").json["guard"] == "if-match"
    assert lineage(cli, f"{site}/copy").entries[0][1] == etag.strip('"')


@pytest.mark.parametrize("condition", ["match", "none-match", "modified-since", "unmodified-since"])
def test_the_copy_names_the_version_for_which_the_condition_held(cli: CliWorld, site: str, condition: str) -> None:
    etag = source_etag(cli, site)
    value = {"match": etag, "none-match": OTHER, "modified-since": PAST, "unmodified-since": FUTURE}[condition]
    with proxy.running(cli.port, lambda _: Fault.NONE) as running:
        assert copy(cli.through(running.port), site, f"--source-if-{condition}", value).code == 0
    assert sent(running.log) == [{"if-none-match": "*", "x-ms-source-if-match": etag}]


def test_a_copy_under_a_fence_is_refused_once_a_later_holder_has_written(cli: CliWorld, site: str) -> None:
    assert copy(cli, site, "--fence", "7").json["guard"] == "fence"
    cli.call("blob", "put", f"{site}/copy", "--fence", "9", stdin=b"theirs", scope="other")
    assert (copy(cli, site, "--fence", "8").code, copy(cli, site, "--fence", "9").code) == (77, 0)


def test_a_missing_source_is_missing_under_a_fence_too(cli: CliWorld, site: str) -> None:
    """Its version is not read before, because the condition on its tags stands in its place."""
    words = ("--source", f"{site}/none", "--source-if-tags", "\"a\"='1'", "--metadata", "b=1", "--fence", "7")
    ran = cli.call("blob", "copy", f"{site}/copy", *words, "-o", "json")
    assert (ran.code, ran.error["side"]) == (44, "source")


def overwriting(cli: CliWorld, site: str, times: int) -> Callable[[Request], Fault]:
    """Return a proxy's rule that overwrites the source just before a copy of it arrives, so many times."""
    left = [times]

    def decide(request: Request) -> Fault:
        if operation(request) == "PUT copy" and left[0]:
            left[0] -= 1
            sdk(cli, f"{site}/source").upload_blob(b"newer", overwrite=True, metadata={"n": str(left[0])})
        return Fault.NONE

    return decide


def test_a_source_that_changes_before_it_is_copied_is_read_again_with_its_metadata(cli: CliWorld, site: str) -> None:
    with proxy.running(cli.port, overwriting(cli, site, 2)) as running:
        ran = copy(cli.through(running.port), site)
    assert (ran.code, ran.json["conflicts"]) == (0, 2)
    assert cli.call("blob", "get", f"{site}/copy").out == "newer"
    assert cli.call("blob", "show", f"{site}/copy").json["metadata"] == {"n": "0"}


def test_a_version_of_the_source_that_was_named_is_copied_or_nothing(cli: CliWorld, site: str) -> None:
    etag = source_etag(cli, site)
    with proxy.running(cli.port, overwriting(cli, site, 1)) as running:
        ran = copy(cli.through(running.port), site, "--source-if-match", etag)
    assert (ran.code, ran.error["side"], len(sent(running.log))) == (42, "source", 1)
    assert cli.call("blob", "exists", f"{site}/copy").code == 44


def test_a_missing_source_is_told_as_such(cli: CliWorld, site: str) -> None:
    ran = cli.call("blob", "copy", f"{site}/copy", "--source", f"{site}/nosuch", "-o", "json")
    assert (ran.code, ran.error["side"], ran.error["address"]) == (44, "source", f"blob:{site}/nosuch")


def sas(cli: CliWorld, site: str, permission: str = "r") -> str:
    return generate_blob_sas(
        EMULATOR_NAME,
        site,
        "source",
        account_key=EMULATOR_KEY,
        permission=BlobSasPermissions.from_string(permission),
        expiry=datetime.now(UTC) + timedelta(hours=1),
    )


@pytest.mark.parametrize("how", ["url", "option", "file"])
def test_a_sas_reads_the_source_and_stands_nowhere(cli: CliWorld, site: str, how: str) -> None:
    token, url = sas(cli, site), f"http://127.0.0.1:{cli.port}/{EMULATOR_NAME}/{site}/source"
    cli.file("sas", token)
    words = {
        "url": ("--source-uri", f"{url}?{token}"),
        "option": ("--source", url, "--source-sas", token),
        "file": ("--source", f"{site}/source", "--source-sas", "@sas"),
    }[how]
    ran = cli.call("blob", "copy", f"{site}/copy", *words, "-v", "-o", "json")
    assert (ran.code, ran.json["source"]) == (0, f"blob:{site}/source")
    signature = token.partition("sig=")[2].partition("&")[0]
    told = (ran.out, ran.err, cli.call("cache", "list", "-o", "json").out, cli.call("blob", "show", f"{site}/copy").out)
    assert [signature in each for each in told] == [False] * len(told)


def test_a_url_of_the_account_in_use_needs_no_sas(cli: CliWorld, site: str) -> None:
    url = f"http://localhost:{cli.port}/{EMULATOR_NAME}/{site}/source"
    assert cli.call("blob", "copy", f"{site}/copy", "--source", url).code == 0


def test_a_sas_that_does_not_allow_to_read_is_told_with_the_side(cli: CliWorld, site: str) -> None:
    ran = copy(cli, site, "--source-sas", sas(cli, site, "w"))
    assert (ran.code, ran.error["side"], "--source-sas" in ran.error["hint"]) == (43, "source", True)


def test_the_source_is_the_first_of_two_words_as_with_cp(cli: CliWorld, site: str) -> None:
    assert cli.call("blob", "put", f"{site}/from", stdin=b"1").code == 0
    copied = cli.call("blob", "copy", f"{site}/from", f"{site}/to", "--no-wait").json
    assert (copied["address"], copied["content_length"]) == (f"blob:{site}/to", 1)
    ran = cli.call("blob", "copy", f"{site}/from", f"{site}/to", "--source", f"{site}/a", "-o", "json")
    assert (ran.code, ran.error["hint"]) == (2, "leave --source out")
    ran = cli.call("blob", "copy", f"{site}/from", "-o", "json")
    assert (ran.code, ran.error["hint"]) == (2, "type the source first, then the destination")


def test_a_restore_puts_back_content_metadata_and_tags_over_the_version_read(cli: CliWorld, site: str) -> None:
    cli.call("blob", "get", f"{site}/source", "-f", "copy.txt")
    kept = cli.call("blob", "snapshot", f"{site}/source").json
    cli.call("blob", "put", f"{site}/source", stdin=b"broken")
    ran = cli.call("blob", "restore", f"{site}/source", "--from", kept["snapshot_address"])
    assert (ran.code, ran.json["guard"], ran.json["source"]) == (0, "if-match", kept["snapshot_address"])
    assert cli.call("blob", "get", f"{site}/source").out == "new"
    found = sdk(cli, f"{site}/source")
    assert (found.get_blob_properties().metadata["owner"], found.get_blob_tags()) == ("me", {"env": "dev"})


@pytest.mark.parametrize("form", ["snapshot", "snapshot={0}", "?snapshot={0}", "{0}"])
def test_a_snapshot_is_named_in_several_forms(cli: CliWorld, site: str, form: str) -> None:
    kept = cli.call("blob", "snapshot", f"{site}/source").json["snapshot"]
    ran = cli.call("blob", "restore", f"{site}/source", "--from", form.format(kept), "--last-writer-wins")
    assert (ran.code, ran.json["source"]) == (0, f"blob:{site}/source?snapshot={kept}")


def test_of_several_snapshots_the_newest_is_restored(cli: CliWorld, site: str) -> None:
    cli.call("blob", "get", f"{site}/source", "-f", "copy.txt")
    for number in range(3):
        cli.call("blob", "put", f"{site}/source", stdin=b"%d" % number)
        newest = cli.call("blob", "snapshot", f"{site}/source").json["snapshot"]
    cli.call("blob", "put", f"{site}/source-b", stdin=b"its name begins with that of the other")
    ran = cli.call("blob", "restore", f"{site}/source", "--from", "snapshot")
    assert (ran.json["source"], cli.call("blob", "get", f"{site}/source").out) == (
        f"blob:{site}/source?snapshot={newest}",
        "2",
    )


def test_a_restore_of_what_another_has_written_since_is_refused(cli: CliWorld, site: str) -> None:
    cli.call("blob", "get", f"{site}/source", "-f", "copy.txt")
    cli.call("blob", "snapshot", f"{site}/source")
    sdk(cli, f"{site}/source").upload_blob(b"theirs", overwrite=True)
    assert cli.call("blob", "restore", f"{site}/source", "--from", "snapshot").code == 42
    assert cli.call("blob", "restore", f"{site}/source", "--from", "snapshot", scope="new").code == 45
    assert cli.call("blob", "get", f"{site}/source").out == "theirs"


def test_without_a_snapshot_there_is_nothing_to_restore(cli: CliWorld, site: str) -> None:
    assert cli.call("blob", "restore", f"{site}/source", "--from", "snapshot").code == 44


def test_a_restore_from_an_id_that_is_not_kept_finds_nothing(cli: CliWorld, site: str) -> None:
    ran = cli.call("blob", "restore", f"{site}/source", "--from", "2026-11-21T10:00:00.0000000Z", "-o", "json")
    assert (ran.code, "has the id 2026-11-21T10:00:00.0000000Z" in ran.err, ran.error["hint"] != "") == (44, True, True)


def test_a_dry_run_of_a_restore_shows_what_would_change_and_writes_nothing(cli: CliWorld, site: str) -> None:
    cli.call("blob", "get", f"{site}/source", "-f", "copy.txt")
    kept = cli.call("blob", "snapshot", f"{site}/source").json["snapshot"]
    restore = ("blob", "restore", f"{site}/source", "--from", kept, "--dry-run")
    assert (cli.call(*restore).out, cli.call(*restore, "-o", "json").json["outcome"]) == ("", "unchanged")
    cli.call("blob", "put", f"{site}/source", "--metadata", "owner=you", stdin=b"broken")
    ran = cli.call(*restore)
    lines = ran.out.splitlines()
    assert (ran.code, ran.err) == (0, "")
    assert {"-broken", "+new", '-    "owner": "you"', '+    "owner": "me"', '+    "env": "dev"'} <= set(lines), ran.out
    assert cli.call("blob", "get", f"{site}/source").out == "broken"


@pytest.mark.parametrize(
    ("scope", "change", "why"),
    [
        ("new", (), "it exists, and was never read here"),
        ("test", ("blob", "put", "--last-writer-wins"), "it changed since it was read here"),
        ("test", ("lease", "acquire"), "it is leased, and no lease id was given"),
        ("test", (), None),
    ],
)
def test_a_dry_run_of_a_restore_says_if_it_would_be_refused(
    cli: CliWorld, site: str, scope: str, change: tuple[str, ...], why: str | None
) -> None:
    cli.call("blob", "get", f"{site}/source", "-f", "copy.txt")
    kept = cli.call("blob", "snapshot", f"{site}/source").json["snapshot"]
    cli.call("blob", "put", f"{site}/source", "-f", "copy.txt", "--metadata", "owner=you")
    if change:
        cli.call(*change[:2], f"{site}/source", *change[2:], stdin=b"theirs", scope="other")
    ran = cli.call("blob", "restore", f"{site}/source", "--from", kept, "--dry-run", "-o", "json", scope=scope)
    assert (ran.code, ran.json["reason"], ran.json["outcome"]) == (0, why, "would refuse" if why else "dry_run")
    assert (why or "") in ran.err
