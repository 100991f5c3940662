"""The adapters on the emulator: what survives an update, what it costs, and what is refused."""

import gzip
import io
import random
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any
from uuid import uuid4

import pytest
from azure.storage.blob import BlobClient, ContentSettings, StandardBlobTier

from azguard.accounts.account import Target, from_connection_string
from azguard.address import Address, Kind
from azguard.blobs.content.put_blob import put
from azguard.blobs.content.upload import Settings, Upload
from azguard.blobs.updates import BlobContent, BlobMetadata
from azguard.errors import AzguardError, BadRequest, NotFound
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage, new_op
from azguard.updates.resource import CommittedVersion, CurrentVersion, UpdatePlan, UpdateResult
from azguard.updates.update import update
from azguard.wire import client as client_module
from azguard.wire.client import Client
from azguard.wire.connections import Reply
from azguard.wire.failures import Broken, BrokenAnswer
from tests.support import sdk_clients
from tests.support.blob_world import LARGE

MIB = 1 << 20
OP = new_op(b"ours ours ours")
# A blob that azguard wrote last, without choosing a tier.
OURS: dict[str, Any] = {"metadata": {KEY: str(Lineage().after(new_op(b"0" * 12), None))}}
ONLY_NEW = Conditions({"If-None-Match": "*"}, "if-none-match")


@pytest.fixture
def target(connection_string: str) -> Target:
    """Return a blob of its own, in a container that is there."""
    found = Target(from_connection_string(connection_string), Address(Kind.BLOB, ("versioned", f"{uuid4()}/a.json")))
    container = sdk_clients.container(found.account, found.address)
    if not container.exists():
        container.create_container()
    return found


@pytest.fixture
def client(target: Target) -> BlobClient:
    return sdk_clients.blob(target.account, target.address)


