"""Entities in the matrix: what is there, and a rival who writes one."""

import json
from typing import Any

from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError

from azguard.accounts.account import Account, Target
from azguard.address import Address, Kind
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import KEY
from azguard.tables.updates import VersionedEntity
from azguard.updates import update
from azguard.updates.resource import UpdatePlan
from tests.faults.matrix import Rival
from tests.support import sdk_clients

TABLE = "matrix"


def prepare(direct: Account) -> None:
    """Make the table of all rows, unless an earlier cell has."""
    try:
        _client(direct).create_table()
    except ResourceExistsError:
        pass


def content(direct: Account, name: str) -> bytes | None:
    """Return the properties of an entity, without its keys and its lineage; None if it is gone."""
    _, partition, row = name.split("/")
    try:
        found = _client(direct).get_entity(partition, row)
    except ResourceNotFoundError:
        return None
    shown = {key: value for key, value in found.items() if key not in ("PartitionKey", "RowKey", KEY)}
    return json.dumps(shown).encode()


def look_at_table(direct: Account, name: str) -> bytes | None:
    """Return nothing for a table that is there, and None for one that is not."""
    try:
        _client(direct, name).get_table_access_policy()
    except ResourceNotFoundError:
        return None
    return b""


def compete(direct: Account, name: str, rival: Rival) -> None:
    """Write an entity as another writer."""
    address = Address(Kind.ENTITY, tuple(name.split("/")))
    if rival is Rival.FOREIGN:
        _client(direct).upsert_entity(
            {"PartitionKey": address.parts[1], "RowKey": address.parts[2], "n": 10}, "replace"
        )
        return
    plan = UpdatePlan(lambda content: b'{"n": 10}', "rivalrivalrivalr", create=b"{}")
    update.update(VersionedEntity(Target(direct, address)), plan, Deadline())


def _client(direct: Account, name: str = TABLE) -> Any:
    return sdk_clients.table(direct, Address(Kind.TABLE, (name,)))
