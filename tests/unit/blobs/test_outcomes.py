"""What is found of a write whose answer was lost, by what is there: ours, another's, or not to be known."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from azure.storage.blob import ContentSettings

from azguard.blobs import deletes, headers
from azguard.blobs.content import append_blob, page_write, upload
from azguard.blobs.content.append_blob import End, Proof
from azguard.blobs.content.page_blob import PageWrite
from azguard.blobs.content.upload import BlockLists, ListedBlock, Settings, Upload
from azguard.errors import Locked, NotFound
from azguard.guards.resolve import Conditions
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY, Lineage, new_op
from azguard.resources import properties
from tests.support.fake_resource import TARGET

OURS, THEIRS = new_op(b"a" * 12), new_op(b"b" * 12)
LEASE = "0f3c1111-2222-3333-4444-555566667777"
BORN, LATER = datetime(2026, 1, 31, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)
PATIENCE = Deadline()
GUARDED = Conditions({"If-Match": '"0"'}, "if-match", '"0"')
UNKNOWN, COMMITTED, NEVER, NOT_YET = Verdict.UNKNOWN, Verdict.COMMITTED, Verdict.NEVER, Verdict.NOT_YET


class Blob:
    """The blob that is there; None is none."""

    def __init__(self) -> None:
        self.found: SimpleNamespace | None = None
        self.content = b""
        self.blocks: list[str] = []
        self.lease_id: str | None = None

    def is_now(self, **facts: Any) -> None:
        md5 = facts.pop("md5", None)
        usual = {"etag": '"1"', "metadata": {}, "size": 4, "creation_time": BORN, "blob_type": "AppendBlob"}
        usual |= {"append_blob_committed_block_count": 1, "last_modified": LATER, "version_id": None}
        self.found = SimpleNamespace(**usual | {"page_blob_sequence_number": 0, **facts})
        self.found.content_settings = ContentSettings(content_md5=md5)

    def fetch(self, target: Any, conditions: Conditions, _deadline: Deadline) -> Any:
        if self.found is None:
            raise NotFound(f"there is no {target}")
        if conditions.lease_id not in (None, self.lease_id):
            raise Locked("not held")
        return self.found

    def list_blocks(self) -> BlockLists:
        return BlockLists(
            [ListedBlock(each, 1) for each in self.blocks], [], None if self.found is None else self.found.etag
        )


@pytest.fixture
def blob(monkeypatch: pytest.MonkeyPatch) -> Blob:
    made = Blob()
    monkeypatch.setattr(properties, "fetch", made.fetch)
    monkeypatch.setattr(append_blob, "read_range", lambda _, offset, length, *__: made.content[offset:][:length])
    monkeypatch.setattr(upload, "fetch_blocks", lambda *_: made.list_blocks())
    return made


def put_of(conditions: Conditions = GUARDED, *, stamped: bool = True, md5: bytes | None = None) -> Upload:
    made = Upload(TARGET, Settings(), conditions, PATIENCE, OURS, md5=md5)
    return made.add_lineage(wanted=stamped)


@pytest.mark.parametrize(
    ("stamped", "md5", "same"),
    [(False, b"ours", True), (False, b"other", False), (False, None, False), (True, b"ours", False)],
)
def test_equal_content_may_be_ours_only_where_no_lineage_tells(
    blob: Blob, stamped: bool, md5: bytes | None, same: bool
) -> None:
    blob.is_now(md5=md5)
    found = upload.find_outcome(put_of(stamped=stamped, md5=b"ours"), (), PATIENCE)
    assert (found.verdict, found.may_be_ours) == (UNKNOWN, same)


@pytest.mark.parametrize(
    ("there", "verdict"), [(["a", "b"], COMMITTED), (["b", "a"], UNKNOWN), (["a", "b", "c"], UNKNOWN), (["a"], UNKNOWN)]
)
def test_a_blob_is_ours_that_consists_of_our_blocks_alone(blob: Blob, there: list[str], verdict: Verdict) -> None:
    blob.is_now()
    blob.blocks = there
    found = upload.find_outcome(put_of(), ["a", "b"], PATIENCE)
    # Without our metadata the version is another's, though its content is ours.
    assert (found.verdict, found.answer) == (verdict, {"etag": None} if verdict is COMMITTED else None)


@pytest.mark.parametrize(("newest", "etag"), [(OURS, '"1"'), (THEIRS, None)])
def test_a_version_is_said_to_be_ours_only_while_no_write_followed(blob: Blob, newest: str, etag: str | None) -> None:
    made = put_of()
    # What the next write replaced may be a version of a program that has kept our lineage.
    followed = {KEY: f"{THEIRS}.2,{made.metadata[KEY]}"}
    blob.is_now(metadata=made.metadata if newest == OURS else followed)
    assert blob.found is not None
    blob.found.content_settings.content_type = "application/octet-stream"
    found = upload.find_outcome(made, (), PATIENCE)
    assert (found.verdict, (found.answer or {}).get("etag")) == (COMMITTED, etag)


@pytest.mark.parametrize(
    ("facts", "content", "verdict"),
    [
        ({"size": 4}, b"....", NOT_YET),
        ({"size": 7}, b"....new", UNKNOWN),
        ({"size": 7}, b"....old", NEVER),
        ({"size": 6}, b"....ne", NEVER),
        # Another blob of its name, so that what stands there tells nothing.
        ({"size": 7, "creation_time": LATER}, b"....old", UNKNOWN),
        ({"size": 4, "creation_time": LATER}, b"....", UNKNOWN),
        ({"size": 3}, b"...", UNKNOWN),
        ({"size": 7, "append_blob_committed_block_count": 0}, b"....old", UNKNOWN),
        ({"size": 7, "blob_type": "BlockBlob"}, b"....old", UNKNOWN),
    ],
)
def test_bytes_in_our_place_tell_of_ours(blob: Blob, facts: dict[str, Any], content: bytes, verdict: Verdict) -> None:
    blob.is_now(**facts)
    blob.content = content
    assert (
        append_blob.find_append_outcome(TARGET, End(4, BORN, 1), b"new", Proof.NONE, None, PATIENCE).verdict is verdict
    )


@pytest.mark.parametrize(
    ("proof", "held", "verdict"),
    [
        (Proof.CONTENT, None, COMMITTED),
        (Proof.LEASE, LEASE, COMMITTED),
        (Proof.LEASE, "another", UNKNOWN),
        (Proof.NONE, LEASE, UNKNOWN),
    ],
)
def test_equal_bytes_are_ours_only_by_proof(blob: Blob, proof: Proof, held: str | None, verdict: Verdict) -> None:
    blob.is_now(size=7)
    blob.content, blob.lease_id = b"....new", held
    found = append_blob.find_append_outcome(TARGET, End(4, BORN, 1), b"new", proof, LEASE, PATIENCE)
    assert (found.verdict, found.may_be_ours) == (verdict, verdict is UNKNOWN)


@pytest.mark.parametrize("lease_id", [None, LEASE])
@pytest.mark.parametrize(
    ("etag", "alone", "verdict", "same"),
    [('"0"', True, COMMITTED, True), ('"0"', False, UNKNOWN, True), (None, False, UNKNOWN, False)],
)
def test_a_blob_that_is_gone_was_deleted_by_us_only_if_no_other_could(
    blob: Blob, etag: str | None, alone: bool, verdict: Verdict, same: bool, lease_id: str | None
) -> None:
    before = deletes.BlobBefore(etag, alone=alone)
    assert blob.found is None
    found = deletes._find_outcome(TARGET, Conditions(lease_id=lease_id), PATIENCE, before)
    assert (found.verdict, found.may_be_ours) == (verdict, same)


@pytest.mark.parametrize(
    ("conditions", "before", "facts", "verdict", "same"),
    [
        (GUARDED, '"0"', {"etag": '"0"'}, NOT_YET, False),
        (GUARDED, '"0"', {}, UNKNOWN, True),
        # It was another version before the delete was sent, or that is not known.
        (GUARDED, '"1"', {}, UNKNOWN, False),
        (GUARDED, None, {}, UNKNOWN, False),
        (GUARDED, '"0"', {"metadata": {KEY: str(Lineage().after(THEIRS, '"0"'))}}, NEVER, False),
        (Conditions(lease_id=LEASE), '"0"', {}, NOT_YET, False),
        (Conditions(), '"0"', {}, UNKNOWN, True),
        (Conditions(), '"1"', {}, UNKNOWN, False),
    ],
)
def test_a_blob_that_is_there_tells_whether_a_delete_was_done_or_may_still_come(
    blob: Blob, conditions: Conditions, before: str | None, facts: dict[str, Any], verdict: Verdict, same: bool
) -> None:
    blob.is_now(**facts)
    found = deletes._find_outcome(TARGET, conditions, PATIENCE, deletes.BlobBefore(before))
    assert (found.verdict, found.may_be_ours) == (verdict, same)


@pytest.mark.parametrize("is_there", [True, False])
def test_a_delete_of_a_version_that_was_replaced_before_it_was_sent_is_never_done(blob: Blob, is_there: bool) -> None:
    blob.is_now(etag='"1"', lease=SimpleNamespace(duration=None))
    before = deletes._look_before(TARGET, GUARDED, None, PATIENCE)
    blob.found = blob.found if is_there else None
    found = deletes._find_outcome(TARGET, GUARDED, PATIENCE, before)
    assert (found.verdict, found.may_be_ours) == (NEVER, False)


@pytest.mark.parametrize(
    ("etag", "equal", "lease_id", "verdict"),
    [
        ('"0"', True, None, NOT_YET),
        ('"1"', True, LEASE, COMMITTED),
        ('"1"', False, LEASE, UNKNOWN),
        ('"1"', True, None, UNKNOWN),
    ],
)
def test_a_version_that_has_what_was_sent_is_ours_only_under_a_lease(
    blob: Blob, etag: str, equal: bool, lease_id: str | None, verdict: Verdict
) -> None:
    blob.is_now(etag=etag)
    blob.lease_id = LEASE
    before = SimpleNamespace(etag='"0"')
    assert headers.find_outcome(before, TARGET, lease_id, PATIENCE, lambda _: equal).verdict is verdict


@pytest.mark.parametrize(("content", "same"), [(bytes(512), True), (b"x" * 512, False)])
def test_pages_without_a_lease_are_never_known_to_be_ours(blob: Blob, content: bytes, same: bool) -> None:
    blob.is_now()
    blob.content = content
    given = PageWrite(target=TARGET, conditions=Conditions(), deadline=PATIENCE, offset=0)
    found = page_write._find_outcome(given, page_write._Pages(0, 512), '"0"', None, PATIENCE)
    assert (found.verdict, found.may_be_ours) == (UNKNOWN, same)
