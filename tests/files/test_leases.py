"""Leases on shares and files: the commands are those of blobs; a file has no term, and a record says who holds it."""

import uuid

import pytest

from tests.support import files_world
from tests.support.cli_world import CliWorld
from tests.support.faultproxy.faults import Fault


@pytest.fixture
def file(files_cli: CliWorld) -> str:
    return files_world.make(files_cli)


@pytest.mark.parametrize(("kind", "term"), [("share", ["--lease-duration", "15s"]), ("file", ["--infinite"])])
def test_a_lease_is_acquired_shown_and_released(files_cli: CliWorld, file: str, kind: str, term: list[str]) -> None:
    address = f"{kind}:{file if kind == 'file' else file.partition('/')[0]}"
    taken = files_cli.call("lease", "acquire", address, *term, "--reason", "repair").json
    shown = files_cli.call("lease", "show", address).json
    held = files_cli.call("lease", "list", "--mine").json
    other = files_cli.call("lease", "acquire", address, *term, "-o", "json", scope="other")
    changed = files_cli.call("lease", "change", address).json
    released = files_cli.call("lease", "release", address)
    after = files_cli.call("lease", "show", address).json
    assert (shown["state"], shown["owner"]["reason"], shown["clock"]) == ("held", "repair", "service")
    assert [(each["address"], each["lease_id"]) for each in held] == [(address, taken["lease_id"])]
    assert (other.code, other.error["service_code"]) == (49, "LeaseAlreadyPresent")
    assert changed["lease_id"] != taken["lease_id"]
    assert (released.code, after["state"], after["last_owner"]) == (0, "free", None)
    assert files_cli.call("lease", "list", "--mine").json == []


def test_a_snapshot_of_a_share_has_a_lease_of_its_own(files_cli: CliWorld, file: str) -> None:
    share = file.partition("/")[0]
    snapshot = f"share:{share}?snapshot={files_cli.call('share', 'snapshot', share).json['snapshot']}"
    noted = files_cli.call("lease", "acquire", snapshot, "--infinite", "--reason", "kept", "-o", "json")
    files_cli.call("lease", "acquire", snapshot, "--infinite")
    states = [files_cli.call("lease", "show", each).json["state"] for each in (snapshot, f"share:{share}")]
    whole = ("share", "delete", share, "--last-writer-wins", "--with-contents", "--delete-snapshots", "include")
    refused = files_cli.call(*whole, "-o", "json")
    released = files_cli.call("lease", "release", snapshot)
    assert (noted.code, states, refused.code) == (2, ["held", "free"], 49), noted.err + refused.err
    assert (refused.error["service_code"], released.code) == ("DeleteShareWhenSnapshotLeased", 0)
    assert files_cli.call("lease", "acquire", f"file:{file}?snapshot={snapshot[-28:]}", "--infinite").code == 2


def test_only_the_lease_of_a_share_has_a_term_to_renew(files_cli: CliWorld, file: str) -> None:
    share = f"share:{file.partition('/')[0]}"
    files_cli.call("lease", "acquire", share, "--lease-duration", "15s")
    files_cli.call("lease", "acquire", f"file:{file}", "--infinite")
    assert files_cli.call("lease", "renew", share).json["duration"] == 15
    refused = [
        files_cli.call("lease", *words, "-o", "json")
        for words in (
            ("renew", f"file:{file}"),
            ("acquire", f"file:{file}", "--lease-duration", "15s"),
            ("acquire", f"file:{file}"),
            ("break", f"file:{file}", "--yes", "--lease-break-period", "10"),
            ("acquire", f"dir:{share[6:]}/d"),
        )
    ]
    assert [(ran.code, bool(ran.error["hint"])) for ran in refused] == [(2, True)] * 5
    assert "--infinite" in refused[1].error["hint"]


def test_a_write_without_ones_own_lease_id_says_how_to_give_it(files_cli: CliWorld, file: str) -> None:
    address, other = f"file:{file}", str(uuid.uuid4())
    files_cli.call("lease", "acquire", address, "--infinite")
    etag = files_cli.call("file", "show", file).json["etag"]
    hints = [
        files_cli.call(*words, "-o", "json").error["hint"]
        for words in (
            ("file", "delete", file, "--etag", etag),
            ("file", "delete", file, "--etag", etag, "--lease-id", other),
            ("lease", "acquire", address, "--infinite"),
        )
    ]
    again = f"that lease is your own: azguard file delete {file} --etag '{etag}' -o json --lease-id @held"
    assert hints == [again, again, f"release it first: azguard lease release {address}"]


def test_an_operator_breaks_the_lease_of_a_file_by_its_record(files_cli: CliWorld, file: str) -> None:
    files_cli.call("lease", "acquire", f"file:{file}", "--infinite", "--reason", "repair")
    early = files_cli.call("lease", "break", f"file:{file}", "--if-older-than", "1h", "-o", "json", scope="operator")
    who = files_cli.call("lease", "show", f"file:{file}").json["held_by"]
    done = files_cli.call("lease", "break", f"file:{file}", "--if-owner", who, scope="operator")
    assert (early.code, early.error["kind"]) == (42, "changed")
    assert (done.code, done.json["broken"]["owner"]["reason"]) == (0, "repair")
    assert files_cli.call("lease", "list", "--mine").json == []


def test_the_leased_shares_of_an_account_are_listed(files_cli: CliWorld, file: str) -> None:
    share = file.partition("/")[0]
    files_cli.call("lease", "acquire", f"share:{share}", "--lease-duration", "15s", "--reason", "repair")
    for noun in ("lease", "lock"):
        ran = files_cli.call(noun, "list", "--account", "--prefix", share, "--query", "[].[address, state, reason]")
        assert ran.json == [[f"share:{share}", "held", "repair"]]
        assert "does not list the leases on files" in ran.err
    assert files_cli.call("lease", "list", "--account", "--prefix", f"{share}/").json == []


@pytest.mark.parametrize("fault", files_world.FAULTS)
@pytest.mark.parametrize("kind", ["share", "file"])
def test_each_operation_is_settled_after_a_loss(files_cli: CliWorld, file: str, kind: str, fault: Fault) -> None:
    address = f"{kind}:{file if kind == 'file' else file.partition('/')[0]}"
    first, second = str(uuid.uuid4()), str(uuid.uuid4())
    term = ["--infinite"] if kind == "file" else ["--lease-duration", "60s"]

    def spoil(*words: str) -> str:
        ran, log = files_world.spoilt(files_cli, fault, "lease", *words, which="comp=lease")
        assert (ran.code, bool(log)) == (0, True), ran.err
        return str(files_cli.call("lease", "show", address).json["state"])

    states = [
        spoil("acquire", address, *term, "--proposed-lease-id", first),
        spoil("change", address, "--lease-id", first, "--proposed-lease-id", second),
        *([spoil("renew", address, "--lease-id", second)] if kind == "share" else []),
        spoil("release", address, "--lease-id", second),
    ]
    assert states == ["held"] * (len(states) - 1) + ["free"]
    files_cli.call("lease", "acquire", address, *term)
    assert spoil("break", address, "--yes", *(["--lease-break-period", "0"] if kind == "share" else [])) == "free"
