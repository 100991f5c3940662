"""The options of entities, and the lock of a table that a write of one can hold."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.cli import completers, context
from azguard.cli.context import Environment
from azguard.cli.input.addresses import locate_designated
from azguard.cli.options import common, leases, locks
from azguard.cli.options.types import NAMES, TEXT
from azguard.cli.parsing.rows import argument, flag, option
from azguard.cli.rules.engine import checked, excludes, needs
from azguard.leases.actions import DEFAULT_SECONDS
from azguard.locks.run import hold_lock

Entity = Annotated[
    str,
    argument("TABLE/PARTITION/ROW", "The entity, or its URL.", completer=completers.entities),
]
Select = Annotated[
    list[str] | None,
    option("--select", "NAME,…", "Read only these properties, the keys, the ETag.", NAMES),
]


@dataclass(frozen=True)
class TableLock:
    """The options of a write under the lock of its table, as typed."""

    with_table_lock: Annotated[
        bool,
        flag("--with-table-lock", "Hold the lock of the table during the write."),
    ] = False
    waiting: common.WaitOptions = field(default_factory=common.WaitOptions)
    lock_container: common.LockContainer = None

    RULES: ClassVar = (
        needs("--wait --no-wait --lock-container", "--with-table-lock"),
        checked("--lock-container", "the name of a container", "addresses.locate_designated"),
    )


@dataclass(frozen=True)
class EntityOptions:
    """The options that insert, replace, merge, upsert and delete share, as typed."""

    properties: Annotated[
        list[str] | None,
        argument("NAME[:TYPE]=VALUE", "Its properties, such as status=shipped n:int64=5."),
    ] = None
    file: Annotated[
        str | None,
        option("--file, -f", "FILE|-", "Read JSON from this file.", TEXT, otherwise="stdin"),
    ] = None
    no_lineage: common.NoLineage = False
    lock: TableLock = field(default_factory=TableLock)

    RULES: ClassVar = (excludes("--file", "NAME[:TYPE]=VALUE"),)


@contextmanager
def around_write(env: Environment, target: Target, asked: TableLock) -> Iterator[Callable[[], None]]:
    """Hold the lock of an entity's table, if that was asked for; what is yielded sees that it is held still.

    Raises:
        GaveUp: others hold it, and the time for waiting is over; nothing was written.
    """
    if not asked.with_table_lock:
        yield lambda: None
        return
    table = Target(target.account, Address(Kind.TABLE, target.address.parts[:1]))
    blob = locate_designated(env, table, asked.lock_container)
    wait = asked.waiting.wait_seconds
    settings = locks.acquire_settings(
        env, leases.this_process(env, f"azguard {env.command}"), DEFAULT_SECONDS, create=True
    )
    context.warn_of_end(blob, wait + DEFAULT_SECONDS, env.out.warn_once)
    with hold_lock(blob, settings, wait, env.environ) as held:
        yield lambda: None if held is None else held.check()
