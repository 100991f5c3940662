"""``safe-update`` of index tags, and of the metadata of a container or a queue."""

import shlex
import uuid
from typing import Any

import pytest

from azguard.blobs.metadata import ContainerMetadata
from azguard.blobs.tags import BlobTags
from azguard.queues.queues import QueueMetadataUpdate
from azguard.requests.lineage import KEY, Lineage
from tests.support import forked, queue_world
from tests.support.blob_world import client, make
from tests.support.cli_world import CliWorld

FENCE = f"{7:019d}"


@pytest.fixture
def blob(cli: CliWorld) -> str:
    return make(cli, tags={"stage": "live", "n": "1"})


def update(cli: CliWorld, address: str, *words: str) -> Any:
    return cli.call("safe-update", address, *words, "-o", "json")


def container(cli: CliWorld, name: str) -> Any:
    from azure.storage.blob import ContainerClient

    return ContainerClient.from_connection_string(str(cli.connection_string), name)


def test_one_tag_changes_under_a_lease_and_the_others_stay(cli: CliWorld, blob: str) -> None:
    before = client(cli, blob).get_blob_properties().etag
    ran = update(cli, f"blob:{blob}", "--tags", "--set-string", "stage=dead", "--unset", "n", "--set", "m=3")
    left = client(cli, blob).get_blob_properties()
    assert (ran.json["guard"], ran.json["etag"], client(cli, blob).get_blob_tags()) == (
        "lease", cli.call("blob", "tags", "get", blob).json["etag"], {"stage": "dead", "m": "3"},
    )  # fmt: skip
    assert (left.etag, left.lease.state) == (before, "available")


def test_a_filter_gets_and_gives_a_json_object(cli: CliWorld, blob: str) -> None:
    ran = cli.fork("safe-update", f"blob:{blob}", "--tags", "--", "sed", "s/live/dead/")
    assert (ran.code, client(cli, blob).get_blob_tags()) == (0, {"stage": "dead", "n": "1"})


def test_tags_that_another_writes_meanwhile_are_kept(cli: CliWorld, blob: str, monkeypatch: pytest.MonkeyPatch) -> None:
    acquire, rivals = BlobTags.acquire, [{"stage": "live", "n": "1", "theirs": "1"}]

    def compete(self: BlobTags, *arguments: Any) -> None:
        if rivals:
            client(cli, blob).set_blob_tags(rivals.pop())
        acquire(self, *arguments)

    monkeypatch.setattr(BlobTags, "acquire", compete)
    ran = update(cli, f"blob:{blob}", "--tags", "--set-string", "ours=1")
    assert (ran.code, ran.json["conflicts"], client(cli, blob).get_blob_tags()) == (
        0, 1, {"stage": "live", "n": "1", "theirs": "1", "ours": "1"},
    )  # fmt: skip


def test_tags_are_texts_as_metadata_are(cli: CliWorld, blob: str) -> None:
    refused = [update(cli, f"blob:{blob}", "--tags", *edit).code for edit in (("--append", "x"), ("--set", "a=[]"))]
    ran = update(cli, f"blob:{blob}", "--tags", "--set", "stage=dead", "--increment", "n=2")
    assert (refused, ran.code, client(cli, blob).get_blob_tags()) == ([2, 2], 0, {"stage": "dead", "n": "3"})


@pytest.mark.parametrize("edit", [("--unset", "fence"), ("--set", "fence=9")])
def test_the_tag_of_a_fence_cannot_be_edited_under_a_fence(cli: CliWorld, edit: tuple[str, ...]) -> None:
    blob = make(cli, tags={"fence": FENCE})
    codes = [update(cli, f"blob:{blob}", "--tags", *edit, "--fence", "9", *dry).code for dry in ((), ("--dry-run",))]
    assert (codes, client(cli, blob).get_blob_tags()) == ([65, 65], {"fence": FENCE})


def test_unchanged_tags_are_not_written(cli: CliWorld, blob: str) -> None:
    ran = update(cli, f"blob:{blob}", "--tags", "--set-string", "stage=live")
    assert (ran.code, ran.json["outcome"], ran.json["attempts"]) == (0, "unchanged", 0)


