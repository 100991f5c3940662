"""How other programs say who holds what, each as it writes it, and how every list shows a holding."""

import base64
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from azguard.leases import conventions
from azguard.leases.conventions import build_holding
from azguard.leases.owners import FENCE, OWNER, SERVICE_CLOCK, TERRAFORM, Owner
from azguard.leases.state import LeaseState
from azguard.times import iso
from tests.support.cases import cases

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
WRITTEN = NOW - timedelta(hours=3)
RUN = "https://github.com/o/r/actions/runs/7"
RECORD = Owner("alice", "build1", 7, "deploy.sh", "2026-11-22T11:00:00Z", run=RUN, clock=SERVICE_CLOCK)
LOCKED = {OWNER: RECORD.tie_to_lease("id", 60).as_metadata()}
BEFORE = f"unknown; before: {RECORD}"
TERRAFORM_CLAIM = ("terraform", "ci@runner", 14400, "OperationTypeApply", False)
LOCK = {"ID": "c0ffee", "Operation": "OperationTypeApply", "Who": "ci@runner", "Created": "2026-11-22T08:00:00.5Z"}
LOCK_INFO = base64.b64encode(json.dumps(LOCK).encode()).decode()
PULUMI = json.dumps({"pid": 7, "username": "ann", "hostname": "laptop", "timestamp": "2026-11-22T09:00:00Z"}).encode()
OWNERSHIP = "ns.servicebus.windows.net/orders/$default/ownership/0"
DISK = {
    "MicrosoftAzureCompute_VMName": "web-01",
    "MicrosoftAzureCompute_DiskType": "OSDisk",
    "MicrosoftAzureCompute_DiskName": "web-os",
}


def state(
    name: str,
    metadata: Mapping[str, str] | None = None,
    held: str | None = None,
    blob_type: str = "BlockBlob",
) -> LeaseState:
    """Return a blob as a listing tells it; ``held`` is the kind of its lease."""
    states = ("leased", "locked") if held else ("available", "unlocked")
    return LeaseState(f"blob:{name}", *states, held, '"0x1"', WRITTEN, metadata or {}, NOW, blob_type)


def told(found: LeaseState, content: bytes = b"") -> tuple[Any, ...] | None:
    claim = conventions.find_claim(found, lambda: content)
    return None if claim is None else (claim.kind, claim.who, claim.age.whole, claim.reason, claim.is_leaseless)


@cases(
    ("found", "claim"),
    (state("locks/a", LOCKED, "fixed"), ("azguard", "alice@build1", 3600, "deploy.sh", False)),
    (state("locks/a", {FENCE: "7"}), ("azguard", None, None, None, False)),
    # The record of an earlier lease names no holder of this one.
    (state("locks/a", {**LOCKED, FENCE: "7"}, "infinite"), ("azguard", None, None, BEFORE, False)),
    (state("site/a", LOCKED, "infinite"), ("unknown", None, None, BEFORE, False)),
    (state("site/a", {**LOCKED, TERRAFORM: LOCK_INFO}, "infinite"), TERRAFORM_CLAIM),
    (state("tfstate/prod", {TERRAFORM: LOCK_INFO}, "infinite"), TERRAFORM_CLAIM),
    (
        state("azure-webjobs-hosts/locks/app/host", {"FunctionInstance": "A1"}, "fixed"),
        ("webjobs", "A1", 10800, "locks/app/host", False),
    ),
    (state("azure-webjobs-hosts/locks/app/host", {}, "fixed"), ("webjobs", None, 10800, "locks/app/host", False)),
    (
        state(f"checkpoints/{OWNERSHIP}", {"ownerid": "me"}),
        ("event-hubs", "me", 10800, "partition 0 of orders, group $default", True),
    ),
    (state(f"backups/nas/locks/{'a' * 64}"), ("restic", None, 10800, "repository nas", True)),
    (state(f"backups/locks/{'a' * 64}"), ("restic", None, 10800, "repository backups", True)),
    (state("vhds/web.vhd", DISK, "infinite", "PageBlob"), ("vm-disk", "web-01", None, "OSDisk web-os", False)),
    (state("vhds/old.vhd", {}, "infinite", "PageBlob"), ("vm-disk", "old.vhd", None, None, False)),
    (state("site/a", {}, "fixed"), ("unknown", None, None, None, False)),
    ids=lambda each: each[0] if isinstance(each, tuple) else each.address,
)
def test_each_convention_says_who_holds_it_since_when_and_why(found: LeaseState, claim: tuple[Any, ...]) -> None:
    assert told(found) == claim


