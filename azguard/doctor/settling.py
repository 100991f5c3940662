"""Each way of settling doubt: the doctor loses an answer, or sends a request twice, and azguard has to tell the truth.

The truth is how often the service says that it did the request, which the doctor sees and azguard does not.
"""

import io
import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.blobs import deletes
from azguard.blobs.content import append_write, put_blob
from azguard.blobs.content.append_blob import Append
from azguard.blobs.content.upload import Settings, Upload
from azguard.blobs.updates import BlobContent
from azguard.doctor.plays import CONTENT, LEASE_SECONDS, Damage
from azguard.doctor.stage import Check, CheckFinding, CheckStage, differs, holds
from azguard.errors import AzguardError, OutcomeUnknown
from azguard.files.updates import FileContent
from azguard.guards.requested import CREATE_ONLY, RequestedConditions
from azguard.guards.resolve import Conditions, resolve
from azguard.leases import actions
from azguard.queues import messages
from azguard.requests import commits
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import fresh_op
from azguard.resources import lifecycles
from azguard.tables import transactions, writes
from azguard.tables.transactions import Item
from azguard.tables.updates import LedgeredEntity, VersionedEntity
from azguard.tables.writes import EntityWrite, Verb
from azguard.updates import update
from azguard.updates.resource import UpdatableResource, UpdatePlan
from azguard.wire.call import locate
from azguard.wire.catalogue import ALL
from azguard.wire.operations.blobs import BLOB_APPEND_BLOCK, BLOB_DELETE, BLOB_PUT_BLOCK_BLOB
from azguard.wire.operations.tables import TABLE_ENTITY_UPDATE

# What azguard does when an answer is lost takes a second or two.
_SECONDS = 8.0
_BOTH = (Damage.LOST, Damage.DOUBLED)


class Act(NamedTuple):
    """A write that is prepared."""

    do: Callable[[], object]
    #: What the request is for whose answer is damaged, where it is not the first one of its operation.
    target: Target | None = None


class SettlingWrite(NamedTuple):
    """One write of azguard's that settles its own doubt."""

    name: str
    #: The operation whose request is damaged.
    operation: str
    #: Prepares it on the stage, and returns what does it.
    prepare: Callable[[CheckStage], Act]
    damages: tuple[Damage, ...] = _BOTH
    #: Whether the service answers a copy of it as if that had done it.
    takes_copies: bool = False
    #: Whether it is tried by default.
    is_basic: bool = True
    #: How many requests it takes, with its preparation; one more if a request is sent twice.
    requests: int = 5


def list_checks(*, is_full: bool) -> Iterator[Check]:
    """Yield a check for each way and each damage."""
    for way in _WRITES:
        for damage in way.damages if is_full or way.is_basic else ():
            requests = way.requests + (damage is Damage.DOUBLED)
            run = partial(try_one, way, damage)
            yield Check("lost answers", f"{way.name}: {damage}", run, _find_service(way.operation), requests)


def _find_service(operation: str) -> str:
    noun = operation.partition(".")[0]
    return {"container": "blob", "share": "file", "directory": "file"}.get(noun, noun)


def try_one(way: SettlingWrite, damage: Damage, stage: CheckStage) -> CheckFinding:
    """Do a write with its request damaged, and compare the outcome that azguard tells with the work of the service."""
    act = way.prepare(stage)
    url = "" if act.target is None else locate(act.target.endpoint, act.target.address)
    stage.tap.damage_next(damage, ALL[way.operation], url)
    said, is_committed, is_unknown = "committed", True, False
    try:
        act.do()
    except OutcomeUnknown as error:
        commits.raise_interruption(error)
        said, is_committed, is_unknown = "unknown (exit status 74)", False, True
    except AzguardError as error:
        said, is_committed = f"not applied ({error.message})", False
    finally:
        done = stage.tap.stop_watching()
    told = f"said to be {said}; by the answers of the service done {_count(done)}"
    if done > 1 and not (way.takes_copies or ALL[way.operation].repeats):
        return differs(told)
    if is_unknown or is_committed == (done > 0):
        return holds(told)
    return differs(told)