@pytest.fixture
def sent(target: Target, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list that every request on the wire is added to, as its method and what it is."""
    requests: list[str] = []
    send = client_module.send

    def noted(sender: Client, method: str, url: str, *rest: Any) -> Reply:
        query = url.partition("?")[2]
        comp = next((part.removeprefix("comp=") for part in query.split("&") if part.startswith("comp=")), "")
        requests.append(f"{method} {comp}".strip())
        return send(sender, method, url, *rest)

    monkeypatch.setattr(client_module, "send", noted)
    return requests


def change(target: Target, transform: Callable[[bytes], bytes], **plan: Any) -> UpdateResult:
    return update(BlobContent(target, plan.get("lease_id")), UpdatePlan(transform, OP, **plan), Deadline(20))


def append(content: bytes) -> bytes:
    return content + b"!"


# What survives


def test_headers_metadata_and_tags_survive(target: Target, client: BlobClient) -> None:
    client.upload_blob(
        b"1",
        metadata={"Owner": "team", "other": "x y"},
        tags={"fence": "42", "a b": "c/d"},
        content_settings=ContentSettings("text/x-own", "x-enc", "de", "inline", "max-age=7"),
    )
    before = client.get_blob_properties()
    change(target, append)
    after = client.get_blob_properties()
    settings = after.content_settings
    assert (
        client.download_blob().readall(),
        {key: value for key, value in after.metadata.items() if key != KEY},
        client.get_blob_tags(),
        (settings.content_type, settings.content_encoding, settings.content_language),
        (settings.content_disposition, settings.cache_control),
    ) == (b"1!", before.metadata, {"fence": "42", "a b": "c/d"}, ("text/x-own", "x-enc", "de"), ("inline", "max-age=7"))


def test_a_chosen_tier_survives_every_update(target: Target, client: BlobClient) -> None:
    client.upload_blob(b"1", standard_blob_tier=StandardBlobTier.COOL)
    for op in ("first-update----", "second-update---"):
        update(BlobContent(target), UpdatePlan(append, op), Deadline(20))
    found = client.get_blob_properties()
    assert (found.blob_tier, client.download_blob().readall()) == ("Cool", b"1!!")


def test_a_tier_chosen_by_a_put_survives_an_update(target: Target, client: BlobClient) -> None:
    chosen = Upload(target, Settings("text/plain", tier="Cool"), ONLY_NEW, Deadline(20), OP).add_lineage()
    put(chosen, io.BytesIO(b"1"), lambda done: None)
    update(BlobContent(target), UpdatePlan(append, "other-update----"), Deadline(20))
    assert client.get_blob_properties().blob_tier == "Cool"


def test_a_chosen_tier_survives_an_update_of_metadata_and_content(target: Target, client: BlobClient) -> None:
    client.upload_blob(b"1", standard_blob_tier=StandardBlobTier.COOL)
    update(BlobMetadata(target), UpdatePlan(lambda _: b'{"owner": "ops"}', OP), Deadline(20))
    update(BlobContent(target), UpdatePlan(append, "other-update----"), Deadline(20))
    assert client.get_blob_properties().blob_tier == "Cool"


def test_what_was_never_set_stays_unset(target: Target, client: BlobClient) -> None:
    client.upload_blob(b"1")
    change(target, append)
    after = client.get_blob_properties()
    assert (after.blob_tier_inferred, after.tag_count, after.content_settings.content_encoding) == (True, None, None)


def test_compressed_content_reaches_the_transform_byte_for_byte(target: Target, client: BlobClient) -> None:
    packed = gzip.compress(b"text", mtime=0)
    client.upload_blob(packed, content_settings=ContentSettings(content_encoding="gzip"))
    seen = []
    change(target, lambda content: seen.append(content) or gzip.compress(b"new", mtime=0))  # type: ignore[func-returns-value]  # append, then the value
    assert (seen, client.download_blob(decompress=False).readall()) == ([packed], gzip.compress(b"new", mtime=0))


def test_a_new_blob_gets_the_type_of_its_name(target: Target, client: BlobClient) -> None:
    ended = change(target, append, create=b"{}")
    found = client.get_blob_properties()
    assert (ended.created, ended.committed.etag, found.content_settings.content_type, found.metadata) == (
        True,
        found.etag,
        "application/json",
        {KEY: f"{OP}.-,all"},
    )


def test_the_result_is_what_is_there(target: Target, client: BlobClient) -> None:
    client.upload_blob(b"1")
    before = client.get_blob_properties()
    ended = change(target, append)
    found = client.get_blob_properties()
    assert ended == UpdateResult(
        committed=CommittedVersion(found.etag, found.last_modified, None),
        outcome="committed",
        guard="if-match",
        attempts=1,
        conflicts=0,
        doubts=0,
        content=b"1!",
        lineage=f"{OP}.{before.etag.strip(chr(34))}",
        created=False,
        base=before.etag,
        base_length=1,
    )


def test_an_unchanged_blob_keeps_its_version(target: Target, client: BlobClient) -> None:
    client.upload_blob(b"1")
    before = client.get_blob_properties()
    ended = change(target, lambda content: content)
    assert (ended.outcome, ended.committed) == ("unchanged", CommittedVersion(before.etag, before.last_modified))


def test_without_lineage_the_metadata_stays_as_it_was(target: Target, client: BlobClient) -> None:
    client.upload_blob(b"1", metadata={"a": "b"})
    change(target, append, stamps=False)
    assert client.get_blob_properties().metadata == {"a": "b"}


def test_without_lineage_the_one_that_is_there_is_kept(target: Target, client: BlobClient) -> None:
    others = str(Lineage().after(new_op(b"0" * 12), None))
    client.upload_blob(b"1", metadata={KEY: others})
    change(target, append, stamps=False)
    assert client.get_blob_properties().metadata == {KEY: others}


# What it costs


@pytest.mark.parametrize(
    ("uploaded", "plan", "requests"),
    [
        (OURS, {}, ["GET", "PUT"]),
        (OURS | {"tags": {"a": "b"}}, {}, ["GET", "GET tags", "PUT"]),
        (OURS, {"guard_by_lease": True}, ["GET", "PUT lease", "PUT", "PUT lease"]),
        (OURS, {"create": b""}, ["GET", "PUT"]),
        ({}, {}, ["GET", "HEAD", "PUT"]),
    ],
    ids=["plain", "tags", "lease", "create, but it is there", "another tool wrote it: the tier is asked for"],
)
def test_an_update_costs_no_more_requests_than_it_must(
    target: Target,
    client: BlobClient,
    sent: list[str],
    uploaded: dict[str, Any],
    plan: dict[str, Any],
    requests: list[str],
) -> None:
    client.upload_blob(b"1", **uploaded)
    sent.clear()
    change(target, append, **plan)
    assert sent == requests


def test_an_empty_blob_costs_no_more(target: Target, client: BlobClient, sent: list[str]) -> None:
    client.upload_blob(b"")
    sent.clear()
    change(target, append)
    assert (sent.count("PUT"), client.download_blob().readall()) == (1, b"!")


def test_large_content_goes_as_blocks_with_one_lineage(target: Target, client: BlobClient, sent: list[str]) -> None:
    content = random.Random(1).randbytes(13 * MIB)
    client.upload_blob(content, metadata={"a": "b"}, tags={"c": "d"})
    sent.clear()
    ended = change(target, append)
    found = client.get_blob_properties()
    assert client.download_blob().readall() == content + b"!"
    assert (found.etag, found.metadata, client.get_blob_tags()) == (
        ended.committed.etag,
        {"a": "b", KEY: ended.lineage},
        {"c": "d"},
    )
    assert (sent[0], sent.count("PUT block"), sent.count("PUT blocklist"), sent.count("PUT")) == ("GET", 3, 1, 0)


# What is refused


@pytest.mark.parametrize("kind", ["append", "page"])
def test_other_types_of_blob_are_refused(target: Target, client: BlobClient, kind: str) -> None:
    if kind == "append":
        client.create_append_blob()
    else:
        client.create_page_blob(512)
    with pytest.raises(BadRequest, match="rewrites block blobs"):
        change(target, append)


@pytest.mark.parametrize("kind", ["append", "page"])
def test_the_metadata_of_other_types_can_be_updated(target: Target, client: BlobClient, kind: str) -> None:
    if kind == "append":
        client.create_append_blob()
    else:
        client.create_page_blob(512)
    update(BlobMetadata(target), UpdatePlan(lambda _: b'{"a": "b"}', OP), Deadline(20))
    assert client.get_blob_properties().metadata["a"] == "b"


def test_a_container_that_is_not_there_cannot_be_created_in(target: Target) -> None:
    nowhere = Target(target.account, Address(Kind.BLOB, ("no-such-container", "a")))
    with pytest.raises(NotFound, match="no container"):
        change(nowhere, append, create=b"")


def test_metadata_of_what_is_not_there_is_not_found(target: Target) -> None:
    with pytest.raises(NotFound, match="there is no blob"):
        update(BlobMetadata(target), UpdatePlan(lambda _: b"{}", OP), Deadline(20))


# Metadata


def test_metadata_is_updated_and_the_content_left_alone(target: Target, client: BlobClient) -> None:
    client.upload_blob(b"1", metadata={"a": "1"}, content_settings=ContentSettings("text/x-own"))
    seen = []
    ended = update(
        BlobMetadata(target),
        UpdatePlan(lambda content: seen.append(content) or b'{"a": "2", "b": "3"}', OP),  # type: ignore[func-returns-value]  # append, then the value
        Deadline(20),
    )
    found = client.get_blob_properties()
    assert (seen, found.metadata, found.etag, found.content_settings.content_type) == (
        [b'{\n  "a": "1"\n}\n'],
        {"a": "2", "b": "3", KEY: ended.lineage},
        ended.committed.etag,
        "text/x-own",
    )


def test_metadata_of_the_same_meaning_is_unchanged(target: Target, client: BlobClient) -> None:
    client.upload_blob(b"1", metadata={"a": "1"})
    ended = update(BlobMetadata(target), UpdatePlan(lambda _: b'{"a":"1"}', OP), Deadline(20))
    assert ended.outcome == "unchanged"


# Lost answers


@frozen
class Losing(BlobContent):
    """The content of a blob whose writes are answered as the script says: after or without doing them."""

    script: list[str] = field(default_factory=list)

    def prepare(
        self, state: CurrentVersion, content: bytes, lineage: Lineage | None, lease_id: str | None, deadline: Deadline
    ) -> Callable[[str | None], CommittedVersion]:
        commit = super().prepare(state, content, lineage, lease_id, deadline)

        def send(held: str | None) -> CommittedVersion:
            what = self.script.pop(0) if self.script else "answered"
            landed = commit(held) if what != "not done" else CommittedVersion(None)
            if what != "answered":
                raise BrokenAnswer(Broken.TIMED_OUT)
            return landed

        return send


@pytest.mark.parametrize("script", [["done"], ["not done"], ["not done", "done"], ["not done", "not done"]])
@pytest.mark.parametrize("plan", [{}, {"guard_by_lease": True}, {"create": b""}], ids=["lineage", "lease", "create"])
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("size", [1, LARGE])
def test_a_lost_answer_is_settled_and_the_etag_is_ours(
    target: Target, client: BlobClient, script: list[str], plan: dict[str, Any], size: int
) -> None:
    if "create" not in plan:
        client.upload_blob(b"x" * size)
    resource = Losing(target, script=list(script))
    ended = update(resource, UpdatePlan(lambda content: b"y" * size, OP, **plan), Deadline(20))
    found = client.get_blob_properties()
    assert (ended.outcome, ended.committed.etag, found.size, found.lease.state) == (
        "committed",
        found.etag,
        size,
        "available",
    )


def test_a_foreign_change_of_headers_hides_which_version_was_ours(target: Target, client: BlobClient) -> None:
    client.upload_blob(b"1")

    @frozen
    class Touched(Losing):
        def read(self, deadline: Deadline) -> CurrentVersion:
            if OP in (client.get_blob_properties().metadata.get(KEY) or ""):
                client.set_http_headers(ContentSettings("text/x-theirs"))
            return super().read(deadline)

    ended = update(Touched(target, script=["done"]), UpdatePlan(append, OP), Deadline(20))
    assert (ended.outcome, ended.committed) == ("committed", CommittedVersion(None))


def test_giving_up_fences_and_changes_nothing_but_the_version(target: Target, client: BlobClient) -> None:
    client.upload_blob(b"1", metadata={"a": "b"}, content_settings=ContentSettings("text/x-own"))
    before = client.get_blob_properties()
    resource = Losing(target, script=["not done"])
    with pytest.raises(AzguardError) as caught:
        update(resource, UpdatePlan(append, OP, max_attempts=1), Deadline(20))
    after = client.get_blob_properties()
    lineage = Lineage.parse(after.metadata.pop(KEY))
    assert (caught.value.kind, client.download_blob().readall(), after.metadata, OP in lineage) == (
        "unavailable",
        b"1",
        {"a": "b"},
        False,
    )
    assert (lineage.successor(before.etag) is not None, after.content_settings.content_type) == (True, "text/x-own")


def test_a_blob_overwritten_while_it_is_read_is_read_again(target: Target, client: BlobClient) -> None:
    old, new = b"o" * (13 * MIB), b"n" * (13 * MIB)
    client.upload_blob(old)
    overwrite = iter([lambda: client.upload_blob(new, overwrite=True)])

    class Overwritten(BlobContent):
        pass

    found = _read_with(Overwritten(target), overwrite)
    assert found.content == new


def test_a_blob_deleted_while_it_is_read_is_missing(target: Target, client: BlobClient) -> None:
    client.upload_blob(b"o" * (13 * MIB))
    found = _read_with(BlobContent(target), iter([client.delete_blob]))
    assert (found.etag, found.content) == (None, b"")


def _read_with(resource: BlobContent, between: Iterator[Callable[[], object]]) -> CurrentVersion:
    """Read a large blob, with something happening between its first range and the next."""
    from azguard.blobs.content.download import BlobDownload

    original = BlobDownload._read_range

    def read_range(self: Any, offset: int, length: int) -> bytes:
        next(between, lambda: None)()
        return original(self, offset, length)

    BlobDownload._read_range = read_range  # type: ignore[method-assign]  # of this test alone
    try:
        return resource.read(Deadline(20))
    finally:
        BlobDownload._read_range = original  # type: ignore[method-assign]  # of this test alone


def test_a_lease_is_told_in_the_state(target: Target, client: BlobClient) -> None:
    client.upload_blob(b"1")
    resource = BlobContent(target)
    free = (resource.read(Deadline(20)).lease_duration, resource.is_leased(Deadline(20)))
    lease = client.acquire_lease(-1)
    held = (resource.read(Deadline(20)).lease_duration, resource.is_leased(Deadline(20)))
    lease.release()
    assert (free, held) == ((None, False), ("infinite", True))


def test_an_infinite_lease_is_a_lock_at_once(target: Target, client: BlobClient, sent: list[str]) -> None:
    client.upload_blob(b"1", **OURS)
    lease = client.acquire_lease(-1)
    sent.clear()
    with pytest.raises(AzguardError) as caught:
        change(target, append)
    # A refusal may be of the second copy of a request that the network sent twice, so the lineage is read again.
    assert (caught.value.kind, sent) == ("locked", ["GET", "PUT", "GET"])
    assert change(target, append, lease_id=lease.id).guard == "if-match"
