"""The core of leases: every state × action of the service's state machine, as tests/data/semantics.yaml has it.

Each cell is played on a blob and on a container of its own, against Azurite, where it tells the truth; where it does
not, the answer is the one that the evidence states or that the live service was recorded with.
"""

import re
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import pytest

from azguard.accounts.account import Target, emulator
from azguard.address import Address, Kind
from azguard.blobs import containers, listing
from azguard.blobs.content import put_blob
from azguard.blobs.content.upload import Settings, Upload
from azguard.emulators.azurite_process import Azurite
from azguard.errors import AzguardError, Changed, Locked, UsageError
from azguard.guards.resolve import Conditions
from azguard.leases import actions as lease_actions
from azguard.leases.state import Action, look, operation_of
from azguard.requests.deadline import Deadline
from tests.support import evidence, sdk_clients
from tests.support.cases import cases
from tests.support.lease_script import Answer, now_is, scripted
from tests.support.no_records import NoRecords
from tests.support.recorded import find

EVIDENCE: dict[str, Any] = evidence.EVIDENCE["lease_state_machine"]["blob_and_container"]
MACHINE: dict[str, dict[str, str]] = EVIDENCE["table"]
A, B, C = (f"{letter * 8}-0000-4000-8000-000000000000" for letter in "abc")
TERM = 15
# What each action of the table is: its kind, and what it is given; None is an id that was never used.
ACTIONS: dict[str, tuple[str, Any]] = {
    "acquire_no_id": ("acquire", None), "acquire_A": ("acquire", A), "acquire_B": ("acquire", B),
    "renew_any": ("renew", A), "renew_A": ("renew", A), "renew_B": ("renew", B),
    "change_any": ("change", (A, B)), "change_A_to_B": ("change", (A, B)), "change_B_to_A": ("change", (B, A)),
    "change_B_to_C": ("change", (B, C)),
    "release_any": ("release", A), "release_A": ("release", A), "release_B": ("release", B),
    "break_any": ("break", None), "break_no_period": ("break", None), "break_0": ("break", 0),
    "break_no_period_infinite": ("break", None), "break_no_period_fixed": ("break", None),
    "break_N_infinite": ("break", 20), "break_N_fixed": ("break", 5), "break_shorter": ("break", 5),
    "break_longer": ("break", 60),
}  # fmt: skip
# What the table says that is no operation on the lease: it is the subject of tests of its own.
NOT_AN_ACTION = {"time", "write_with_A"}
# The emulator lets any id renew an expired lease.
LIES = {("expired", "renew_B")}
BREAK_PERIOD = 30


@dataclass(frozen=True)
class Cell:
    """A kind of resource, the state of its lease, and what is done to it."""

    kind: Kind
    state: str
    action: str

    def __str__(self) -> str:
        return f"{self.kind}-{self.state}-{self.action}"

    @property
    def text(self) -> str:
        return MACHINE[self.state][self.action]


CELLS = [
    Cell(kind, state, action)
    for state in ("available", "leased", "breaking", "broken", "expired")
    for action in MACHINE[state]
    if action not in NOT_AN_ACTION and (state, action) not in LIES
    for kind in (Kind.BLOB, Kind.CONTAINER)
]


class Stage:
    """A resource for each cell, whose lease is in the state that the cell begins with."""

    def __init__(self, azurite: Azurite) -> None:
        self.account = emulator({"blob": azurite.ports["blob"]})
        self._home = f"leases{uuid.uuid4().hex[:12]}"
        sdk_clients.container(self.account, Address(Kind.CONTAINER, (self._home,))).create_container()
        self._targets = {cell: self._made(cell) for cell in CELLS if cell.state == "expired"}
        self._written = self._made(Cell(Kind.BLOB, "expired", "renew_A"))
        self._expired = time.monotonic() + TERM + 1

    def target(self, cell: Cell) -> Target:
        """Return the cell's resource; what is to be expired is waited for."""
        if cell.state == "expired":
            time.sleep(max(0.0, self._expired - time.monotonic()))  # the service's clock alone ends a lease
            return self._targets[cell]
        return self._made(cell)

    def written_since(self) -> Target:
        """Return a blob whose lease has expired, and which was written after that."""
        time.sleep(max(0.0, self._expired - time.monotonic()))  # the service's clock alone ends a lease
        sdk_clients.blob(self.account, self._written.address).upload_blob(b"y", overwrite=True)
        return self._written

    def resource(self, kind: Kind) -> Target:
        name = f"c{uuid.uuid4().hex}"
        if kind is Kind.BLOB:
            target = Target(self.account, Address(Kind.BLOB, (self._home, name)))
            sdk_clients.blob(self.account, target.address).upload_blob(b"x")
            return target
        target = Target(self.account, Address(Kind.CONTAINER, (name,)))
        sdk_clients.container(self.account, target.address).create_container()
        return target

    def _made(self, cell: Cell) -> Target:
        target = self.resource(cell.kind)
        if cell.state == "available":
            return target
        infinite = "infinite" in cell.action or (cell.state in ("breaking", "broken"))
        seconds = None if infinite else TERM if cell.state == "expired" else 60
        lease_actions.acquire(target, A, seconds, Conditions(), Deadline())
        if cell.state in ("breaking", "broken"):
            lease_actions.break_(target, BREAK_PERIOD if cell.state == "breaking" else 0, Conditions(), Deadline())
        return target