@cases("name", ".pulumi/locks/organization/shop/prod/1.json", "team/.pulumi/locks/prod/1.json")
def test_a_lock_of_pulumi_is_read_from_its_file(name: str) -> None:
    stack = "organization/shop/prod" if "organization" in name else "prod"
    assert told(state(f"state/{name}"), PULUMI) == ("pulumi", "ann@laptop", 10800, f"stack {stack}", True)


@cases("content", b"", b"[]", b"\xff\xfe", b'{"username": null, "hostname": 7}', b"[" * 4096)
def test_a_lock_of_pulumi_that_cannot_be_read_is_a_lock_all_the_same(content: bytes) -> None:
    claim = told(state("state/.pulumi/locks/prod/1.json"), content)
    assert claim is not None
    assert (claim[0], claim[2:]) == ("pulumi", (10800, "stack prod", True))


@cases(
    "found",
    state("state/.pulumi/stacks/prod.json"),
    state("state/.pulumi/locks.json"),
    state(f"checkpoints/{OWNERSHIP}", {"ownerid": ""}),
    state(f"checkpoints/{OWNERSHIP}"),
    state("checkpoints/ns/orders/$default/checkpoint/0", {"ownerid": "me"}),
    state("backups/locks/readme"),
    state(f"backups/data/{'a' * 64}"),
    state("site/a", {"owner": "me"}),
    ids=lambda each: each.address,
)
def test_what_only_looks_like_a_lock_is_none(found: LeaseState) -> None:
    assert told(found) is None


@cases(
    ("name", "held", "blob_type"),
    ("vhds/a.vhd", "infinite", "BlockBlob"),
    ("vhds/a.vhd", "fixed", "PageBlob"),
    ("site/a", "infinite", "PageBlob"),
)
def test_what_is_no_attached_disk_is_held_by_no_machine(name: str, held: str, blob_type: str) -> None:
    assert told(state(name, {}, held, blob_type)) == ("unknown", None, None, None, False)


def test_a_name_that_drives_a_terminal_is_made_harmless() -> None:
    claim = told(state(f"checkpoints/{OWNERSHIP}", {"ownerid": "\x1b[2Jme"}))
    assert claim is not None
    assert claim[1] == "\\x1b[2Jme"


END = "2026-11-22T12:00:20Z"
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
)
def test_a_holding_says_whether_its_holder_is_alive_and_when_it_ends(
    metadata: Mapping[str, str], state: str, duration: str | None, told: tuple[str | None, ...]
) -> None:
    status = "locked" if state in ("leased", "breaking") else "unlocked"
    written = NOW - timedelta(seconds=100)
    found = LeaseState("blob:locks/a", state, status, duration, '"0x1"', written, metadata, NOW)
    claim = conventions.find_claim(found, bytes) or conventions.Claim("unknown", None, conventions.UNKNOWN_AGE)
    holding = build_holding(found, claim)
    assert (holding.state, holding.alive, holding.ends) == told


def test_a_time_that_is_not_told_proves_nothing() -> None:
    found = LeaseState("blob:locks/a", "leased", "locked", "fixed", '"0x1"', NOW, record(900, 60))
    claim = conventions.find_claim(replace(found, answered_at=None), bytes)
    assert claim is not None
    assert build_holding(found, claim).alive == "unknown"
