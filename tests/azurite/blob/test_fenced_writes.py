"""``--fence`` on ``blob put`` and ``blob delete`` against Azurite: a holder that was overtaken is refused."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.storage.blob import BlobBlock, BlobSasPermissions, generate_blob_sas

from azguard.accounts.account import Target, from_connection_string
from azguard.accounts.endpoints import EMULATOR_KEY, EMULATOR_NAME
from azguard.address import Address, Kind
from azguard.blobs import tags
from azguard.guards import fences
from azguard.guards.resolve import Conditions
from azguard.requests.deadline import Deadline
from tests.faults.rules import operation
from tests.support.blob_world import LARGE
from tests.support.blob_world import client as sdk
from tests.support.cli_world import CliWorld, Ran
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Fault, Request
from tests.support.no_records import NoRecords

Steps = Mapping[str, Callable[[], object]]
LEASE = "0f3c1111-2222-3333-4444-555566667777"


@pytest.fixture
def blob(cli: CliWorld) -> str:
    """Return the name of a blob that is not there, in a container that is."""
    return f"{cli.container()}/a"


def put(cli: CliWorld, blob: str, fence: int, *words: str, size: int = 0) -> Ran:
    content = f"{fence} ".encode()
    return cli.call("blob", "put", blob, "--fence", str(fence), *words, "-o", "json", stdin=content.ljust(size, b"x"))


def there(cli: CliWorld, blob: str) -> tuple[bytes, dict[str, str]]:
    """Return the first word of a blob, and its tags."""
    client = sdk(cli, blob)
    return client.download_blob(0, 20).readall().split(b" ")[0], client.get_blob_tags()


def hold(cli: CliWorld, blob: str, fence: int) -> None:
    """Write as another holder, while a command line runs in this process."""
    sdk(cli, blob).upload_blob(f"{fence} ".encode(), overwrite=True, tags={"fence": tag(fence)})


def tag(fence: int) -> str:
    return f"{fence:019d}"


def between(steps: Steps) -> Callable[[Request], Fault]:
    """Return a proxy's rule that takes each step just before the nth such request arrives, named ``PUT blob 1``."""
    counts: dict[str, int] = {}

    def decide(request: Request) -> Fault:
        name = operation(request)
        counts[name] = counts.get(name, 0) + 1
        steps.get(f"{name} {counts[name]}", lambda: None)()
        return Fault.NONE

    return decide


def sent(log: list[Any]) -> list[tuple[str, int | None, dict[str, str]]]:
    """Return the requests of a log: what each does, its status, and the conditions on it."""
    names = ("if-match", "if-none-match", "x-ms-if-tags")
    return [
        (operation(each.request), each.status, {key: each.request.headers[key] for key in names if key in
                                                each.request.headers})
        for each in log
    ]  # fmt: skip


# Overtaken


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("size", [0, LARGE])
def test_a_holder_that_was_overtaken_is_refused(cli: CliWorld, blob: str, size: int) -> None:
    codes = [put(cli, blob, fence, size=size).code for fence in (42, 43, 42, 44, 41)]
    assert (codes, there(cli, blob)) == ([0, 0, 77, 0, 77], (b"44", {"fence": tag(44)}))


def test_a_refusal_says_both_numbers_and_what_to_do(cli: CliWorld, blob: str) -> None:
    put(cli, blob, 43)
    ran = put(cli, blob, 42)
    assert (ran.code, ran.out, ran.error) == (
        77,
        "",
        {
            "kind": "lock_lost",
            "message": f"{blob} was written under fence 43, so that yours, 42, is overtaken; nothing was changed",
            "exit_code": 77,
            "address": f"blob:{blob}",
            "http_status": None,
            "service_code": None,
            "expected_etag": None,
            "current_etag": None,
            "lease_state": None,
            "request_id": None,
            "retriable": False,
            "hint": "the lock has had another holder since: stop, acquire it again, and read before you write",
            "fence": 42,
            "current_fence": 43,
        },
    )


def test_the_result_says_that_the_fence_was_the_guard(cli: CliWorld, blob: str) -> None:
    put(cli, blob, 42)
    ran = put(cli, blob, 43)
    assert (ran.json["guard"], ran.json["attempts"], ran.json["etag"]) == (
        "fence", 1, cli.call("blob", "show", blob).json["etag"],
    )  # fmt: skip