@pytest.fixture(scope="module")
def stage(azurite: Azurite) -> Stage:
    """Return the resources of this file's tests; what has to expire does so meanwhile."""
    return Stage(azurite)


def perform(target: Target, action: str) -> lease_actions.LeaseDone:
    """Do to a lease what the table calls by this name."""
    what, given = ACTIONS[action]
    if what == "acquire":
        return lease_actions.acquire(target, given or str(uuid.uuid4()), 60, Conditions(), Deadline(30.0))
    if what == "change":
        return lease_actions.change(target, given[1], Conditions(lease_id=given[0]), Deadline(30.0))
    if what == "break":
        return lease_actions.break_(target, given, Conditions(), Deadline(30.0))
    return {"renew": lease_actions.renew, "release": lease_actions.release}[what](
        target, Conditions(lease_id=given), Deadline(30.0)
    )


FREE = ("available", "broken", "expired")


def told(text: str) -> tuple[int, str | None, str | None]:
    """Return the status, the code and the next state that a cell of the evidence names."""
    found = re.match(r"(?:blob: )?(\d{3})(?: (Lease\w+))?", text)
    assert found is not None, text
    following = re.search(r"-> (\w+)", text)
    return int(found[1]), found[2], following[1] if following else None


def expected_time(cell: Cell) -> tuple[int, int] | None:
    """Return between which numbers of seconds a break must say that remain."""
    found = re.search(r"time=(0|remaining|N|min\(N,remaining\))", cell.text)
    if found is None:
        return None
    period = ACTIONS[cell.action][1]
    remaining = BREAK_PERIOD if cell.state == "breaking" else 60
    latest = {"0": 0, "remaining": remaining, "N": period}.get(found[1], min(period or 0, remaining))
    return max(0, latest - 10 if found[1] == "remaining" else latest - 1), latest


@cases("cell", *CELLS, ids=str)
def test_every_state_answers_every_action_as_the_evidence_says(stage: Stage, cell: Cell) -> None:
    status, code, following = told(cell.text)
    target = stage.target(cell)
    if code is not None and cell.action.startswith("release") and cell.state in FREE:
        # Refused, and yet the end that a release is for: an earlier copy of the request may have brought it about.
        assert (perform(target, cell.action).etag, look(target, Deadline()).state) == (None, cell.state)
        return
    if code is not None:
        with pytest.raises(Locked) as caught:
            perform(target, cell.action)
        now = look(target, Deadline()).state
        error = caught.value
        assert (error.http_status, error.service_code, error.lease_state, now) == (status, code, cell.state, cell.state)
        return
    done = perform(target, cell.action)
    after = look(target, Deadline())
    assert (after.state, done.attempts, done.outcome) == (following or cell.state, 1, "committed")
    assert (done.etag, done.last_modified) == (after.etag, after.last_modified)
    if (between := expected_time(cell)) is not None:
        assert between[0] <= (done.lease_time if done.lease_time is not None else -1) <= between[1]
    if following == "leased":
        held = re.search(r"leased\(([AB])\)", cell.text)
        assert look(target, Deadline(), {"A": A, "B": B}[held[1]] if held else done.lease_id).state == "leased"


def test_the_cells_are_all_that_the_evidence_has() -> None:
    cells = {(state, action) for state, actions in MACHINE.items() for action in actions if action not in NOT_AN_ACTION}
    assert {(cell.state, cell.action) for cell in CELLS} | LIES == cells
    assert cells >= LIES


def test_an_expired_lease_can_be_renewed_by_its_holder_unless_the_blob_was_written(stage: Stage) -> None:
    assert MACHINE["expired"]["renew_A"].startswith("blob: 200 -> leased(A) unless the blob was modified")
    target = stage.written_since()
    with pytest.raises(Locked) as caught:
        lease_actions.renew(target, Conditions(lease_id=A), Deadline())
    assert (caught.value.service_code, caught.value.lease_state) == ("LeaseIdMismatchWithLeaseOperation", "available")


