"""``--snapshot-first``: what is replaced is what was kept."""

from collections.abc import Callable

import pytest
from azure.storage.blob import ContainerClient

from tests.faults.rules import operation
from tests.support.blob_world import client as sdk
from tests.support.cases import cases
from tests.support.cli_world import CliWorld, Ran
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Fault, Request

INCREMENT = ("--increment", "n", "--snapshot-first")


@pytest.fixture
def blob(cli: CliWorld) -> str:
    """Return a blob that this scope has written."""
    name = f"{cli.container()}/a"
    assert cli.call("blob", "put", name, stdin=b'{"n": 1}').code == 0
    return name


def kept(cli: CliWorld, blob: str) -> list[bytes]:
    """Return the contents of the snapshots of a blob, the oldest first."""
    container, _, name = blob.partition("/")
    client = ContainerClient.from_connection_string(cli.connection_string or "", container)
    found = [each.snapshot for each in client.list_blobs(include=["snapshots"]) if each.snapshot]
    return [client.get_blob_client(name, snapshot=each).download_blob().readall() for each in found]


def over(cli: CliWorld, blob: str) -> tuple[str, ...]:
    """Return the option that names the version that is there: through a proxy, the blob is one that was never read."""
    return ("--etag", str(sdk(cli, blob).get_blob_properties().etag))


def put(cli: CliWorld, blob: str, *words: str, size: int = 3) -> Ran:
    return cli.call("blob", "put", blob, "--snapshot-first", *words, "-o", "json", stdin=b"new".ljust(size, b"."))


@pytest.mark.parametrize("size", [3, 8 * 1024 * 1024 + 1])
def test_a_put_keeps_what_it_replaces_and_names_it(cli: CliWorld, blob: str, size: int) -> None:
    ran = put(cli, blob, size=size)
    assert (ran.code, kept(cli, blob)) == (0, [b'{"n": 1}'])
    assert cli.call("blob", "get", ran.json["snapshot"]).out == '{"n": 1}'


def test_a_put_that_creates_has_nothing_to_keep(cli: CliWorld, blob: str) -> None:
    ran = put(cli, f"{blob}-new")
    assert (ran.code, ran.json["snapshot"], kept(cli, f"{blob}-new")) == (0, None, [])


def test_without_the_option_a_result_has_no_snapshot(cli: CliWorld, blob: str) -> None:
    assert "snapshot" not in cli.call("blob", "put", blob, stdin=b"new").json


def test_a_put_over_a_version_that_is_gone_keeps_nothing(cli: CliWorld, blob: str) -> None:
    sdk(cli, blob).upload_blob(b"theirs", overwrite=True)
    ran = put(cli, blob)
    assert (ran.code, kept(cli, blob), ran.error["current_etag"]) == (42, [], over(cli, blob)[1])
    assert cli.call("blob", "put", blob, "--snapshot-first", stdin=b"new").err.count("now: ") == 1
    sdk(cli, blob).delete_blob()
    assert put(cli, blob).code == 42


@cases(
    "words",
    ("--last-writer-wins",), ("--fence", "7"), ("--if-match", "*"), ("--if-tags", "\"a\" = 'b'"),
     ("--if-unmodified-since", "2101-01-01"), ("--if-none-match", "0x1"),
)  # fmt: skip
def test_a_put_for_no_version_is_refused_before_any_request(cli: CliWorld, blob: str, words: tuple[str, ...]) -> None:
    with proxy.running(cli.port, lambda _: Fault.NONE) as running:
        ran = put(cli.through(running.port), blob, *words)
    assert (ran.code, "--snapshot-first" in ran.error["message"], running.log) == (2, True, [])


def between(*steps: tuple[str, Callable[[], object]]) -> Callable[[Request], Fault]:
    """Return a proxy's rule that takes each step once, just before a request of its name arrives."""
    left = list(steps)

    def decide(request: Request) -> Fault:
        if left and operation(request) == left[0][0]:
            left.pop(0)[1]()
        return Fault.NONE

    return decide


def test_a_put_that_loses_after_the_snapshot_names_what_it_kept(cli: CliWorld, blob: str) -> None:
    mine = over(cli, blob)
    rival = between(("PUT blob", lambda: sdk(cli, blob).upload_blob(b"theirs", overwrite=True)))
    with proxy.running(cli.port, rival) as running:
        ran = put(cli.through(running.port), blob, *mine)
    assert (ran.code, kept(cli, blob)) == (42, [b'{"n": 1}'])
    assert cli.call("blob", "get", ran.error["snapshot"]).out == '{"n": 1}'