@pytest.mark.usefixtures("small_blocks")
def test_an_overtaken_upload_ends_before_its_first_block(cli: CliWorld, blob: str) -> None:
    put(cli, blob, 43)
    with proxy.running(cli.port, lambda _: Fault.NONE) as running:
        ran = put(cli.through(running.port), blob, 42, size=LARGE)
    assert (ran.code, [each[0] for each in sent(running.log)]) == (77, ["HEAD blob", "GET tags"])


@pytest.mark.usefixtures("small_blocks")
def test_an_upload_that_is_overtaken_while_it_runs_is_refused(cli: CliWorld, blob: str) -> None:
    put(cli, blob, 42)
    steps = {"PUT blocklist 1": lambda: hold(cli, blob, 43)}
    with proxy.running(cli.port, between(steps)) as running:
        ran = put(cli.through(running.port), blob, 42, size=LARGE)
    assert (ran.code, there(cli, blob)) == (77, (b"43", {"fence": tag(43)}))


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(("theirs", "code"), [(41, 42), (43, 77)])
def test_an_upload_whose_blocks_another_discards_is_refused(cli: CliWorld, blob: str, theirs: int, code: int) -> None:
    client = sdk(cli, blob)
    put(cli, blob, 41)

    def commit() -> None:
        block = "theirs".ljust(24, "_")  # as long as azguard's own: the service takes no two lengths
        client.stage_block(block, b"theirs ")
        client.commit_block_list([BlobBlock(block)], tags={"fence": tag(theirs)})

    with proxy.running(cli.port, between({"PUT blocklist 1": commit})) as running:
        ran = put(cli.through(running.port), blob, 42, size=LARGE)
    assert (ran.code, there(cli, blob)) == (code, (b"theirs", {"fence": tag(theirs)}))


def test_a_delete_by_an_overtaken_holder_is_refused(cli: CliWorld, blob: str) -> None:
    put(cli, blob, 43)
    refused = cli.call("blob", "delete", blob, "--fence", "42")
    left = there(cli, blob)
    done = cli.call("blob", "delete", blob, "--fence", "43")
    assert (refused.code, left[0], done.code, done.json["guard"], sdk(cli, blob).exists()) == (
        77, b"43", 0, "fence", False,
    )  # fmt: skip


def test_a_delete_of_what_is_not_there_says_so(cli: CliWorld, blob: str) -> None:
    assert cli.call("blob", "delete", blob, "--fence", "42").code == 44


# What is there has no fence


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("size", [0, LARGE])
def test_a_blob_without_a_fence_is_taken_over_on_the_version_just_seen(cli: CliWorld, blob: str, size: int) -> None:
    client = sdk(cli, blob)
    etag = client.upload_blob(b"theirs")["etag"]
    commit = "PUT blocklist" if size else "PUT blob"
    with proxy.running(cli.port, lambda _: Fault.NONE) as running:
        ran = put(cli.through(running.port), blob, 42, size=size)
    commits = [each for each in sent(running.log) if each[0] == commit]
    assert commits == [
        (commit, 412, {"x-ms-if-tags": f"\"fence\" <= '{tag(42)}'"}), (commit, 201, {"if-match": etag}),
    ]  # fmt: skip
    assert (ran.json["guard"], ran.json["attempts"], ran.json["created"], there(cli, blob)) == (
        "fence", 2, False, (b"42", {"fence": tag(42)}),
    )  # fmt: skip
    assert put(cli, blob, 41).code == 77


def test_a_delete_of_a_blob_without_a_fence_is_of_the_version_just_seen(cli: CliWorld, blob: str) -> None:
    etag = sdk(cli, blob).upload_blob(b"theirs")["etag"]
    with proxy.running(cli.port, lambda _: Fault.NONE) as running:
        ran = cli.through(running.port).call("blob", "delete", blob, "--fence", "42")
    assert (ran.code, sent(running.log)[-1], sdk(cli, blob).exists()) == (
        0, ("DELETE blob", 202, {"if-match": etag}), False,
    )  # fmt: skip


def test_a_fence_refused_for_want_of_a_blob_only_creates(cli: CliWorld, blob: str) -> None:
    # Azurite takes the first request where nothing is, the service does not: so something is, until azguard looks.
    client = sdk(cli, blob)
    steps: Steps = {"PUT blob 1": lambda: client.upload_blob(b"theirs"), "HEAD blob 2": client.delete_blob}
    with proxy.running(cli.port, between(steps)) as running:
        ran = put(cli.through(running.port), blob, 42)
    assert (sent(running.log)[-1], ran.json["created"], ran.json["guard"]) == (
        ("PUT blob", 201, {"if-none-match": "*"}), True, "fence",
    )  # fmt: skip
    assert there(cli, blob) == (b"42", {"fence": tag(42)})


