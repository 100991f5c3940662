"""When the claim of another worker is over: by the service's clock alone, and with room for its skew."""

from datetime import UTC, datetime, timedelta

import pytest

from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.errors import ConfigError
from azguard.requests.lineage import Lineage
from azguard.tables.entities import Stored
from azguard.worker.handling import ClaimHold
from azguard.worker.once import OnceTable
from azguard.worker.settings import Claimed, DoneBefore, HeldByAnother, MessageFacts
from tests.support.cases import cases
from tests.support.fake_resource import TARGET, Clock

WRITTEN = datetime(2026, 1, 31, 12, tzinfo=UTC)
ONCE = OnceTable(Target(TARGET.account, Address(Kind.TABLE, ("once",))), "me")
SECONDS = 30


def claimed() -> Stored:
    row = {"PartitionKey": "jobs", "RowKey": "k", "state": "claimed", "claim": "c", "by": "they", "seconds": SECONDS}
    return Stored(row, f"""W/"datetime'{WRITTEN:%Y-%m-%dT%H}%3A00%3A00.0Z'\"""", Lineage())


@cases(
    ("after", "is_free"), [(0.0, False), (SECONDS, False), (SECONDS + 2.9, False), (SECONDS + 3.0, True), (None, False)]
)
def test_a_claim_is_taken_over_only_once_it_is_certainly_over(after: float | None, is_free: bool) -> None:
    # None is a service that does not tell its time.
    now = None if after is None else WRITTEN + timedelta(seconds=after)
    found = ONCE._judge("k", claimed(), None, now)
    assert found == (None if is_free else HeldByAnother("k", WRITTEN + timedelta(seconds=SECONDS + 3), "they"))


@cases("term", ["soon", "Infinity", 1e300])
def test_a_row_whose_term_is_none_was_written_by_no_worker(term: object) -> None:
    found = claimed()
    found.entity["seconds"] = term
    with pytest.raises(ConfigError, match="no worker wrote"):
        ONCE._judge("k", found, None, WRITTEN)


@cases(
    ("body", "digest", "differs_from"),
    [("a", "a", None), ("a", "b", "m1"), (None, "b", None), ("a", None, None), (None, None, None)],
)
def test_a_done_key_says_whether_its_body_is_known_to_be_another_one(
    body: str | None, digest: str | None, differs_from: str | None
) -> None:
    found = claimed()
    found.entity.update({"state": "done", "message": "m1"} | ({} if body is None else {"body": body}))
    assert ONCE._judge("k", found, digest, None) == DoneBefore("k", differs_from)


class SlowClaims:
    """Claims whose answers take five seconds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def claim(self, key: str, *_arguments: object) -> Claimed:
        self._clock.sleep(5)
        return Claimed(key)

    def extend(self, claimed: Claimed, *_arguments: object) -> Claimed:
        self._clock.sleep(5)
        return claimed


def test_the_owner_of_a_claim_counts_from_before_it_was_asked_for() -> None:
    clock = Clock()
    began = clock()
    hold = ClaimHold(SlowClaims(clock), SECONDS, clock)  # type: ignore[arg-type]  # of the claims only these are asked for
    hold.take(lambda: "k", MessageFacts("jobs", "1", 1, WRITTEN, WRITTEN))
    ends = [hold.ends - began]
    hold.extend()
    assert [*ends, hold.ends - began] == [SECONDS, SECONDS + 5]
