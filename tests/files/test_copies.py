"""Copies by the service: never seen in part, under the guard of the destination, of one version of the source."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.storage.fileshare import AccountSasPermissions, ResourceTypes, generate_account_sas
from jsonschema import Draft202012Validator

from azguard.accounts.endpoints import EMULATOR_KEY, EMULATOR_NAME
from tests.files.test_content import content_of, leftovers
from tests.files.test_output import SCHEMAS
from tests.support import files_world
from tests.support.cli_world import CliWorld
from tests.support.emulator_world import until
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Chosen, Fault, Request

ANYHOW = "--last-writer-wins"
CONTENT = b"what is copied"


@dataclass
class Elsewhere:
    """A source in another account: the emulator behind another port, whose content comes when the test says so."""

    url: str = ""
    fault: Fault = Fault.NONE
    is_open: bool = False
    asked: list[Request] = field(default_factory=list)

    def decide(self, request: Request) -> Chosen:
        if request.method != "GET":
            return Chosen()
        self.asked.append(request)
        return Chosen(self.fault, until=lambda: self.is_open)


@pytest.fixture
def source(files_cli: CliWorld) -> str:
    return files_world.make(files_cli, CONTENT, metadata={"kind": "plan"})


@pytest.fixture
def elsewhere(files_cli: CliWorld, source: str) -> Iterator[Elsewhere]:
    found = Elsewhere()
    sas = generate_account_sas(
        EMULATOR_NAME,
        EMULATOR_KEY,
        ResourceTypes(object=True),
        AccountSasPermissions(read=True),
        datetime.now(UTC) + timedelta(hours=1),
    )
    with proxy.running(files_world.port(files_cli), found.decide) as between:
        found.url = f"http://127.0.0.1:{between.port}/{EMULATOR_NAME}/{source}?{sas}"
        yield found
        found.is_open = True


@contextmanager
def watched(cli: CliWorld, which: str, act: Callable[[], None], *, count: int = 1) -> Iterator[CliWorld]:
    """Put a proxy before the emulator that acts before the ``count``-th request with ``which`` in method and target."""
    met: list[Request] = []

    def decide(request: Request) -> Fault:
        if which in f"{request.method} {request.path}":
            met.append(request)
            if len(met) == count:
                act()
        return Fault.NONE

    with proxy.running(files_world.port(cli), decide) as between:
        yield files_world.through(cli, between.port)


def of_temporary(file: str) -> str:
    """Return how the request for the properties of a temporary file beside a file begins."""
    return f"HEAD /{EMULATOR_NAME}/{file.partition('/')[0]}/.azguard-"


def share_of(cli: CliWorld, file: str) -> list[str]:
    """Return the names of all that is beside a file."""
    return files_world.names(cli, file.partition("/")[0])


def show(cli: CliWorld, file: str) -> Any:
    return cli.call("file", "show", file).json


def test_a_copy_creates_or_replaces_the_version_that_was_read(files_cli: CliWorld, source: str) -> None:
    new = f"{source}-2"
    made = files_cli.call("file", "copy", new, "--source", source).json
    assert (made["guard"], made["created"], made["content_length"]) == ("if-none-match", True, len(CONTENT))
    shown = show(files_cli, new)
    assert (content_of(files_cli, new), shown["metadata"], shown["etag"]) == (CONTENT, {"kind": "plan"}, made["etag"])

    files_world.client(files_cli, source).upload_file(b"newer")
    again = files_cli.call("file", "copy", new, "--source", source, "--metadata", "a=b").json
    assert (again["guard"], again["created"], show(files_cli, new)["metadata"]) == ("lease", False, {"a": "b"})
    assert show(files_cli, new)["lease_state"] == "available"

    files_world.client(files_cli, new).upload_file(b"theirs")
    refused = [
        files_cli.call("file", "copy", new, "--source", source, "-o", "json", scope=scope) for scope in ("test", "new")
    ]
    assert [each.code for each in refused] == [42, 45]
    skipped = files_cli.call("file", "copy", new, "--source", source, "--if-exists", "skip").json
    assert (skipped["outcome"], content_of(files_cli, new), leftovers(files_cli, new)) == ("exists", b"theirs", [])
    assert files_cli.call("file", "copy", new, "--source", source, ANYHOW).json["guard"] == "none"
    assert (content_of(files_cli, new), files_cli.call("lease", "list", "--mine").json) == (b"newer", [])


def test_a_copy_has_the_properties_that_were_asked_for(files_cli: CliWorld, source: str) -> None:
    new, old = f"{source}-2", f"{source}-3"
    files_cli.call(
        "file", "properties", "set", source, "--attributes", "Hidden|ReadOnly", "--created", "2026-01-31", ANYHOW
    )
    files_cli.call("file", "properties", "set", source, "--content-type", "a/b", "--written", "2026-02-01", ANYHOW)
    files_world.client(files_cli, old).upload_file(b"old", file_attributes="System")

    def properties(*words: str, file: str = new) -> list[str]:
        copied = files_cli.call("file", "copy", file, "--source", source, ANYHOW, *words)
        assert copied.code == 0, copied.err
        shown = show(files_cli, file)
        return [shown["content_type"], shown["attributes"], shown["created"][:10], shown["written"][:10]]

    today = f"{datetime.now(UTC):%Y-%m-%d}"
    assert properties() == ["a/b", "Archive", today, today]
    assert properties(file=old) == ["a/b", "System | Archive", today, today]
    assert properties("--preserve-info", "--attributes", "Hidden") == ["a/b", "Hidden", "2026-01-31", "2026-02-01"]
    kept = ["a/b", "ReadOnly | Hidden", "2026-01-31", "2026-02-01"]
    assert properties("--preserve-info", "--preserve-permissions", file=old) == kept
    assert show(files_cli, old)["permission_key"] == show(files_cli, source)["permission_key"]


def test_a_file_comes_back_from_a_snapshot_of_its_share(files_cli: CliWorld, source: str) -> None:
    snapshot = files_cli.call("share", "snapshot", source.partition("/")[0]).json["snapshot"]
    files_world.client(files_cli, source).upload_file(b"spoilt")
    files_cli.call("file", "get", source)
    back = files_cli.call("file", "copy", source, "--source", f"{source}?snapshot={snapshot}").json
    assert (back["guard"], back["source"], content_of(files_cli, source)) == (
        "lease",
        f"file:{source}?snapshot={snapshot}",
        CONTENT,
    )


def test_a_copy_under_ones_own_lease_leaves_the_new_version_leased(files_cli: CliWorld, source: str) -> None:
    new = files_world.make(files_cli)
    files_cli.call("lease", "acquire", f"file:{new}", "--infinite")
    refused = files_cli.call("file", "copy", new, "--source", source, ANYHOW)
    copied = files_cli.call("file", "copy", new, "--source", source, ANYHOW, "--lease-id", "@held")
    assert (refused.code, copied.code, show(files_cli, new)["lease_state"]) == (49, 0, "leased")
    assert (content_of(files_cli, new), leftovers(files_cli, new)) == (CONTENT, [])


def test_no_pending_copy_is_seen_at_its_destination(files_cli: CliWorld, source: str, elsewhere: Elsewhere) -> None:
    new, seen = f"{source}-2", list[str]()

    def look() -> None:
        seen.extend(share_of(files_cli, source))
        elsewhere.is_open = True

    # The service is asked for the second time how far it is.
    with watched(files_cli, of_temporary(source), look, count=2) as world:
        copied = world.call("file", "copy", new, "--source", elsewhere.url)
    assert (copied.code, content_of(files_cli, new), leftovers(files_cli, new)) == (0, CONTENT, [])
    assert [each[:9] for each in seen] == [".azguard-", "plan.txt"]
    assert copied.json["source"] == elsewhere.url.partition("?")[0]
    assert "sig=" not in copied.out + copied.err


def test_a_copy_that_takes_too_long_is_stopped(files_cli: CliWorld, source: str, elsewhere: Elsewhere) -> None:
    ran = files_cli.call("file", "copy", f"{source}-2", "--source", elsewhere.url, "--wait", "1s", "-o", "json")
    assert (ran.code, ran.error["copy_progress"], share_of(files_cli, source)) == (
        75,
        f"0/{len(CONTENT)}",
        ["plan.txt"],
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_a_copy(files_cli: CliWorld, source: str, elsewhere: Elsewhere, number: signal.Signals) -> None:
    process = files_cli.begin_fork("file", "copy", f"{source}-2", "--source", elsewhere.url)
    until(lambda: elsewhere.asked)
    process.send_signal(number)
    process.communicate()
    assert (process.returncode, leftovers(files_cli, source)) == (128 + number, [])


def test_what_a_killed_copy_leaves_can_be_stopped(files_cli: CliWorld, source: str, elsewhere: Elsewhere) -> None:
    with files_world.killing(files_cli) as killer:
        killer.kill(of_temporary(source), "file", "copy", f"{source}-2", "--source", elsewhere.url)
    left = f"{source.partition('/')[0]}/{leftovers(files_cli, source)[0]}"
    busy = files_cli.call("file", "delete", left, ANYHOW)
    other = files_cli.call("file", "abort-copy", left, "--copy-id", "another", "-o", "json")
    ended = [files_cli.call("file", "abort-copy", left).json for _ in range(2)]
    for each in ended:
        Draft202012Validator({"$defs": SCHEMAS["$defs"], "$ref": "#/$defs/blob abort-copy"}).validate(each)
    assert f"azguard file abort-copy {left}" in busy.err
    assert (busy.code, other.code, [each["outcome"] for each in ended]) == (49, 42, ["committed", "unchanged"])
    assert (files_cli.call("file", "delete", left, ANYHOW).code, leftovers(files_cli, source)) == (0, [])


def test_a_copy_of_another_is_stopped_under_its_lease(files_cli: CliWorld, source: str, elsewhere: Elsewhere) -> None:
    theirs = files_world.client(files_cli, f"{source}-2")
    theirs.start_copy_from_url(elsewhere.url)
    lease = theirs.acquire_lease().id
    refused = [
        files_cli.call("file", "abort-copy", f"{source}-2", *words).code
        for words in ((), ("--lease-id", "0e6e2a5b-3f0d-4a53-9f6e-2f1d8a7c6b02"))
    ]
    stopped = files_cli.call("file", "abort-copy", f"{source}-2", "--lease-id", lease).json
    assert (refused, stopped["guard"], stopped["outcome"]) == ([49, 49], "lease", "committed")
    assert content_of(files_cli, f"{source}-2") == b""


def test_what_a_killed_copy_left_is_stopped_and_deleted(files_cli: CliWorld, source: str, elsewhere: Elsewhere) -> None:
    with files_world.killing(files_cli) as killer:
        killer.kill(of_temporary(source), "file", "copy", f"{source}-2", "--source", elsewhere.url)
    pruned = files_cli.call("file", "prune", source.partition("/")[0]).json
    assert ([each["outcome"] for each in pruned], share_of(files_cli, source)) == (["deleted"], ["plan.txt"])


@pytest.mark.parametrize("at", ["plan.txt-2?comp=rename", ".tmp?comp=rename"], ids=["in place", "before"])
def test_a_copy_that_is_killed_leaves_the_old_file_whole(files_cli: CliWorld, source: str, at: str) -> None:
    new = f"{source}-2"
    files_world.client(files_cli, new).upload_file(b"old")
    with files_world.killing(files_cli) as killer:
        killer.kill(at, "file", "copy", new, "--source", source, ANYHOW)
        assert (content_of(files_cli, new), len(leftovers(files_cli, new))) == (b"old", 1)
        # Under the address at which it was killed.
        assert killer.world.call("file", "copy", new, "--source", source, ANYHOW).code == 0
    assert (content_of(files_cli, new), leftovers(files_cli, new)) == (CONTENT, [])


@pytest.mark.parametrize(
    ("which", "fault"),
    [
        *((".tmp", fault) for fault in (Fault.DROP, Fault.FAIL_BEFORE, Fault.REPLAYED)),
        *((".tmp?comp=rename", fault) for fault in (Fault.DROP, Fault.FAIL_BEFORE, Fault.REPLAYED)),
        *(("plan.txt-2?comp=rename", fault) for fault in (Fault.DROP, Fault.FAIL_BEFORE, Fault.REPLAYED)),
    ],
)
def test_a_copy_whose_answer_is_lost_is_settled(files_cli: CliWorld, source: str, which: str, fault: Fault) -> None:
    new = f"{source}-2"
    ran, log = files_world.spoilt(files_cli, fault, "file", "copy", new, "--source", source, which=which)
    assert (ran.code, content_of(files_cli, new), leftovers(files_cli, new)) == (0, CONTENT, [])
    # Of a copy in place nothing tells whether another program has written to it since.
    is_known = fault is Fault.FAIL_BEFORE or not which.startswith("plan.txt")
    assert (ran.json["etag"], ran.json["outcome"]) == (show(files_cli, new)["etag"] if is_known else None, "committed")
    assert log


def test_a_copy_that_a_gateway_answers_is_not_sent_without_a_pause(files_cli: CliWorld, source: str) -> None:
    sent: list[Request] = []

    def decide(request: Request) -> Fault:
        if "x-ms-copy-source" not in request.headers:
            return Fault.NONE
        sent.append(request)
        return Fault.FAIL_BEFORE

    with proxy.running(files_world.port(files_cli), decide) as between:
        words = ("file", "copy", f"{source}-2", "--source", source, "--timeout", "1s")
        ran = files_world.through(files_cli, between.port).call(*words)
    assert (ran.code, len(sent) < 8, share_of(files_cli, source)) == (53, True, ["plan.txt"])


def test_the_network_may_send_a_pending_copy_twice(files_cli: CliWorld, source: str, elsewhere: Elsewhere) -> None:
    elsewhere.is_open = True
    words = ("file", "copy", f"{source}-2", "--source", elsewhere.url)
    ran, _ = files_world.spoilt(files_cli, Fault.REPLAYED, *words, which=".tmp")
    assert (ran.code, content_of(files_cli, f"{source}-2"), leftovers(files_cli, source)) == (0, CONTENT, [])


def test_no_mixture_of_versions_of_the_source_is_put_in_place(files_cli: CliWorld, source: str) -> None:
    def write() -> None:
        files_world.client(files_cli, source).upload_file(b"another")

    with watched(files_cli, ".tmp?comp=rename", write) as world:
        ran = world.call("file", "copy", f"{source}-2", "--source", source, "-o", "json")
    assert (ran.code, ran.error["side"], ran.error["address"]) == (42, "source", f"file:{source}")
    assert share_of(files_cli, source) == ["plan.txt"]
    etag = show(files_cli, source)["etag"]
    wanted = [
        files_cli.call("file", "copy", f"{source}-2", "--source", source, "--source-etag", each).code
        for each in ("0x1", "@last", etag)
    ]
    assert wanted == [42, 2, 0]


@pytest.mark.parametrize(("status", "fault"), [(53, Fault.HALF), (42, Fault.NONE)], ids=["cut", "changed"])
def test_a_copy_that_fails_writes_nothing(
    files_cli: CliWorld, source: str, elsewhere: Elsewhere, status: int, fault: Fault
) -> None:
    elsewhere.fault = fault

    def go_on() -> None:
        if status == 42:
            files_world.client(files_cli, source).upload_file(b"a newer one")
        elsewhere.is_open = True

    with watched(files_cli, of_temporary(source), go_on) as world:
        ran = world.call("file", "copy", f"{source}-2", "--source", elsewhere.url, "-o", "json")
    assert (ran.code, share_of(files_cli, source)) == (status, ["plan.txt"])


def test_what_names_no_source_is_refused(files_cli: CliWorld, source: str, elsewhere: Elsewhere) -> None:
    bare = elsewhere.url.partition("?")[0]
    cases = [
        (2, ()),
        (2, (source, "--source", source)),
        (2, ("--source", "")),
        (2, ("--source", bare)),
        (2, ("--source", f"{source}-2")),
        (2, ("--source", source, "--preserve-permissions", "--permission-key", "1*1")),
        (2, ("--source", f"blob:{source}", "--preserve-info")),
        (41, ("--source", f"{bare}?sv=2026-02-06&sig=none")),
        (41, ("--source", bare, "--source-sas", "sv=2026-02-06&sig=none")),
        (44, ("--source", f"{source}-none")),
    ]
    found = [(files_cli.call("file", "copy", f"{source}-2", *words).code, words) for _, words in cases]
    assert found == cases
    assert files_cli.call("file", "abort-copy", source, "-o", "json").code == 44