USES = EVIDENCE["use_on_blob"]
NOT_HELD = "is not held any more"
# The emulator never says LeaseLost.
SAID = {
    "LeaseLost": NOT_HELD, "LeaseNotPresentWithBlobOperation": NOT_HELD,
    "LeaseNotPresentWithContainerOperation": NOT_HELD, "LeaseIdMissing": "is leased, and no lease id was given",
    "LeaseIdMismatchWithBlobOperation": "is leased under another id",
    "LeaseIdMismatchWithContainerOperation": "is leased under another id",
}  # fmt: skip


@cases(
    ("state", "use"),
    *[(state, use) for state in ("available", "leased", "breaking", "broken") for use in USES[state] if use != "no_id"],
)
def test_a_blob_is_used_with_a_lease_as_the_evidence_says(stage: Stage, state: str, use: str) -> None:
    target = stage.target(Cell(Kind.BLOB, state, "release_A"))
    given = {"A": A, "B": B, "any_id": C}.get(use)
    code = re.search(r"Lease\w+", USES[state][use])
    if use == "no_id_read" or use != "no_id_write":
        assert outcome(lambda: listing.show(target, Conditions(lease_id=given), Deadline())) == said(code)
    if use != "no_id_read":
        conditions = Conditions({}, "lease", lease_id=given)
        upload = Upload(target, Settings(), conditions, Deadline(), "opopopopopopopop")
        assert outcome(lambda: put_blob.put(upload, BytesIO(b"new"), lambda done: None)) == said(code)


@cases(
    ("state", "use", "text"),
    *[
        (state, use, text)
        for states, row in EVIDENCE["use_on_container"].items()
        for state in states.split("|")
        for use, text in row.items()
        if state != "expired" and use != "no_id_other" and "unverified" not in text
    ],
)
def test_a_container_is_deleted_with_a_lease_as_the_evidence_says(
    stage: Stage, state: str, use: str, text: str
) -> None:
    target = stage.target(Cell(Kind.CONTAINER, state, "release_A"))
    given = {"A": A, "B": B, "any_id": C}.get(use)
    refusal = outcome(lambda: containers.delete(target, Conditions(lease_id=given), NoRecords(), Deadline()))
    assert refusal == said(re.search(r"Lease\w+", text))


def outcome(call: Callable[[], object]) -> str | None:
    """Return what a refusal because of a lease says, or None."""
    try:
        call()
    except Locked as error:
        return next((words for words in SAID.values() if words in error.message), error.message)
    return None


def said(code: "re.Match[str] | None") -> str | None:
    """Return the words for a code of the evidence, None if it succeeds."""
    return None if code is None else SAID[code[0]]


@cases("kind", Kind.BLOB, Kind.CONTAINER)
@cases(("state", "action"), *sorted(LIES))
def test_what_the_emulator_gets_wrong_is_told_as_the_service_says_it(kind: Kind, state: str, action: str) -> None:
    status, code, _ = told(MACHINE[state][action])
    target, transport = scripted(kind, (status, code, {}), now_is(state))
    with pytest.raises(Locked) as caught:
        perform(target, action)
    error = caught.value
    assert (error.http_status, error.service_code, error.lease_state) == (status, code, state)
    assert (len(transport.asked), transport.asked[0]) == (2, ("PUT", ACTIONS[action][0]))


def recorded(name: str, number: int) -> Answer:
    found = find(name, number)
    return found.status, found.code, dict(found.headers)


@cases(
    ("kind", "name", "number", "action", "code"),
    (Kind.BLOB, "test_common_blob.test_lease_blob_acquire_twice_fails", 2, "acquire_B", "LeaseAlreadyPresent"),
    (Kind.CONTAINER, "test_container.test_lease_container_break_released_lease_fails", 3, "break_any",
     "LeaseNotPresentWithLeaseOperation"),
    (Kind.BLOB, "test_blob_access_conditions.test_lease_blob_with_if_match_fail", 2, "acquire_A",
     "ConditionNotMet"),
)  # fmt: skip
def test_a_refusal_of_the_live_service_is_told_by_its_meaning(
    kind: Kind, name: str, number: int, action: str, code: str
) -> None:
    target, _ = scripted(kind, recorded(name, number), now_is("leased"))
    with pytest.raises(AzguardError) as caught:
        perform(target, action)
    kinds = {"ConditionNotMet": "changed"}
    assert (caught.value.service_code, caught.value.kind, caught.value.lease_state) == (
        code, kinds.get(code, "locked"), "leased",
    )  # fmt: skip


