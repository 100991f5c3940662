"""``safe-update --fence`` against Azurite: what it leaves, and how a holder that was overtaken ends."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from azure.storage.blob import BlobClient

from azguard.accounts.account import Target, from_connection_string
from azguard.address import Address, Kind
from azguard.blobs.updates import BlobContent, BlobMetadata
from azguard.errors import BadRequest, LockLost, NotFound
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import new_op
from azguard.updates.resource import UpdatePlan, UpdateResult
from azguard.updates.update import preview, update
from tests.faults.rules import operation
from tests.support import sdk_clients
from tests.support.blob_world import LARGE
from tests.support.cli_world import CliWorld, Ran
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Fault, Request

OP = new_op(b"ours ours ours")


@pytest.fixture
def blob(cli: CliWorld) -> str:
    """Return the name of a blob that a holder with fence 42 has written."""
    name = f"{cli.container()}/a.json"
    assert cli.call("blob", "put", name, "--fence", "42", "--tags", "env=dev", stdin=b'{"n": 1}').code == 0
    return name


@pytest.fixture
def target(cli: CliWorld, blob: str) -> Target:
    container, _, name = blob.partition("/")
    return Target(from_connection_string(cli.connection_string or ""), Address(Kind.BLOB, (container, name)))


@pytest.fixture
def client(target: Target) -> BlobClient:
    return sdk_clients.blob(target.account, target.address)


def increment(cli: CliWorld, blob: str, fence: int, *words: str) -> Ran:
    return cli.call("safe-update", f"blob:{blob}", "--increment", "n", "--fence", str(fence), *words, "-o", "json")


def tag(fence: int) -> str:
    return f"{fence:019d}"


def hold(client: BlobClient, fence: int, content: bytes = b"theirs") -> None:
    """Write as another holder."""
    client.upload_blob(content, overwrite=True, tags={"fence": tag(fence)})


def first(step: Callable[[], object], then: bytes = b"!") -> Callable[[bytes], bytes]:
    """Return a transform that takes a step when it runs for the first time, and appends a little."""
    steps = [step]

    def transform(content: bytes) -> bytes:
        if steps:
            steps.pop()()
        return content + then

    return transform


def change(target: Target, transform: Callable[[bytes], bytes], fence: int, **plan: Any) -> UpdateResult:
    return update(BlobContent(target, lock_fence=fence), UpdatePlan(transform, OP, fence=fence, **plan), Deadline(20))


def state(client: BlobClient) -> tuple[bytes, dict[str, str]]:
    return client.download_blob().readall(), client.get_blob_tags()


# The content


def test_a_holder_that_was_overtaken_is_refused(cli: CliWorld, blob: str, client: BlobClient) -> None:
    codes = [increment(cli, blob, fence).code for fence in (42, 43, 42, 44, 41)]
    assert (codes, state(client)) == ([0, 0, 77, 0, 77], (b'{"n": 4}', {"env": "dev", "fence": tag(44)}))


@pytest.mark.usefixtures("small_blocks")
def test_large_content_is_fenced_too(cli: CliWorld, blob: str, client: BlobClient) -> None:
    large = b'{"pad": "' + b"x" * LARGE + b'", "n": 1}'
    hold(client, 42, large)
    codes = [increment(cli, blob, fence).code for fence in (43, 42, 44)]
    assert (codes, state(client)) == ([0, 77, 0], (large.replace(b'"n": 1', b'"n": 3'), {"fence": tag(44)}))


def test_put_and_safe_update_know_each_others_fences(cli: CliWorld, blob: str) -> None:
    assert increment(cli, blob, 43).code == 0
    assert cli.call("blob", "put", blob, "--fence", "42", stdin=b'{"n": 1}').code == 77
    assert cli.call("blob", "put", blob, "--fence", "44", stdin=b'{"n": 1}').code == 0
    assert increment(cli, blob, 43).code == 77


TAGS = {
    "set": ("blob", "tags", "set", "{blob}", "--tags", "env=live"),
    "update": ("safe-update", "blob:{blob}", "--tags", "--set-string", "env=live"),
}


@pytest.mark.parametrize("how", TAGS)
@pytest.mark.parametrize("lost", ["", "PUT tags", "PUT properties"])
def test_a_higher_fence_that_comes_with_tags_alone_is_seen(
    cli: CliWorld, blob: str, target: Target, client: BlobClient, how: str, lost: str
) -> None:
    """A write of tags moves no version, to which the write of the holder who was overtaken is bound."""
    losing = [lost]

    def decide(request: Request) -> Fault:
        is_lost = operation(request) in losing
        return Fault.DROP if is_lost and losing.pop() else Fault.NONE

    def hold_by_tags() -> None:
        with proxy.running(cli.port, decide) as between:
            words = [word.format(blob=blob) for word in TAGS[how]]
            assert cli.through(between.port).call(*words, "--fence", "43").code == 0

    with pytest.raises(LockLost):
        change(target, first(hold_by_tags), 42)
    assert state(client) == (b'{"n": 1}', {"env": "live", "fence": tag(43)})


def test_tags_under_a_fence_move_what_was_read_along(cli: CliWorld, blob: str) -> None:
    set_ = cli.call("blob", "tags", "set", blob, "--tags", "env=live", "--fence", "43")
    again = cli.call("blob", "tags", "set", blob, "--tags", "env=test", "--etag", set_.json["etag"])
    assert (set_.code, again.code, cli.call("blob", "put", blob, stdin=b"new").code) == (0, 0, 0)


def test_a_blob_without_a_fence_gets_one(cli: CliWorld, blob: str, client: BlobClient) -> None:
    client.upload_blob(b'{"n": 1}', overwrite=True, tags={"env": "dev"})
    assert (increment(cli, blob, 7).code, state(client)) == (0, (b'{"n": 2}', {"env": "dev", "fence": tag(7)}))


def test_a_blob_that_is_made_gets_one(cli: CliWorld, blob: str, client: BlobClient) -> None:
    client.delete_blob()
    ran = increment(cli, blob, 7, "--create")
    assert (ran.json["created"], ran.json["etag"], state(client)) == (
        True, client.get_blob_properties().etag, (b'{"n": 1}', {"fence": tag(7)}),
    )  # fmt: skip


def test_an_update_without_a_fence_leaves_the_one_that_is_there(cli: CliWorld, blob: str, client: BlobClient) -> None:
    assert cli.call("safe-update", f"blob:{blob}", "--increment", "n").code == 0
    assert state(client) == (b'{"n": 2}', {"env": "dev", "fence": tag(42)})


def test_a_lease_goes_along(cli: CliWorld, blob: str, client: BlobClient) -> None:
    lease = client.acquire_lease(-1).id
    codes = [increment(cli, blob, fence, *words).code for fence, words in (
        (43, ()), (43, ("--lease-id", lease)), (42, ("--lease-id", lease)), (44, ("--lease-id", lease)),
    )]  # fmt: skip
    assert (codes, client.get_blob_tags()["fence"]) == ([49, 0, 77, 0], tag(44))


def test_a_lease_of_its_own_goes_along(cli: CliWorld, blob: str) -> None:
    codes = [increment(cli, blob, fence, "--guard", "lease").code for fence in (43, 42)]
    assert (codes, cli.call("blob", "show", blob).json["lease_status"]) == ([0, 77], "unlocked")


# Unchanged


def test_unchanged_content_is_written_once_for_the_fence(cli: CliWorld, blob: str, client: BlobClient) -> None:
    runs = [cli.call("safe-update", f"blob:{blob}", "--set", "n=1", "--fence", "43").json for _ in range(2)]
    assert ([(each["outcome"], each["guard"]) for each in runs], state(client)) == (
        [("committed", "fence"), ("unchanged", "fence")], (b'{"n": 1}', {"env": "dev", "fence": tag(43)}),
    )  # fmt: skip


def test_who_would_change_nothing_is_told_of_a_higher_fence_too(cli: CliWorld, blob: str) -> None:
    assert cli.call("safe-update", f"blob:{blob}", "--set", "n=1", "--fence", "41").code == 77


def test_a_dry_run_tells_of_a_higher_fence(cli: CliWorld, blob: str, client: BlobClient, target: Target) -> None:
    before = client.get_blob_properties().etag
    codes = [increment(cli, blob, fence, "--dry-run").code for fence in (41, 42, 43)]
    with pytest.raises(LockLost):
        preview(BlobContent(target, lock_fence=41), UpdatePlan(lambda old: old, OP, fence=41), Deadline(20))
    assert (codes, client.get_blob_properties().etag) == ([77, 0, 0], before)


# Another comes between


def test_a_higher_fence_before_our_write_ends_the_update(target: Target, client: BlobClient) -> None:
    ran = []

    def transform(content: bytes) -> bytes:
        ran.append(content)
        hold(client, 43)
        return content + b"!"

    with pytest.raises(LockLost, match="fence 43"):
        change(target, transform, 42)
    assert (ran, state(client)) == ([b'{"n": 1}'], (b"theirs", {"fence": tag(43)}))


def test_the_change_is_not_even_made_where_a_higher_fence_is(target: Target) -> None:
    ran = []
    with pytest.raises(LockLost):
        change(target, lambda content: ran.append(content) or content, 41)  # type: ignore[func-returns-value]  # append, then the value
    assert ran == []


@pytest.mark.parametrize("fence", [41, 42])
def test_a_fence_that_is_not_higher_is_only_a_conflict(target: Target, client: BlobClient, fence: int) -> None:
    ended = change(target, first(lambda: hold(client, fence)), 42)
    assert (ended.conflicts, state(client)) == (1, (b"theirs!", {"fence": tag(42)}))


def increment_while(cli: CliWorld, blob: str, act: Callable[[], object]) -> Ran:
    """Increment under fence 42, while another acts once between the read of the content and the read of the tags."""
    steps = [act]

    def decide(request: Request) -> Fault:
        if operation(request) == "GET tags" and steps:
            steps.pop()()
        return Fault.NONE

    with proxy.running(cli.port, decide) as running:
        return increment(cli.through(running.port), blob, 42)


def test_a_higher_fence_between_content_and_tags_is_seen(cli: CliWorld, blob: str, client: BlobClient) -> None:
    ran = increment_while(cli, blob, lambda: hold(client, 43))
    assert (ran.code, state(client)) == (77, (b"theirs", {"fence": tag(43)}))


def test_a_lower_fence_between_content_and_tags_is_never_taken_for_that_contents(
    cli: CliWorld, blob: str, client: BlobClient
) -> None:
    ran = increment_while(cli, blob, lambda: hold(client, 41, b'{"n": 10}'))
    assert (ran.json["conflicts"], state(client)) == (1, (b'{"n": 11}', {"fence": tag(42)}))


def test_a_blob_deleted_between_content_and_tags_is_not_there(cli: CliWorld, blob: str, client: BlobClient) -> None:
    ran = increment_while(cli, blob, client.delete_blob)
    assert (ran.code, client.exists()) == (44, False)


def test_a_tag_of_that_name_that_is_no_fence_is_left_alone(target: Target, client: BlobClient) -> None:
    client.set_blob_tags({"fence": "wood"})
    with pytest.raises(BadRequest, match="'wood'"):
        change(target, lambda content: content + b"!", 42)
    assert state(client) == (b'{"n": 1}', {"fence": "wood"})


# The metadata


def test_the_last_holder_writes_metadata_and_leaves_the_fence(cli: CliWorld, blob: str, client: BlobClient) -> None:
    codes = [
        cli.call("safe-update", f"blob:{blob}", "--metadata", "--set", f"owner=h{fence}", "--fence", str(fence)).code
        for fence in (42, 44, 43, 41)
    ]
    shown = json.loads(cli.call("blob", "show", blob).stdout)
    # Metadata cannot raise the fence, so 43 is not refused after 44: as the help says.
    assert (codes, shown["metadata"], client.get_blob_tags()["fence"]) == ([0, 0, 0, 77], {"owner": "h43"}, tag(42))


def test_a_higher_fence_before_our_write_of_metadata_ends_the_update(target: Target, client: BlobClient) -> None:
    def transform(content: bytes) -> bytes:
        hold(client, 43)
        return b'{"owner": "us"}'

    with pytest.raises(LockLost, match="fence 43"):
        update(BlobMetadata(target, lock_fence=42), UpdatePlan(transform, OP, fence=42), Deadline(20))
    assert (client.get_blob_properties().metadata, client.get_blob_tags()) == ({}, {"fence": tag(43)})


def test_unchanged_metadata_are_not_written(cli: CliWorld, blob: str, client: BlobClient) -> None:
    before = client.get_blob_properties().etag
    ran = cli.call("safe-update", f"blob:{blob}", "--metadata", "--unset", "owner", "--fence", "43")
    assert (ran.code, ran.json["outcome"], client.get_blob_properties().etag) == (0, "unchanged", before)


def test_metadata_of_what_is_not_there_cannot_be_fenced(target: Target, client: BlobClient) -> None:
    client.delete_blob()
    with pytest.raises(NotFound):
        update(BlobMetadata(target, lock_fence=42), UpdatePlan(lambda old: old, OP, fence=42), Deadline(20))