@pytest.mark.parametrize(("theirs", "code", "last"), [(43, 77, b"43"), (41, 0, b"42")])
def test_a_fence_that_comes_between_the_look_and_the_take_over_is_seen(
    cli: CliWorld, blob: str, theirs: int, code: int, last: bytes
) -> None:
    sdk(cli, blob).upload_blob(b"no holder's")
    steps = {"PUT blob 2": lambda: hold(cli, blob, theirs)}
    with proxy.running(cli.port, between(steps)) as running:
        ran = put(cli.through(running.port), blob, 42)
    assert (ran.code, there(cli, blob)[0]) == (code, last)


def test_a_fence_that_comes_between_the_look_and_the_creation_is_seen(cli: CliWorld, blob: str) -> None:
    client = sdk(cli, blob)
    steps: Steps = {
        "PUT blob 1": lambda: client.upload_blob(b"theirs"),
        "HEAD blob 2": client.delete_blob,
        "PUT blob 2": lambda: hold(cli, blob, 43),
    }
    with proxy.running(cli.port, between(steps)) as running:
        ran = put(cli.through(running.port), blob, 42)
    assert (ran.code, there(cli, blob)[0]) == (77, b"43")


@pytest.mark.parametrize("moment", ["HEAD blob 1", "GET tags 1"])
def test_a_higher_fence_between_the_two_looks_is_not_taken_for_the_version_before_it(
    cli: CliWorld, blob: str, moment: str
) -> None:
    sdk(cli, blob).upload_blob(b"no holder's")
    steps = {moment: lambda: hold(cli, blob, 43)}
    with proxy.running(cli.port, between(steps)) as running:
        ran = put(cli.through(running.port), blob, 42)
    assert (ran.code, there(cli, blob)[0]) == (77, b"43")


@pytest.mark.parametrize(("written_since", "code"), [(False, 0), (True, 42)])
def test_what_was_read_guards_after_updates_of_tags_under_a_fence(
    cli: CliWorld, blob: str, *, written_since: bool, code: int
) -> None:
    cli.call("blob", "put", blob, stdin=b"read")
    cli.call("blob", "tags", "get", blob)
    if written_since:
        cli.call("blob", "put", blob, "--last-writer-wins", scope="other", stdin=b"theirs")
    for tag_set in ("a=1", "b=1"):
        cli.call("safe-update", f"blob:{blob}", "--tags", "--fence", "42", "--set-string", tag_set)
    codes = [
        cli.call("blob", "tags", "set", blob, "--tags", "c=1").code,
        cli.call("blob", "put", blob, stdin=b"2").code,
    ]
    assert codes == [code, code]


def test_a_first_fence_that_comes_with_tags_alone_is_seen(cli: CliWorld, blob: str) -> None:
    sdk(cli, blob).upload_blob(b"theirs")
    container, _, name = blob.partition("/")
    target = Target(from_connection_string(cli.connection_string or ""), Address(Kind.BLOB, (container, name)))
    under = Conditions(fences.condition(43), "fence", fence=43)
    steps = {"PUT blob 2": lambda: tags.replace_all(target, {"a": "1"}, under, NoRecords(), Deadline())}
    with proxy.running(cli.port, between(steps)) as running:
        ran = put(cli.through(running.port), blob, 42)
    assert (ran.code, there(cli, blob)) == (77, (b"theirs", {"a": "1", "fence": tag(43)}))


def test_writers_without_a_fence_who_never_rest_are_not_fought_for_ever(cli: CliWorld, blob: str) -> None:
    client = sdk(cli, blob)
    client.upload_blob(b"theirs")
    steps = {f"PUT blob {nth}": lambda: client.upload_blob(b"theirs", overwrite=True) for nth in range(1, 100)}
    with proxy.running(cli.port, between(steps)) as running:
        ran = put(cli.through(running.port), blob, 42, "--timeout", "60s")
    tried = [each[:2] for each in sent(running.log) if each[0] == "PUT blob"]
    assert (ran.code, tried, there(cli, blob)[0]) == (75, [("PUT blob", 412)] * 6, b"theirs")


def test_a_tag_of_that_name_that_is_no_fence_is_left_alone(cli: CliWorld, blob: str) -> None:
    sdk(cli, blob).upload_blob(b"theirs", tags={"fence": "wood"})
    ran = put(cli, blob, 42)
    assert (ran.code, "'wood'" in ran.error["message"], there(cli, blob)) == (40, True, (b"theirs", {"fence": "wood"}))