def test_what_the_scope_read_of_the_tags_follows(cli: CliWorld, blob: str) -> None:
    cli.call("blob", "tags", "get", blob)
    assert update(cli, f"blob:{blob}", "--tags", "--set-string", "stage=dead").code == 0
    assert cli.call("blob", "tags", "set", blob, "--tags", "a=1").code == 0


def test_the_lease_of_the_caller_guards_the_tags(cli: CliWorld, blob: str) -> None:
    lease = client(cli, blob).acquire_lease(-1).id
    words = (f"blob:{blob}", "--tags", "--set-string", "stage=dead")
    assert (update(cli, *words).code, update(cli, *words, "--lease-id", lease).json["guard"]) == (49, "lease")


@pytest.mark.parametrize("part", [(), ("--create",), ("--metadata",), ("--tags",)])
def test_a_lease_of_the_caller_that_ends_before_the_write_is_told_as_that(
    cli: CliWorld, blob: str, part: tuple[str, ...]
) -> None:
    lease = client(cli, blob).acquire_lease(-1).id
    release = shlex.join(forked.command("lease", "release", f"blob:{blob}", "--lease-id", lease, "-o", "none"))
    before = client(cli, blob).get_blob_properties().etag
    change = ("--", "sh", "-c", f"""printf '{{"n": "2"}}'; {release}""")
    ran = update(cli, f"blob:{blob}", "--lease-id", lease, *part, *change)
    assert (ran.code, client(cli, blob).get_blob_properties().etag) == (49, before), ran.err


@pytest.mark.parametrize(("fence", "code"), [("6", 77), ("8", 0)])
def test_a_fence_guards_the_tags(cli: CliWorld, fence: str, code: int) -> None:
    blob = make(cli, tags={"fence": FENCE, "n": "1"})
    ran = update(cli, f"blob:{blob}", "--tags", "--set-string", "n=2", "--fence", fence)
    left = {"fence": FENCE, "n": "1"} if code else {"fence": f"{8:019d}", "n": "2"}
    assert (ran.code, client(cli, blob).get_blob_tags()) == (code, left)


@pytest.mark.parametrize("edit", ["a(b)=1", f"a={'x' * 300}"])
def test_tags_that_the_service_would_refuse_are_not_sent(cli: CliWorld, blob: str, edit: str) -> None:
    assert update(cli, f"blob:{blob}", "--tags", "--set-string", edit).code == 65


def test_metadata_of_a_container_change_and_the_others_stay(cli: CliWorld) -> None:
    site = f"t{uuid.uuid4().hex[:20]}"
    assert cli.call("container", "create", site).code == 0
    cli.call("container", "metadata", "set", site, "--metadata", "owner=ops", "--last-writer-wins")
    ran = update(cli, f"container:{site}", "--metadata", "--set-string", "stage=live", "--allow-race")
    found = container(cli, site).get_container_properties().metadata
    entries = Lineage.parse(found.pop(KEY)).entries
    assert (ran.json["guard"], found, len(entries), [parent for _, parent in entries if parent == "?"]) == (
        "compare", {"owner": "ops", "stage": "live"}, 3, [],
    )  # fmt: skip


def test_a_key_works_once_on_a_container(cli: CliWorld) -> None:
    words = (f"container:{cli.container()}", "--metadata", "--set-string", "n=1", "--allow-race", "--op-id", "k")
    assert [update(cli, *words).json["attempts"] for _ in range(2)] == [1, 0]