@cases(
    ("kind", "name", "number", "action", "lease_time"),
    (Kind.BLOB, "test_common_blob.test_lease_blob_change_lease_id", 2, "change_A_to_B", None),
    (Kind.BLOB, "test_common_blob.test_lease_blob_break_period", 2, "break_shorter", 5),
    (Kind.CONTAINER, "test_container.test_lease_container_break_period", 2, "break_shorter", 5),
)
def test_a_live_answer_is_read(kind: Kind, name: str, number: int, action: str, lease_time: int | None) -> None:
    answer = recorded(name, number)
    target, transport = scripted(kind, answer)
    done = perform(target, action)
    assert (done.etag, done.lease_time, transport.asked) == (
        answer[2]["etag"], lease_time, [("PUT", ACTIONS[action][0])],
    )  # fmt: skip


BUSY: Answer = (503, "ServerBusy", {})
MISMATCH: Answer = (412, "LeaseIdMismatchWithBlobOperation", {})
ALREADY: Answer = (409, "LeaseAlreadyPresent", {})


@cases(
    ("action", "answers", "kind"),
    # After a lost answer the resource tells; a refusal can be the echo of our own success.
    ("acquire_A", (BUSY, now_is("leased")), None),
    ("acquire_A", (BUSY, MISMATCH, ALREADY, MISMATCH), "unknown"),
    ("acquire_A", (BUSY, (403, "AuthorizationFailure", {}), (201, None, {})), None),
    ("acquire_A", (BUSY, (404, "BlobNotFound", {}), (404, "BlobNotFound", {}), (404, "BlobNotFound", {})),
     "not_found"),
    ("renew_A", (BUSY, (200, None, {})), None),
    ("renew_A", (BUSY, (409, "LeaseIdMismatchWithLeaseOperation", {}), now_is("leased")), "locked"),
    ("change_A_to_B", (BUSY, now_is("leased")), None),
    ("change_A_to_B", (BUSY, MISMATCH, (409, "LeaseIdMismatchWithLeaseOperation", {}), MISMATCH,
                       now_is("available")), "locked"),
    ("change_A_to_B", (BUSY, (403, "AuthorizationFailure", {}), (409, "LeaseIdMismatchWithLeaseOperation", {}),
                       (403, "AuthorizationFailure", {})), "unknown"),
    ("release_A", (BUSY, MISMATCH), None),
    ("release_A", (BUSY, (412, "LeaseLost", {})), None),
    ("release_A", (BUSY, now_is("leased"), (200, None, {})), None),
    ("release_A", (BUSY, (403, "AuthorizationFailure", {}), (409, "LeaseIdMismatchWithLeaseOperation", {}),
                   (403, "AuthorizationFailure", {})), None),
    ("break_0", (BUSY, now_is("broken")), None),
    ("break_0", (BUSY, now_is("available")), None),
    ("break_0", (BUSY, now_is("expired"), (202, None, {"x-ms-lease-time": "0"})), None),
    ("break_0", (BUSY, now_is("leased"), (202, None, {"x-ms-lease-time": "0"})), None),
    ("break_0", (BUSY, now_is("leased"), (412, "ConditionNotMet", {}), now_is("leased")), "unknown"),
)  # fmt: skip
def test_a_lost_answer_is_settled_by_looking(action: str, answers: tuple[Answer, ...], kind: str | None) -> None:
    target, transport = scripted(Kind.BLOB, *answers)
    try:
        perform(target, action)
        said = None
    except AzguardError as error:
        said = error.kind
    assert (said, len(transport.asked)) == (kind, len(answers))


def test_an_acquire_tied_to_a_version_that_is_gone_is_refused_also_after_a_lost_answer() -> None:
    target, _ = scripted(Kind.BLOB, BUSY, MISMATCH, (412, "ConditionNotMet", {}), MISMATCH, now_is("leased"))
    conditions = Conditions({"If-Match": '"0x1"'}, "if-match", '"0x1"')
    with pytest.raises(Changed) as caught:
        lease_actions.acquire(target, A, 60, conditions, Deadline())
    assert (caught.value.expected_etag, caught.value.current_etag) == ('"0x1"', '"0x8D6D418B6C08663"')


def test_the_lease_of_a_file_has_no_term_and_a_directory_has_none() -> None:
    target = Target(emulator(), Address(Kind.FILE, ("share", "a")))
    with pytest.raises(UsageError, match="cannot be leased"):
        look(Target(emulator(), Address(Kind.DIR, ("share", "a"))), Deadline())
    with pytest.raises(UsageError, match="has no term"):
        lease_actions.acquire(target, A, 60, Conditions(), Deadline())
    with pytest.raises(UsageError, match="cannot be renewed: it has no term"):
        operation_of(target, Action.RENEW)
