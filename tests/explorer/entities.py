"""Updates of one entity, by lineage and beside a ledger; single writes of it, and a transaction of two."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.guards.resolve import Conditions
from azguard.tables import entities, transactions, writes
from azguard.tables.edm import Entity
from azguard.tables.transactions import Item
from azguard.tables.updates import LedgeredEntity, VersionedEntity
from azguard.tables.writes import EntityWrite, Verb
from azguard.updates.resource import Change, UpdateHooks, UpdatePlan
from azguard.updates.update import update
from tests.explorer import service
from tests.explorer.blob_service import Blob
from tests.explorer.faults import USUAL, Fault
from tests.explorer.foreign import LINEAGE
from tests.explorer.player import Process, Program
from tests.explorer.scenario import Bound, Foreign, Scenario, Services
from tests.explorer.table_service import TableService
from tests.explorer.updates import ONCE, Even, MemoryJournal, UpdateRules, op_of, tell_version
from tests.explorer.writes import WriteRules

PATH = "t(PartitionKey='p',RowKey='r')"
_START = {"PartitionKey": "p", "RowKey": "r", "owner": "them", "v": "s", LINEAGE: f"{op_of('first')}.-"}


class EntityRules(UpdateRules):
    """The rules of updates, for the property ``v`` of an entity."""

    def find(self, services: Services) -> Blob | None:
        found = services["table"].entities.get(PATH)
        if found is None:
            return None
        values = found.values
        others = tuple((name, str(value)) for name, value in sorted(values.items()) if name != "v")
        return Blob(found.etag, found.written, values["v"].encode(), others)


def _updater(
    name: str,
    *,
    ledger: bool,
    op: str | None = None,
    after: str | None = None,
    seconds: float = 60.0,
    creates: bool = False,
) -> Program:
    letter, key = op or name, op_of(op or name)
    keyed: dict[str, Any] = {} if op is None else {"is_keyed": True, "change": Change.of([op], op)}

    def transform(content: bytes) -> bytes:
        values = json.loads(content)
        is_there = creates and letter in values["v"]
        return json.dumps({**values, "v": values["v"] + ("" if is_there else letter)}).encode()

    def main(process: Process) -> str:
        target = Target(process.account, Address(Kind.ENTITY, ("t", "p", "r")))
        create = json.dumps(_new("r", "")).encode() if creates else None
        plan = UpdatePlan(transform, key, ledger=ledger, stamps=not ledger, create=create, **keyed)

        def now() -> Any:
            return service.moment(process.now)

        made = LedgeredEntity(target, op=key, asks=op is not None, now=now) if ledger else VersionedEntity(target)
        journal = MemoryJournal(process, key, keyed=plan.is_keyed)
        hooks = UpdateHooks(chance=Even(), new_op=lambda: op_of(f"{name}x"), now=now, journal=journal)
        return tell_version(process, update(made, plan, process.deadline(seconds), hooks))

    return Program(name, main, after=after, op=op, own=letter)


def _change(make: Callable[[Mapping[str, Any]], Mapping[str, Any] | None]) -> Foreign:
    def act(services: Services, now: float) -> Services | None:
        table: TableService = services["table"]
        if PATH not in table.entities:
            return None
        made = make(table.entities[PATH].values)
        return {**services, "table": table.delete(PATH) if made is None else table.put(PATH, now, made)}

    return act


def _without_lineage(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name != LINEAGE}


_MERGES = {"merges a property": _change(lambda values: {**values, "v": values["v"] + "f"})}
_REPLACES = {
    "replaces the entity": _change(lambda values: {**_without_lineage(values), "v": values["v"] + "f"}),
    "deletes the entity": _change(lambda values: None),
}


class EntityWriteRules(WriteRules):
    """The rules of single writes, for an entity."""

    def find(self, services: Services) -> Blob | None:
        found = services["table"].entities.get(PATH)
        return None if found is None else Blob(found.etag, found.written, found.values["v"].encode())


def _target(process: Process, row: str = "r") -> Target:
    return Target(process.account, Address(Kind.ENTITY, ("t", "p", row)))


def _write_one(process: Process, verb: Verb) -> str | None:
    """Write the entity over the version that was read, or an upsert over any, and return the ETag that it has then."""
    made = _read_and_make(process, verb, lambda value: process.name)
    return writes.write(made.add_lineage(), process.deadline(30)).etag


def _read_and_make(process: Process, verb: Verb, change: Callable[[str], str]) -> EntityWrite:
    target, conditions, entity = _target(process), Conditions(guard="if-none-match"), _new("r", change(""))
    if verb is not Verb.INSERT:
        found = entities.get(target, process.deadline(30))
        lineage, etag = str(found.lineage), found.etag
        conditions = Conditions({"If-Match": etag}, "if-match", etag, lineage=lineage)
        entity = {**found.entity, "v": change(str(found.entity["v"]))}
    process.tell("read", conditions.expected_etag or "-")
    if verb is Verb.UPSERT:
        conditions = Conditions()
    return EntityWrite(target, verb, entity, conditions, op_of(process.name))


def _new(row: str, value: str) -> Entity:
    return {"PartitionKey": "p", "RowKey": row, "v": value}


def _transact(process: Process) -> str | None:
    """Replace the entity, and insert another one, in one transaction."""
    row = f"x{process.name}"
    other = EntityWrite(_target(process, row), Verb.INSERT, _new(row, "x"), Conditions(), op_of(process.name))
    both = _read_and_make(process, Verb.REPLACE, lambda value: process.name), other
    items = [Item(line, each.add_lineage()) for line, each in enumerate(both, 1)]
    return transactions.submit(items, process.deadline(30))[0].etag


def _replace_between(process: Process) -> str:
    """Replace the entity by what is there with a letter more, over the version that was read."""
    made = _read_and_make(process, Verb.REPLACE, lambda value: value + process.name)
    writes.write(made.add_lineage(), process.deadline(30))
    return "committed"


class _BetweenRules(EntityRules):
    """The rules of updates of one key, and of a single write between them."""

    def see_told(self, ghost: Any, who: str, event: tuple[Any, ...], now: float) -> Any:
        return ghost if event[0] == "read" else super().see_told(ghost, who, event, now)


def _create(services: Services, now: float, content: str = "n") -> Services | None:
    table: TableService = services["table"]
    return None if PATH in table.entities else {**services, "table": table.put(PATH, now, {**_START, "v": content})}


def _undo(services: Services, now: float) -> Services | None:
    """Replace the entity, and delete what the transaction of A has inserted."""
    table: TableService = services["table"]
    other = PATH.replace("'r'", "'xA'")
    if not {other, PATH} <= table.entities.keys():
        return None
    values = {**_without_lineage(table.entities[PATH].values), "v": "f"}
    return {**services, "table": table.delete(other).put(PATH, now, values)}


def _list_single_writes() -> Iterator[Scenario]:
    """Yield the scenarios of single writes of an entity, two at once."""
    there, nothing = TableService().put(PATH, 0.0, _START), TableService()
    others = {**_MERGES, **_REPLACES, "creates the entity": _create}
    undone = {**_MERGES, "undoes the transaction": _undo}
    given: tuple[tuple[str, Callable[[Process], str | None], TableService, dict[str, Any]], ...] = (
        ("entity insert", partial(_write_one, verb=Verb.INSERT), nothing, {"foreign": _MERGES}),
        ("entity replace", partial(_write_one, verb=Verb.REPLACE), there, {"foreign": others}),
        ("entity merge", partial(_write_one, verb=Verb.MERGE), there, {"foreign": others}),
        ("entity delete", partial(_write_one, verb=Verb.DELETE), there, {"foreign": others, "alphabet": USUAL}),
        ("entity upsert", partial(_write_one, verb=Verb.UPSERT), there, {"foreign": others}),
        ("entity transaction", _transact, there, {"foreign": undone}),
        ("entity transaction, sent twice", _transact, there, {"foreign": {}, "alphabet": (Fault.TWICE,)}),
    )
    for name, run, table, more in given:
        yield Scenario(
            name=name,
            programs=tuple(Program(each, partial(_tell_written, run)) for each in "AB"),
            services={"table": table},
            rules=EntityWriteRules(is_guarded=name != "entity upsert"),
            bound=Bound(faults=1, foreign=1),
            short=Bound(faults=1),
            beyond={**others, **undone},
            is_symmetric=True,
            has_own_clocks=True,
            **{"alphabet": ONCE, **more},
        )
    programs = (
        _updater("A", ledger=False, op="K"),
        Program("P", _replace_between, after="A", own="P"),
        _updater("B", ledger=False, op="K", after="P"),
    )
    yield replace(_scenario("entity, op-id, replace between", *programs), rules=_BetweenRules(programs), foreign={})


def _tell_written(run: Callable[[Process], str | None], process: Process) -> str:
    process.tell("wrote", run(process))
    return "committed"


def scenarios() -> Iterator[Scenario]:
    """Yield the scenarios of one entity."""
    yield from _list_single_writes()
    by: dict[str, Any] = {"ledger": True}
    deep: dict[str, Any] = {"deep": Bound(faults=2, foreign=1, switches=0), "is_symmetric": True}
    both = _updater("A", ledger=False), _updater("B", ledger=False)
    yield _scenario("entity, lineage", *both, short=Bound(), **deep)
    yield _scenario("entity, ledger", _updater("A", **by), _updater("B", **by), **deep)
    again = _updater("B", op="K", after="A", **by)
    yield _scenario("entity, ledger, op-id twice", _updater("A", op="K", **by), again, kills=1)
    hurried = _updater("A", op="K", seconds=0.01, **by)
    yield _scenario("entity, ledger, op-id given up", hurried, again, kills=1)
    created = _scenario("entity, ledger, created by another", _updater("A", creates=True, **by), short=_SHORT)
    yield replace(
        created,
        services={"table": TableService()},
        foreign={"creates the entity alike": partial(_create, content="A"), **_REPLACES},
        bound=Bound(faults=1, foreign=2),
        short=Bound(faults=1, foreign=2),
    )


_SHORT = Bound(faults=1)


def _scenario(name: str, *programs: Program, kills: int = 0, short: Bound = _SHORT, **more: Any) -> Scenario:
    return Scenario(
        name=name,
        programs=programs,
        services={"table": TableService(concealed="v").put(PATH, 0.0, _START)},
        rules=EntityRules(programs),
        bound=Bound(faults=1, foreign=kills, kills=kills),
        short=short,
        foreign={**_MERGES, **_REPLACES},
        alphabet=ONCE,
        has_own_clocks=True,
        **more,
    )