def test_metadata_of_a_container_that_another_changes_meanwhile_are_kept(
    cli: CliWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = cli.container()
    prepare, rivals = ContainerMetadata.prepare, [{"theirs": "1"}]

    def compete(self: ContainerMetadata, *arguments: Any) -> Any:
        if rivals:
            container(cli, site).set_container_metadata(rivals.pop())
        return prepare(self, *arguments)

    monkeypatch.setattr(ContainerMetadata, "prepare", compete)
    ran = update(cli, f"container:{site}", "--metadata", "--set-string", "ours=1", "--allow-race")
    found = container(cli, site).get_container_properties().metadata
    assert (ran.json["conflicts"], {key: found[key] for key in found if key != KEY}) == (
        1,
        {"theirs": "1", "ours": "1"},
    )


def test_a_missing_container_is_44(cli: CliWorld) -> None:
    assert update(cli, "container:nosuch", "--metadata", "--set-string", "a=1", "--allow-race").code == 44


def queue_metadata(cli: CliWorld, name: str) -> Any:
    return cli.call("queue", "metadata", "get", name).json["metadata"]


def update_queue(cli: CliWorld, name: str, *words: str) -> Any:
    return update(cli, f"queue:{name}", "--metadata", "--allow-race", *words)


def test_metadata_of_a_queue_change_and_the_others_stay(cli: CliWorld) -> None:
    jobs = queue_world.queue(cli)
    cli.call("queue", "metadata", "set", jobs, "--metadata", "owner=ops", "--last-writer-wins")
    ran = update_queue(cli, jobs, "--set-string", "stage=live")
    found = cli.call("queue", "metadata", "get", jobs).json
    assert (ran.json["guard"], ran.json["etag"], found["metadata"]) == (
        "compare", found["etag"], {"owner": "ops", "stage": "live"},
    )  # fmt: skip


def test_metadata_of_a_queue_go_through_a_command(cli: CliWorld) -> None:
    jobs = queue_world.queue(cli)
    update_queue(cli, jobs, "--set-string", "stage=live")
    ran = cli.call("safe-update", f"queue:{jobs}", "--metadata", "--allow-race", "--", "sed", "s/live/dead/")
    assert (ran.code, queue_metadata(cli, jobs)) == (0, {"stage": "dead"})


def test_metadata_of_a_queue_that_another_changes_meanwhile_are_kept(
    cli: CliWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = queue_world.queue(cli)
    prepare, rivals = QueueMetadataUpdate.prepare, [{"theirs": "1"}]

    def compete(self: QueueMetadataUpdate, *arguments: Any) -> Any:
        if rivals:
            queue_world.sdk(cli, jobs).set_queue_metadata(rivals.pop())
        return prepare(self, *arguments)

    monkeypatch.setattr(QueueMetadataUpdate, "prepare", compete)
    ran = update_queue(cli, jobs, "--set-string", "ours=1")
    assert (ran.json["conflicts"], queue_metadata(cli, jobs)) == (1, {"theirs": "1", "ours": "1"})


def test_a_key_works_once_on_a_queue(cli: CliWorld) -> None:
    jobs = queue_world.queue(cli)
    assert [update_queue(cli, jobs, "--increment", "n", "--op-id", "k").json["attempts"] for _ in range(2)] == [1, 0]
    assert queue_metadata(cli, jobs) == {"n": "1"}


def test_a_key_that_is_not_found_on_a_queue_is_unknown(cli: CliWorld) -> None:
    ran = update(cli, f"queue:{queue_world.queue(cli)}", "--metadata", "--op-id", "k", "--status")
    assert (ran.code, ran.json["outcome"]) == (74, "unknown")


def test_what_the_scope_read_of_the_metadata_of_a_queue_follows(cli: CliWorld) -> None:
    jobs = queue_world.queue(cli)
    queue_metadata(cli, jobs)
    assert update_queue(cli, jobs, "--set-string", "a=1").code == 0
    assert cli.call("queue", "metadata", "set", jobs, "--metadata", "b=1", "--allow-race").code == 0


def test_an_update_of_a_queue_is_shown_before_it_is_made(cli: CliWorld) -> None:
    jobs = queue_world.queue(cli)
    assert ('+  "a": "1"' in update_queue(cli, jobs, "--set-string", "a=1", "--dry-run").json["diff"]) is True
    assert queue_metadata(cli, jobs) == {}


def test_metadata_of_a_queue_that_become_too_large_are_not_sent(cli: CliWorld) -> None:
    jobs = queue_world.queue(cli)
    assert update_queue(cli, jobs, "--set-string", f"a={'x' * 8192}").code == 65


def test_a_missing_queue_is_44(cli: CliWorld) -> None:
    assert update_queue(cli, "nosuch", "--set-string", "a=1").code == 44


def test_a_command_cannot_make_the_entry_of_azguard(cli: CliWorld, blob: str) -> None:
    ran = cli.call("safe-update", f"blob:{blob}", "--metadata", "--", "echo", '{"azguardLineage": "x"}')
    assert (ran.code, "cannot be edited" in ran.err) == (65, True)
