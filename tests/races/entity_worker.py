"""A process of the race over one entity: increments it again and again, as ``azguard safe-update`` does.

``python -m tests.races.entity_worker PORT TABLE GUARD UPDATES SEED``. A line on standard output is what the caller of
one update would be told.
"""

import json
import os
import random
import sys
from typing import Any

from azguard.accounts import account
from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.errors import AzguardError
from azguard.folders import Folders
from azguard.requests.deadline import Deadline
from azguard.requests.lineage import new_op
from azguard.tables.updates import LedgeredEntity, VersionedEntity
from azguard.updates import update
from azguard.updates.local_runs import LocalQueue
from azguard.updates.resource import UpdateHooks, UpdatePlan

# How long one request may stay unanswered, and one update take, in seconds; some have little time, and must give up.
_ANSWER_SECONDS, _UPDATE_SECONDS, _HURRIED_SECONDS = 0.5, 20.0, (0.3, 1.5)
_HURRIED_SHARE = 0.2


def main(port: int, table: str, guard: str, updates: int, seed: str) -> None:
    """Make so many updates, and say how each ended."""
    dice, folders = random.Random(seed), Folders.of(os.environ)
    target = Target(account.emulator({"table": port}), Address(Kind.ENTITY, (table, "p", "r")))
    for _ in range(updates):
        hurried = dice.random() < _HURRIED_SHARE
        seconds = dice.uniform(*_HURRIED_SECONDS) if hurried else _UPDATE_SECONDS
        told = _told(target, guard, folders, Deadline(seconds, answer_seconds=_ANSWER_SECONDS))
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()


def _told(target: Target, guard: str, folders: Folders, deadline: Deadline) -> dict[str, Any]:
    op = new_op(os.urandom(12))
    by_ledger = guard == "ledger"
    resource = LedgeredEntity(target, op=op, asks=False) if by_ledger else VersionedEntity(target)
    plan = UpdatePlan(lambda content: _counted(content, op), op, create=b'{"n": 0, "ops": ""}', ledger=by_ledger)
    tools = UpdateHooks(queue=lambda: LocalQueue(folders.queues, str(target.address), deadline))
    try:
        ended = update.update(resource, plan, deadline, tools)
    except AzguardError as error:
        return {"op": op, "code": error.exit_code, "etag": None}
    return {"op": op, "code": 0, "etag": ended.committed.etag}


def _counted(content: bytes, op: str) -> bytes:
    """Add one, and leave the op's name behind."""
    entity = json.loads(content)
    return json.dumps({**entity, "n": entity["n"] + 1, "ops": f"{entity['ops']}{op} "}).encode()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5])
