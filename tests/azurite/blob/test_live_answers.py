"""What the live service says of tags and tiers and the emulator does not: a scripted service gives its answers."""

from typing import Any

import pytest

from azguard.address import Kind, parse
from azguard.blobs import tags
from azguard.blobs.headers import TierChange, TierSet
from azguard.errors import AzguardError, BadRequest, Changed, OutcomeUnknown
from azguard.guards.resolve import Conditions
from azguard.requests.deadline import Deadline
from tests.support.cases import cases
from tests.support.lease_script import MESSAGE, Answer, now_is, scripted
from tests.support.no_records import NoRecords

ETAG = '"0x8D6D418B6C08663"'
LEASE = "0f3c1111-2222-3333-4444-555566667777"
WANTED = Conditions(guard="lease", expected_etag=ETAG)
ANYHOW = Conditions(guard="none")
GRANTED: Answer = (201, None, {"etag": ETAG, "x-ms-lease-id": LEASE})
NO_TAGS: Answer = (200, None, {MESSAGE: "<Tags><TagSet /></Tags>"})
RELEASED: Answer = (200, None, {"etag": ETAG})
ACCEPTED: Answer = (202, None, {})
BUSY: Answer = (503, "ServerBusy", {})
ARCHIVED: dict[str, Any] = {"x-ms-access-tier": "Archive"}
PENDING: dict[str, Any] = {**ARCHIVED, "x-ms-archive-status": "rehydrate-pending-to-hot"}


def to_hot(conditions: Conditions, *answers: Answer) -> tuple[TierSet, Any]:
    target, transport = scripted(Kind.BLOB, *answers)
    change = TierChange(target, "Hot", "High", conditions, Deadline(2.0, sleep=lambda _: None))
    return change.make(NoRecords()), transport


def test_a_blob_on_its_way_out_of_the_archive_is_said_to_be() -> None:
    done, transport = to_hot(WANTED, GRANTED, now_is("leased", **ARCHIVED), ACCEPTED, RELEASED)
    sent = transport.headers[2]
    assert (done.rehydrating, sent["x-ms-rehydrate-priority"], sent["x-ms-access-tier"]) == (True, "High", "Hot")


def test_a_tier_that_took_effect_at_once_is_not_rehydrating() -> None:
    done, _ = to_hot(ANYHOW, now_is("available"), (200, None, {}))
    assert (done.rehydrating, done.guard) == (False, "none")


def test_a_lost_answer_is_settled_by_the_archive_status_under_the_lease() -> None:
    done, transport = to_hot(WANTED, GRANTED, now_is("leased", **ARCHIVED), BUSY, now_is("leased", **PENDING), RELEASED)
    assert (done.rehydrating, done.attempts, len(transport.asked)) == (True, 1, 5)


def test_a_lost_answer_without_a_lease_is_unknown() -> None:
    with pytest.raises(OutcomeUnknown):
        to_hot(ANYHOW, now_is("available", **ARCHIVED), BUSY, now_is("available", **PENDING))


def test_a_tier_that_was_pending_before_is_no_proof_of_ours() -> None:
    refused: Answer = (409, "BlobBeingRehydrated", {})
    with pytest.raises(BadRequest, match="on its way out of the archive"):
        to_hot(WANTED, GRANTED, now_is("leased", **PENDING), refused, now_is("leased", **PENDING), RELEASED)


def test_an_archived_blob_that_cannot_be_leased_is_left_alone() -> None:
    with pytest.raises(AzguardError) as caught:
        to_hot(WANTED, (409, "BlobArchived", {}), now_is("available", **ARCHIVED))
    assert caught.value.reason == "archived_not_leasable"


@cases("which", "snapshot", "versionid")
def test_the_address_of_a_snapshot_or_version_goes_out_without_a_lease(which: str) -> None:
    found, transport = scripted(Kind.BLOB, now_is("available"), (200, None, {}))
    target = found._replace(address=parse(f"blob:site/a?{which}=2026-11-21T10:00:00.0000000Z").address)
    done = TierChange(target, "Cool", None, ANYHOW, Deadline(2.0)).make(NoRecords())
    assert (done.tier, [f"{which}=2026-11-21" in url for url in transport.urls]) == ("Cool", [True, True])


def test_a_condition_on_tags_that_fails_is_told_by_the_service() -> None:
    target, transport = scripted(
        Kind.BLOB, GRANTED, now_is("leased"), NO_TAGS, (412, "ConditionNotMet", {}), now_is("leased"),
        NO_TAGS, RELEASED, now_is("available"),
    )  # fmt: skip
    conditions = Conditions({"x-ms-if-tags": "\"stage\" = 'live'"}, "conditions")
    with pytest.raises(Changed):
        tags.replace_all(target, {"a": "1"}, conditions, NoRecords(), Deadline(2.0))
    assert transport.headers[3]["x-ms-if-tags"] == "\"stage\" = 'live'"