# What goes along


def test_a_lease_goes_along(cli: CliWorld, blob: str) -> None:
    put(cli, blob, 42)
    sdk(cli, blob).acquire_lease(-1, LEASE)
    runs = [
        put(cli, blob, 43),
        put(cli, blob, 43, "--lease-id", LEASE.replace("0", "1")),
        put(cli, blob, 43, "--lease-id", LEASE),
        put(cli, blob, 42, "--lease-id", LEASE),
        cli.call("blob", "delete", blob, "--fence", "42", "--lease-id", LEASE),
        cli.call("blob", "delete", blob, "--fence", "44", "--lease-id", LEASE),
    ]
    assert [ran.code for ran in runs] == [49, 49, 0, 77, 77, 0]


def test_a_lease_goes_along_when_a_blob_is_taken_over(cli: CliWorld, blob: str) -> None:
    client = sdk(cli, blob)
    client.upload_blob(b"theirs")
    client.acquire_lease(-1, LEASE)
    runs = [put(cli, blob, 42), put(cli, blob, 42, "--lease-id", LEASE)]
    assert ([ran.code for ran in runs], there(cli, blob)[0]) == ([49, 0], b"42")


def test_tags_of_ones_own_go_along(cli: CliWorld, blob: str) -> None:
    assert put(cli, blob, 42, "--tags", "env=dev", "--tags", "team=a b").code == 0
    assert there(cli, blob)[1] == {"env": "dev", "team": "a b", "fence": tag(42)}


@pytest.mark.parametrize("command", [("blob", "put"), ("blob", "delete"), ("safe-update", "--append", "x")])
def test_without_the_permission_for_tags_the_hint_names_it(cli: CliWorld, blob: str, command: tuple[str, ...]) -> None:
    sdk(cli, blob).upload_blob(b"theirs")
    container, _, name = blob.partition("/")
    sas = generate_blob_sas(
        EMULATOR_NAME, container, name, account_key=EMULATOR_KEY,
        permission=BlobSasPermissions(read=True, write=True, create=True, delete=True),
        expiry=datetime.now(UTC) + timedelta(hours=1),
    )  # fmt: skip
    ran = cli.call(*command, f"{sdk(cli, blob).url}?{sas}", "--fence", "42", "-o", "json", stdin=b"x")
    assert (ran.code, ran.error["service_code"], "t in a SAS" in ran.error["hint"]) == (
        43, "AuthorizationPermissionMismatch", True,
    )  # fmt: skip


@pytest.mark.parametrize(
    "command",
    [("blob", "tags", "set", "--tags", "a=1"), ("safe-update", "--tags", "--set-string", "a=1")],
    ids=" ".join,
)
def test_tags_alone_that_may_be_written_are_in_the_hint(cli: CliWorld, blob: str, command: tuple[str, ...]) -> None:
    sdk(cli, blob).upload_blob(b"theirs")
    lease = cli.call("lease", "acquire", f"blob:{blob}").json["lease_id"]
    container, _, name = blob.partition("/")
    sas = generate_blob_sas(
        EMULATOR_NAME, container, name, account_key=EMULATOR_KEY,
        permission=BlobSasPermissions(read=True, tag=True),
        expiry=datetime.now(UTC) + timedelta(hours=1),
    )  # fmt: skip
    ran = cli.call(*command, f"{sdk(cli, blob).url}?{sas}", "--fence", "42", "--lease-id", lease)
    told = "the tags were written, but a holder with a lower fence may still overwrite them"
    assert (ran.code, told in ran.err, there(cli, blob)[1]) == (43, True, {"a": "1", "fence": tag(42)})


def test_without_the_permission_to_read_the_hint_is_of_the_type_and_works(cli: CliWorld, blob: str) -> None:
    container, _, name = blob.partition("/")
    sas = generate_blob_sas(
        EMULATOR_NAME, container, name, account_key=EMULATOR_KEY,
        permission=BlobSasPermissions(write=True, create=True, tag=True),
        expiry=datetime.now(UTC) + timedelta(hours=1),
    )  # fmt: skip
    url = f"{sdk(cli, blob).url}?{sas}"
    ran = put(cli, url, 42)
    assert (ran.code, ran.error["hint"]) == (43, "--blob-type block writes without looking")
    assert put(cli, url, 42, "--blob-type", "block").code == 0