def _count(number: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(number, f"{number} times")


def _patience() -> Deadline:
    return Deadline(_SECONDS)


def _create_blob(stage: CheckStage) -> Act:
    blob = stage.name(Kind.BLOB)
    stage.note_made(blob)
    return Act(lambda: _put(blob, resolve(BLOB_PUT_BLOCK_BLOB, CREATE_ONLY, blob)))


def _replace_blob(stage: CheckStage) -> Act:
    blob = stage.make(Kind.BLOB)
    conditions = resolve(BLOB_PUT_BLOCK_BLOB, _of_version(stage, blob), blob)
    return Act(lambda: _put(blob, conditions))


def _put(blob: Target, conditions: Conditions) -> object:
    upload = Upload(blob, Settings.guess(blob), conditions, _patience(), fresh_op(), any_type=True).add_lineage()
    return put_blob.put(upload, io.BytesIO(CONTENT), lambda done: None)


def _of_version(stage: CheckStage, target: Target) -> RequestedConditions:
    state = stage.look(target)
    return RequestedConditions(if_match=None if state is None else state.etag)


def _delete_blob(stage: CheckStage) -> Act:
    blob = stage.make(Kind.BLOB)
    conditions = resolve(BLOB_DELETE, _of_version(stage, blob), blob)
    return Act(lambda: deletes.delete(blob, conditions, None, _patience()))


def _append(stage: CheckStage) -> Act:
    blob = stage.make(Kind.BLOB, "append")
    asked = RequestedConditions(append_position="0")
    plan = Append(target=blob, conditions=resolve(BLOB_APPEND_BLOCK, asked, blob), deadline=_patience())
    return Act(lambda: append_write.append(plan, iter([fresh_op().encode()]), stage.guarding.records))


def _update_blob(stage: CheckStage) -> Act:
    return _update(BlobContent(stage.make(Kind.BLOB)), lambda content: content + CONTENT)


def _update_entity(stage: CheckStage) -> Act:
    return _update(VersionedEntity(stage.make(Kind.ENTITY)), _add_one)


def _update_file(stage: CheckStage) -> Act:
    file = stage.make(Kind.FILE)
    # Its new content is renamed twice before: to the name that it is written under.
    return _update(FileContent(file, stage.guarding), lambda content: content + CONTENT)._replace(target=file)


def _update_under_lease(stage: CheckStage) -> Act:
    return _update(BlobContent(stage.make(Kind.BLOB)), lambda content: content + CONTENT, guard_by_lease=True)


def _update_with_ledger(stage: CheckStage) -> Act:
    op = fresh_op()
    entity = LedgeredEntity(stage.make(Kind.ENTITY), op=op, asks=False)
    return _update(entity, _add_one, op=op, ledger=True, stamps=False)


def _update(resource: UpdatableResource, transform: Callable[[bytes], bytes], **settings: Any) -> Act:
    plan = UpdatePlan(transform=transform, **{"op": fresh_op(), **settings})
    return Act(lambda: update.update(resource, plan, _patience()))


def _add_one(content: bytes) -> bytes:
    entity = json.loads(content)
    return json.dumps({**entity, "count": entity["count"] + 1}).encode()


def _acquire(stage: CheckStage) -> Act:
    blob, lease_id = stage.make(Kind.BLOB), stage.new_id()
    return Act(lambda: actions.acquire(blob, lease_id, LEASE_SECONDS, Conditions(), _patience()))


def _hold(do: Callable[[Target, Conditions, Deadline], object], stage: CheckStage) -> Act:
    blob = stage.make(Kind.BLOB)
    held = Conditions(lease_id=stage.lease(blob)[1])
    return Act(lambda: do(blob, held, _patience()))


def _create_room(kind: Kind, stage: CheckStage) -> Act:
    room = stage.name(kind)
    stage.note_made(room)
    return Act(lambda: lifecycles.create(room, {}, _patience(), fresh_op()))


def _insert(stage: CheckStage) -> Act:
    made = _write(stage.name(Kind.ENTITY), Verb.INSERT, Conditions())
    return Act(lambda: writes.write(made, _patience()))


def _transact(stage: CheckStage) -> Act:
    entity = stage.make(Kind.ENTITY)
    conditions = resolve(TABLE_ENTITY_UPDATE, _of_version(stage, entity), entity)
    items = [
        Item(1, _write(entity, Verb.REPLACE, conditions)),
        Item(2, _write(stage.name(Kind.ENTITY), Verb.INSERT, Conditions())),
    ]
    return Act(lambda: transactions.submit(items, _patience()))


def _write(target: Target, verb: Verb, conditions: Conditions) -> EntityWrite:
    partition, row = target.address.parts[1:]
    entity = {"PartitionKey": partition, "RowKey": row, "count": 1}
    return EntityWrite(target, verb, entity, conditions, fresh_op()).add_lineage()


def _put_message(stage: CheckStage) -> Act:
    return Act(lambda: messages.put(stage.rooms["queue"], "doctor", 0, None, _patience()))


def _update_message(stage: CheckStage) -> Act:
    message, receipt, _ = stage.put_message()
    return Act(lambda: messages.update(message, receipt, None, 0, _patience()))


def _delete_message(stage: CheckStage) -> Act:
    message, receipt, hidden_until = stage.put_message(LEASE_SECONDS)
    return Act(lambda: messages.delete(message, receipt, _patience(), hidden_until=hidden_until))


_WRITES = (
    SettlingWrite("create a blob", "blob.put_block_blob", _create_blob, requests=2),
    SettlingWrite("replace a blob", "blob.put_block_blob", _replace_blob, requests=4),
    SettlingWrite("safe-update of a blob", "blob.put_block_blob", _update_blob),
    SettlingWrite("safe-update under a lease", "blob.put_block_blob", _update_under_lease, is_basic=False),
    SettlingWrite("append to a blob", "blob.append_block", _append),
    SettlingWrite("delete a blob", "blob.delete", _delete_blob),
    SettlingWrite("acquire a lease", "blob.lease_acquire", _acquire, requests=2),
    SettlingWrite("renew a lease", "blob.lease_renew", partial(_hold, actions.renew), is_basic=False),
    SettlingWrite("release a lease", "blob.lease_release", partial(_hold, actions.release)),
    SettlingWrite("insert an entity", "table.entity_insert", _insert, requests=2),
    SettlingWrite("safe-update of an entity", "table.entity_update", _update_entity, requests=4),
    SettlingWrite("safe-update with a ledger", "table.batch", _update_with_ledger, is_basic=False),
    SettlingWrite("transaction of entities", "table.batch", _transact),
    SettlingWrite(
        "create a queue", "queue.create", partial(_create_room, Kind.QUEUE), takes_copies=True, is_basic=False
    ),
    # Nothing tells one message from its copy: sent twice, there are two. With an update's answer its receipt is lost.
    SettlingWrite("put a message", "queue.put_message", _put_message, damages=(Damage.LOST,), requests=1),
    SettlingWrite("update a message", "queue.update_message", _update_message, damages=(Damage.LOST,), is_basic=False),
    SettlingWrite("delete a message", "queue.delete_message", _delete_message, requests=2),
    SettlingWrite("create a share", "share.create", partial(_create_room, Kind.SHARE), is_basic=False),
    SettlingWrite("safe-update of a file", "file.rename", _update_file, requests=8),
)
