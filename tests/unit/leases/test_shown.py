"""A holding as every list shows it: its state, whether its holder is alive, and when it ends."""

import base64
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from azguard.leases import conventions
from azguard.leases.owners import FENCE, OWNER, SERVICE_CLOCK, TERRAFORM, Owner
from azguard.leases.shown import build_holding
from azguard.leases.state import LeaseState
from azguard.times import iso
from tests.support.cases import cases

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
END = "2026-11-22T12:00:20Z"
LOCK = {"ID": "c0ffee", "Operation": "OperationTypeApply", "Who": "ci@runner", "Created": "2026-11-22T08:00:00.5Z"}
TERRAFORM_LOCK = {TERRAFORM: base64.b64encode(json.dumps(LOCK).encode()).decode()}
WEBJOBS = {"FunctionInstance": "A1"}


def record(age: int, term: int | None, *, pid: int | None = 7, until: str | None = None) -> Mapping[str, str]:
    """Return the metadata of a lock that was taken so many seconds ago."""
    since = iso(NOW - timedelta(seconds=age))
    owner = Owner("alice", "build1", pid, "deploy.sh", since, clock=SERVICE_CLOCK, until=until)
    return {OWNER: owner.tie_to_lease("id", term).as_metadata(), FENCE: "7"}


def by_holder(age: int, term: int) -> Mapping[str, str]:
    """Return the same with a time by the clock of the holder's machine."""
    owner = json.loads(record(age, term)[OWNER])
    return {OWNER: json.dumps({**owner, "clock": "holder"})}


@cases(
    ("metadata", "state", "duration", "told"),
    [
        (record(40, 60), "leased", "fixed", ("held", "unknown", END)),
        (record(61, 60), "leased", "fixed", ("held", "unknown", "2026-11-22T11:59:59Z")),
        (record(62, 60), "leased", "fixed", ("held", "yes", None)),
        (record(17, 15), "leased", "fixed", ("held", "yes", None)),
        (record(17, 15), "breaking", None, ("breaking", "unknown", None)),
        (record(17, 15), "broken", None, ("broken", None, None)),
        (record(17, 15), "expired", None, ("free", None, None)),
        (record(17, 15), "available", None, ("free", None, None)),
        (record(9000, None, pid=None), "leased", "infinite", ("held", "unknown", "never")),
        (record(9000, None, pid=None, until=END), "leased", "infinite", ("held", "unknown", END)),
        # The record of a lease that is over says nothing of this one.
        (record(9000, 60), "leased", "infinite", ("held", "unknown", "never")),
        # It was there when the blob was written last, whatever its own time says.
        (by_holder(40, 60), "leased", "fixed", ("held", "yes", None)),
        (TERRAFORM_LOCK, "leased", "infinite", ("held", "unknown", "never")),
        # Without a term in the record it is the longest that the service gives.
        (WEBJOBS, "leased", "fixed", ("held", "yes", None)),
        ({}, "leased", "fixed", ("held", "unknown", None)),
    ],
)
def test_a_holding_says_whether_its_holder_is_alive_and_when_it_ends(
    metadata: Mapping[str, str], state: str, duration: str | None, told: tuple[str | None, ...]
) -> None:
    status = "locked" if state in ("leased", "breaking") else "unlocked"
    written = NOW - timedelta(seconds=100)
    found = LeaseState("blob:locks/a", state, status, duration, '"0x1"', written, metadata, NOW)
    claim = conventions.find(found, bytes) or conventions.Claim("unknown", None, conventions.UNKNOWN_AGE)
    holding = build_holding(found, claim)
    assert (holding.state, holding.alive, holding.ends) == told


def test_a_time_that_is_not_told_proves_nothing() -> None:
    found = LeaseState("blob:locks/a", "leased", "locked", "fixed", '"0x1"', NOW, record(900, 60))
    claim = conventions.find(replace(found, answered_at=None), bytes)
    assert claim is not None
    assert build_holding(found, claim).alive == "unknown"
