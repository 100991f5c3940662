"""``safe-update`` of index tags, and of the metadata of a container or a queue."""

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from azguard.blobs.tags import BlobTags
from azguard.updates.compared import ComparedMetadata
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


@dataclass(frozen=True)
class Part:
    """A part of a resource that is updated: how it is typed, the method after which another may write, how one does."""

    noun: str
    options: tuple[str, ...]
    step: tuple[type, str]
    write: Callable[[CliWorld, str, dict[str, str]], object]
    make: Callable[[CliWorld], str]

    @property
    def name(self) -> str:
        """Return its name among the fields of a result."""
        return self.options[0].removeprefix("--")

    def read(self, cli: CliWorld, name: str) -> Any:
        """Return what is there, without what is azguard's own; this scope has read it then."""
        return cli.call(self.noun, self.name, "get", name).json

    def update(self, cli: CliWorld, name: str, *edits: str) -> Any:
        return update(cli, f"{self.noun}:{name}", *self.options, *edits)


PARTS = [
    Part("blob", ("--tags",), (BlobTags, "acquire"),
         lambda cli, name, tags: client(cli, name).set_blob_tags(tags), make),
    Part("container", ("--metadata", "--allow-race"), (ComparedMetadata, "prepare"),
         lambda cli, name, texts: container(cli, name).set_container_metadata(texts), CliWorld.container),
    Part("queue", ("--metadata", "--allow-race"), (ComparedMetadata, "prepare"),
         lambda cli, name, texts: queue_world.sdk(cli, name).set_queue_metadata(texts), queue_world.queue),
]  # fmt: skip
EACH = pytest.mark.parametrize("part", PARTS, ids=lambda part: part.noun)


@EACH
def test_one_entry_changes_and_what_others_write_meanwhile_stays(
    cli: CliWorld, part: Part, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, rivals = part.make(cli), [{"owner": "ops", "theirs": "1"}]
    part.write(cli, name, {"owner": "ops"})
    adapter, step = part.step
    take: Any = getattr(adapter, step)

    def compete(*arguments: Any) -> Any:
        if rivals:
            part.write(cli, name, rivals.pop())
        return take(*arguments)

    monkeypatch.setattr(adapter, step, compete)
    ran = part.update(cli, name, "--set-string", "ours=1")
    found = part.read(cli, name)
    assert (ran.json["conflicts"], ran.json["etag"]) == (1, found["etag"])
    assert found[part.name] == {"owner": "ops", "theirs": "1", "ours": "1"}


@EACH
def test_what_the_scope_read_follows(cli: CliWorld, part: Part) -> None:
    name = part.make(cli)
    part.read(cli, name)
    assert part.update(cli, name, "--set-string", "a=1").code == 0
    words = (part.noun, part.name, "set", name, part.options[0], "b=1", *part.options[1:])
    assert (cli.call(*words).code, part.read(cli, name)[part.name]) == (0, {"b": "1"})


@EACH
def test_what_is_missing_is_44(cli: CliWorld, part: Part) -> None:
    assert part.update(cli, "nosuch/a" if part.noun == "blob" else "nosuch", "--set-string", "a=1").code == 44


@pytest.mark.parametrize("part", PARTS[1:], ids=lambda part: part.noun)
def test_a_key_works_once(cli: CliWorld, part: Part) -> None:
    name = part.make(cli)
    ran = [part.update(cli, name, "--increment", "n", "--op-id", "k").json for _ in range(2)]
    assert [(each["guard"], each["attempts"]) for each in ran] == [("compare", 1), ("compare", 0)]
    assert part.read(cli, name)["metadata"] == {"n": "1"}


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


def test_the_lease_of_the_caller_guards_the_tags(cli: CliWorld, blob: str) -> None:
    lease = client(cli, blob).acquire_lease(-1).id
    words = (f"blob:{blob}", "--tags", "--set-string", "stage=dead")
    assert (update(cli, *words).code, update(cli, *words, "--lease-id", lease).json["guard"]) == (49, "lease")


@pytest.mark.parametrize("part", [(), ("--create",), ("--metadata",), ("--tags",)])
def test_a_lease_of_the_caller_that_ends_too_early_is_told(cli: CliWorld, blob: str, part: tuple[str, ...]) -> None:
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


def queue_metadata(cli: CliWorld, name: str) -> Any:
    return cli.call("queue", "metadata", "get", name).json["metadata"]


def update_queue(cli: CliWorld, name: str, *words: str) -> Any:
    return update(cli, f"queue:{name}", "--metadata", "--allow-race", *words)


def test_metadata_of_a_queue_go_through_a_command(cli: CliWorld) -> None:
    jobs = queue_world.queue(cli)
    update_queue(cli, jobs, "--set-string", "stage=live")
    ran = cli.call("safe-update", f"queue:{jobs}", "--metadata", "--allow-race", "--", "sed", "s/live/dead/")
    assert (ran.code, queue_metadata(cli, jobs)) == (0, {"stage": "dead"})


def test_a_key_that_is_not_found_on_a_queue_is_unknown(cli: CliWorld) -> None:
    ran = update(cli, f"queue:{queue_world.queue(cli)}", "--metadata", "--op-id", "k", "--status")
    assert (ran.code, ran.json["outcome"]) == (74, "unknown")


def test_an_update_of_a_queue_is_shown_before_it_is_made(cli: CliWorld) -> None:
    jobs = queue_world.queue(cli)
    assert ('+  "a": "1"' in update_queue(cli, jobs, "--set-string", "a=1", "--dry-run").json["diff"]) is True
    assert queue_metadata(cli, jobs) == {}


def test_metadata_of_a_queue_that_become_too_large_are_not_sent(cli: CliWorld) -> None:
    jobs = queue_world.queue(cli)
    assert update_queue(cli, jobs, "--set-string", f"a={'x' * 8192}").code == 65


def test_a_command_cannot_make_the_entry_of_azguard(cli: CliWorld, blob: str) -> None:
    ran = cli.call("safe-update", f"blob:{blob}", "--metadata", "--", "echo", '{"azguardLineage": "x"}')
    assert (ran.code, "cannot be edited" in ran.err) == (65, True)