def faulty(fault: Fault, times: int) -> Callable[[Request], Fault]:
    left = [times]

    def decide(request: Request) -> Fault:
        if operation(request) != "PUT snapshot" or not left[0]:
            return Fault.NONE
        left[0] -= 1
        return fault

    return decide


@pytest.mark.parametrize("fault", [Fault.DROP, Fault.FAIL_AFTER, Fault.RESET, Fault.FAIL_BEFORE])
def test_a_lost_answer_to_the_snapshot_makes_no_second_one(cli: CliWorld, blob: str, fault: Fault) -> None:
    with proxy.running(cli.port, faulty(fault, 1)) as running:
        ran = put(cli.through(running.port), blob, *over(cli, blob))
    assert (ran.code, kept(cli, blob)) == (0, [b'{"n": 1}'])


def test_a_put_that_cannot_keep_writes_nothing(cli: CliWorld, blob: str) -> None:
    with proxy.running(cli.port, faulty(Fault.FAIL_BEFORE, 100)) as running:
        ran = put(cli.through(running.port), blob, *over(cli, blob), "--timeout", "1s")
    assert (ran.code, kept(cli, blob), cli.call("blob", "get", blob).out) == (53, [], '{"n": 1}')


def update(cli: CliWorld, blob: str, *words: str) -> Ran:
    return cli.call("safe-update", f"blob:{blob}", *words, "-o", "json")


def test_an_update_keeps_what_it_replaces(cli: CliWorld, blob: str) -> None:
    ran = update(cli, blob, *INCREMENT)
    assert (ran.code, kept(cli, blob), cli.call("blob", "get", blob).out) == (0, [b'{"n": 1}'], '{"n": 2}')
    assert cli.call("blob", "get", ran.json["snapshot"]).out == '{"n": 1}'


def test_an_update_of_the_metadata_keeps_what_it_replaces(cli: CliWorld, blob: str) -> None:
    ran = update(cli, blob, "--metadata", "--set-string", "a=b", "--snapshot-first")
    assert cli.call("blob", "show", ran.json["snapshot"]).json["metadata"] == {}


@pytest.mark.parametrize("words", [("--set", "n=1", "--snapshot-first"), (*INCREMENT, "--dry-run")])
def test_an_update_that_writes_nothing_keeps_nothing(cli: CliWorld, blob: str, words: tuple[str, ...]) -> None:
    assert (update(cli, blob, *words).code, kept(cli, blob)) == (0, [])


def test_an_update_that_creates_has_nothing_to_keep(cli: CliWorld, blob: str) -> None:
    ran = update(cli, f"{blob}-new", "--create", *INCREMENT)
    assert (ran.code, ran.json["snapshot"]) == (0, None)


def test_after_conflicts_only_the_version_that_was_replaced_is_kept(cli: CliWorld, blob: str) -> None:
    def rival(n: int) -> tuple[str, Callable[[], object]]:
        return "PUT blob", lambda: sdk(cli, blob).upload_blob(b'{"n": %d}' % n, overwrite=True)

    with proxy.running(cli.port, between(rival(10), rival(20))) as running:
        ran = update(cli.through(running.port), blob, *INCREMENT, "--no-lineage")
    assert (ran.code, ran.json["conflicts"], kept(cli, blob)) == (0, 2, [b'{"n": 20}'])
    assert cli.call("blob", "get", ran.json["snapshot"]).out == '{"n": 20}'


@pytest.mark.parametrize("guard", [(), ("--guard", "lease")])
def test_an_update_with_a_lost_answer_keeps_once(cli: CliWorld, blob: str, guard: tuple[str, ...]) -> None:
    dropped: list[str] = []

    def decide(request: Request) -> Fault:
        if operation(request) != "PUT blob" or dropped:
            return Fault.NONE
        dropped.append(request.path)
        return Fault.DROP

    with proxy.running(cli.port, decide) as running:
        ran = update(cli.through(running.port), blob, *INCREMENT, *guard)
    assert (ran.code, ran.json["doubts"], kept(cli, blob)) == (0, 1, [b'{"n": 1}'])
