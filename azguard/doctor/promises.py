"""Each operation under each condition: what holds is done, what does not is refused, and nothing is written.

The conditions are those of the rows of ``wire/operations``. So are the refusals, but for their codes, which stand here.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.doctor.plays import PLAYS, Play
from azguard.doctor.stage import (
    ROOMS,
    Check,
    CheckFinding,
    CheckStage,
    Reaction,
    SeenState,
    differs,
    holds,
    not_possible,
)
from azguard.times import http_date
from azguard.wire.catalogue import ALL
from azguard.wire.operations.blobs import BLOB_SET_TAGS
from azguard.wire.rows import APPEND, SEQUENCE, Condition, Lease, Operation, Write

# The aspects of an operation that are no condition of their own.
CREATE_ONLY, LEASE_ID, POP_RECEIPT, NEW_ONLY = "create-only", "lease-id", "pop-receipt", "if-none-match *"
#: What safe-update, lock run and guarded writes rest on: by these aspects of these operations.
_BASIC_ASPECTS = {
    Condition.IF_MATCH, Condition.APPEND_POSITION, Condition.IF_TAGS, NEW_ONLY, CREATE_ONLY, LEASE_ID, POP_RECEIPT
}  # fmt: skip
_BASIC_OPERATIONS = {
    "blob.put_block_blob", "blob.put_block_list", "blob.set_metadata", "blob.delete", "blob.append_block",
    "blob.lease_acquire", "blob.lease_renew", "blob.lease_release", "container.delete",
    "table.entity_insert", "table.entity_update", "table.entity_merge", "table.entity_delete",
    "queue.update_message", "queue.delete_message", "share.set_metadata",
    "file.put_range", "file.set_metadata", "file.rename", "file.lease_acquire",
}  # fmt: skip
_LONG_AGO = "Wed, 01 Jan 2020 00:00:00 GMT"
_OTHER_ETAG, _OTHER_TIME = '"0x8D0000000000000"', "W/\"datetime'2020-01-01T00%3A00%3A00.0000000Z'\""
_NOT_FOR_READS = (Condition.IF_NONE_MATCH, Condition.IF_MODIFIED_SINCE)
_EXISTS = {
    "container": "ContainerAlreadyExists", "table": "TableAlreadyExists", "queue": "QueueAlreadyExists",
    "share": "ShareAlreadyExists", "entity": "EntityAlreadyExists",
}  # fmt: skip
LEASE_MISSING = "412 LeaseIdMissing"
# A share is leased like a container, and refused like one.
_LEASED = {"share": "Container"}
_LOOKED_AT = (Kind.BLOB, Kind.CONTAINER, Kind.ENTITY, Kind.SHARE, Kind.DIR, Kind.FILE)


class Wrong(NamedTuple):
    """An attempt that has to be refused."""

    #: What is wrong with it, in a few words.
    what: str
    #: How the service has to refuse it, such as ``412 ConditionNotMet``.
    refusal: str
    headers: Mapping[str, str] = {}
    given: Mapping[str, Any] = {}


class Attempts(NamedTuple):
    """The attempts of one operation: those that the service has to refuse, and the one that it has to do."""

    target: Target
    wrong: tuple[Wrong, ...]
    headers: Mapping[str, str] = {}
    given: Mapping[str, Any] = {}
    #: What the right attempt is for, where that is something else.
    right_target: Target | None = None
    #: What is there, if that is known.
    seen: SeenState | None = None


class Trial(NamedTuple):
    """One aspect of one operation: a condition, or one of those above."""

    operation: Operation
    aspect: str

    @property
    def play(self) -> Play:
        return PLAYS[self.operation.name]

    @property
    def is_basic(self) -> bool:
        is_fence = self.aspect != Condition.IF_TAGS or self.operation.fences
        return self.operation.name in _BASIC_OPERATIONS and self.aspect in _BASIC_ASPECTS and is_fence

    def __str__(self) -> str:
        return f"{self.operation.name.replace('.', ' ').replace('_', ' ')}: {self.aspect}"


def list_trials() -> Iterator[Trial]:
    """Yield the trials: each operation under each condition that its row names."""
    for name in PLAYS:
        operation = ALL.get(name)
        if operation is not None:
            yield from (Trial(operation, aspect) for aspect in _list_aspects(operation))


def _list_aspects(operation: Operation) -> Iterator[str]:
    yield from (each for each in Condition if each in operation.honours)
    if Condition.IF_NONE_MATCH in operation.wildcards:
        yield NEW_ONLY
    if operation.write is Write.CREATES:
        yield CREATE_ONLY
    # A directory's is that of a file which stands where the directory is to go; its refusal is not known.
    takes_lease = operation.names_lease or operation.name.endswith("lease_acquire")
    if takes_lease and operation.noun != "directory":
        yield LEASE_ID
    if operation.name in ("queue.update_message", "queue.delete_message"):
        yield POP_RECEIPT


def list_checks(*, is_full: bool) -> Iterator[Check]:
    """Yield a check for each trial: of what commands rest on, or of all."""
    for trial in list_trials():
        if is_full or trial.is_basic:
            run = partial(try_one, trial)
            yield Check("promises", str(trial), run, trial.play.kind.service, count_requests(trial))


def count_requests(trial: Trial) -> int:
    """Return about how many requests a trial takes: to prepare it, to try what is wrong and what is right, to look."""
    operation, aspect, kind = trial.operation, trial.aspect, trial.play.kind
    if aspect == POP_RECEIPT:
        return 4
    made = 1 + (Condition.IF_TAGS in aspect)
    acquires = operation.name.endswith("lease_acquire")
    leased = 2 if aspect == LEASE_ID or (operation.lease is Lease.SUBJECT and not acquires) else 0
    refused = 2 if aspect == LEASE_ID and operation.lease is Lease.REQUIRED else 1
    looks = 1 + refused if operation.writes else int(aspect in list(Condition))
    # A room is deleted on its own.
    removed = 1 if kind in ROOMS.values() else 0
    return made + leased + looks + (refused + 1) * (1 + trial.play.requests) + removed


def try_one(trial: Trial, stage: CheckStage) -> CheckFinding:
    """Try an operation with what does not hold, and with what does."""
    if trial.play.kind is Kind.CONTAINER and stage.is_given:
        return not_possible("only in the container that was given")
    attempts = _prepare(trial, stage)
    seen = attempts.seen or _look(trial, attempts.target, stage)
    others: list[str] = []
    for wrong in attempts.wrong:
        found = _send(trial, attempts.target, stage, wrong.headers, wrong.given)
        if (why := _find_obstacle(found)) is not None:
            return not_possible(why)
        if found.is_done:
            return differs(f"{wrong.what}: done all the same")
        if trial.operation.writes and _look(trial, attempts.target, stage) != seen:
            return differs(f"{wrong.what}: refused with {found}, and applied all the same")
        if str(found) != wrong.refusal:
            others.append(f"{wrong.what}: {found}, not {wrong.refusal}")
    found = _send(trial, attempts.right_target or attempts.target, stage, attempts.headers, attempts.given)
    if (why := _find_obstacle(found)) is not None:
        return not_possible(why)
    if not found.is_done:
        others.append(f"with the right value: {found}")
    return differs("; ".join(others)) if others else holds(attempts.wrong[0].refusal)


def _find_obstacle(found: Reaction) -> str | None:
    if found.is_denied or found.is_failure:
        return str(found.error)
    return f"{found}: there is no such operation" if found.is_unknown else None


def _send(
    trial: Trial, target: Target, stage: CheckStage, headers: Mapping[str, str], given: Mapping[str, Any]
) -> Reaction:
    arguments = {**trial.play.arguments(stage, target), **given}
    return stage.send(trial.operation, target, headers=headers, **arguments)


def _look(trial: Trial, target: Target, stage: CheckStage) -> SeenState | None:
    """Return the state of the target, to be compared before and after a write; None for reads and messages."""
    if not trial.operation.writes or target.kind not in _LOOKED_AT:
        return None
    return _look_at(trial.operation, target, stage)


def _look_at(operation: Operation, target: Target, stage: CheckStage) -> SeenState | None:
    return stage.look(target, with_tags=operation.name == "blob.set_tags")


def _prepare(trial: Trial, stage: CheckStage) -> Attempts:
    if trial.aspect == POP_RECEIPT:
        return _prepare_receipt(stage)
    kind, how = trial.play.kind, trial.play.how
    if trial.aspect in (NEW_ONLY, CREATE_ONLY):
        return _prepare_create(trial, stage.make(kind, how), stage)
    target = stage.make(kind, how)
    if trial.aspect == LEASE_ID:
        return _prepare_lease(trial.operation, target, stage)
    return _prepare_condition(trial.operation, Condition(trial.aspect), target, stage)


def _prepare_receipt(stage: CheckStage) -> Attempts:
    """Return the attempts with a receipt that was followed by another one, and with that one."""
    message, old, _ = stage.put_message()
    update = ALL["queue.update_message"]
    answer = stage.require(stage.send(update, message, popreceipt=old, visibilitytimeout=0), message)
    stale = Wrong("an old receipt", "404 MessageNotFound", given={"popreceipt": old})
    return Attempts(message, (stale,), given={"popreceipt": answer.popreceipt})


def _prepare_create(trial: Trial, there: Target, stage: CheckStage) -> Attempts:
    """Return the attempts to create an existing resource, and a new one."""
    new = stage.name(trial.play.kind)
    stage.note_made(new)
    if trial.aspect == NEW_ONLY:
        headers = {Condition.IF_NONE_MATCH.header: "*"}
        return Attempts(there, (Wrong("it exists", "409 BlobAlreadyExists", headers),), headers, right_target=new)
    given = {"replace_if_exists": "false"} if trial.operation.name.endswith(".rename") else {}
    code = _EXISTS.get(there.kind.noun, "ResourceAlreadyExists")
    return Attempts(there, (Wrong("it exists", f"409 {code}", given=given),), given=given, right_target=new)


def _prepare_lease(operation: Operation, target: Target, stage: CheckStage) -> Attempts:
    """Return the attempts without a lease id, with one that was changed since, and with the one that holds."""
    old, new = stage.lease(target)
    if operation.name.endswith("lease_acquire"):
        other = Wrong("another holder", "409 LeaseAlreadyPresent")
        return Attempts(target, (other,), given={"proposed_lease_id": new})
    with_old, with_new = {operation.lease_header: old}, {operation.lease_header: new}
    if operation.lease is Lease.SUBJECT:
        mismatch = Wrong("an old lease id", "409 LeaseIdMismatchWithLeaseOperation", with_old)
        return Attempts(target, (mismatch,), with_new)
    mismatch = Wrong("an old lease id", find_mismatch(target.kind.noun), with_old)
    missing = Wrong("no lease id", LEASE_MISSING)
    wrong = (missing, mismatch) if operation.lease is Lease.REQUIRED else (mismatch,)
    return Attempts(target, wrong, with_new)


def _prepare_condition(operation: Operation, condition: Condition, target: Target, stage: CheckStage) -> Attempts:
    about = stage.source(target.kind, PLAYS[operation.name].how) if condition.of_source else target
    if condition in (Condition.IF_TAGS, Condition.SOURCE_IF_TAGS):
        stage.require(stage.send(BLOB_SET_TAGS, about, **PLAYS[BLOB_SET_TAGS.name].arguments(stage, about)), about)
    lease: dict[str, str] = {}
    if operation.lease is Lease.SUBJECT and not operation.name.endswith("lease_acquire"):
        _, held = stage.lease(target)
        lease = {operation.lease_header: held} if operation.names_lease else {}
    state = _look_at(operation, about, stage)
    assert state is not None
    plain = Condition(condition.removeprefix("source-"))
    right, wrong = _VALUES[plain](state)
    refusal = find_refusal(operation, condition)
    return Attempts(
        target,
        (Wrong("a wrong value", refusal, {**lease, condition.header: wrong}),),
        {**lease, condition.header: right},
        seen=None if about is not target else state,
    )


def find_mismatch(noun: str) -> str:
    """Return how the service refuses an operation on a resource that is leased under another id."""
    return f"412 LeaseIdMismatchWith{_LEASED.get(noun, noun.title())}Operation"


def find_refusal(operation: Operation, condition: Condition) -> str:
    """Return how the service refuses an operation whose condition does not hold; see tests/data/semantics.yaml."""
    if condition.of_source and operation.name != "blob.copy":
        plain = Condition(condition.removeprefix("source-"))
        return f"{304 if plain in _NOT_FOR_READS else 412} CannotVerifyCopySource"
    if not operation.writes and condition in _NOT_FOR_READS:
        return "304 ConditionNotMet"
    return f"412 {_find_code(operation, condition)}"


def _find_code(operation: Operation, condition: Condition) -> str:
    if condition in SEQUENCE:
        return "SequenceNumberConditionNotMet"
    if condition in APPEND:
        position = condition is Condition.APPEND_POSITION
        return "AppendPositionConditionNotMet" if position else "MaxBlobSizeConditionNotMet"
    if operation.noun == "table":
        return "UpdateConditionNotSatisfied"
    if operation.name == "blob.copy":
        return "SourceConditionNotMet" if condition.of_source else "TargetConditionNotMet"
    return "ConditionNotMet"


def _etags(state: SeenState) -> tuple[str, str]:
    etag = state.etag or ""
    return etag, _OTHER_TIME if etag.startswith("W/") else _OTHER_ETAG


# Each condition that is not of a source: a value that holds for what is there, and one that does not. The sequence
# number of a page blob is 5.
_VALUES: Mapping[Condition, Callable[[SeenState], tuple[str, str]]] = {
    Condition.IF_MATCH: _etags,
    Condition.IF_NONE_MATCH: lambda state: _etags(state)[::-1],
    Condition.IF_MODIFIED_SINCE: lambda state: (_LONG_AGO, http_date(state.last_modified)),
    Condition.IF_UNMODIFIED_SINCE: lambda state: (http_date(state.last_modified), _LONG_AGO),
    Condition.IF_TAGS: lambda _: ("\"doctor\" = 'yes'", "\"doctor\" = 'no'"),
    Condition.APPEND_POSITION: lambda state: (str(state.size), str((state.size or 0) + 1)),
    Condition.MAX_SIZE: lambda state: (str((state.size or 0) + 1000), str(state.size)),
    Condition.SEQUENCE_NUMBER_LE: lambda _: ("5", "4"),
    Condition.SEQUENCE_NUMBER_LT: lambda _: ("6", "5"),
    Condition.SEQUENCE_NUMBER_EQ: lambda _: ("5", "6"),
}
