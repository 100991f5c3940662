"""Updates of one entity, by lineage and beside a ledger."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.tables.updates import LedgeredEntity, VersionedEntity
from azguard.updates.resource import Change, UpdateHooks, UpdatePlan
from azguard.updates.update import update
from tests.explorer import service
from tests.explorer.blob_service import Blob
from tests.explorer.foreign import LINEAGE
from tests.explorer.player import Process, Program
from tests.explorer.scenario import Bound, Foreign, Scenario, Services
from tests.explorer.table_service import TableService
from tests.explorer.updates import ONCE, Even, MemoryJournal, UpdateRules, op_of

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


def _updater(name: str, *, ledger: bool, op: str | None = None, after: str | None = None) -> Program:
    letter, key = op or name, op_of(op or name)
    keyed: dict[str, Any] = {} if op is None else {"is_keyed": True, "change": Change.of([op], op)}

    def transform(content: bytes) -> bytes:
        values = json.loads(content)
        return json.dumps({**values, "v": values["v"] + letter}).encode()

    def main(process: Process) -> str:
        target = Target(process.account, Address(Kind.ENTITY, ("t", "p", "r")))
        plan = UpdatePlan(transform, key, ledger=ledger, stamps=not ledger, **keyed)

        def now() -> Any:
            return service.moment(process.now)

        made = LedgeredEntity(target, op=key, asks=op is not None, now=now) if ledger else VersionedEntity(target)
        journal = MemoryJournal(process, key, keyed=plan.is_keyed)
        hooks = UpdateHooks(chance=Even(), new_op=lambda: op_of(f"{name}x"), now=now, journal=journal)
        return update(made, plan, process.deadline(60), hooks).outcome

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


def scenarios() -> Iterator[Scenario]:
    """Yield the scenarios of updates of one entity."""
    by: dict[str, Any] = {"ledger": True}
    deep: dict[str, Any] = {"deep": Bound(faults=2, foreign=1, switches=0), "is_symmetric": True}
    both = _updater("A", ledger=False), _updater("B", ledger=False)
    yield _scenario("entity, lineage", *both, short=Bound(), **deep)
    yield _scenario("entity, ledger", _updater("A", **by), _updater("B", **by), **deep)
    yield _scenario(
        "entity, ledger, op-id twice", _updater("A", op="K", **by), _updater("B", op="K", after="A", **by), kills=1
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
        judges_doubts=False,
        has_own_clocks=True,
        **more,
    )
