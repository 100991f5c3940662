"""Entities printed, and the versions of those that were printed whole recorded."""

import sys
from collections.abc import Iterable, Sequence

from azguard.accounts.target import Target
from azguard.cache import records
from azguard.cache.records import Key
from azguard.cli import deliveries
from azguard.cli.context import Environment
from azguard.tables import reads
from azguard.tables.calls import Stored


def deliver_one(env: Environment, target: Target, stored: Stored, select: Sequence[str]) -> None:
    """Print an entity and record its version, if all of it was delivered."""
    row = reads.as_printed(stored, select)
    env.out.show_row(row)
    env.out.flush()
    if env.out.shows_whole(row) and deliveries.to_stream(sys.stdout).is_kept:
        _remember_read(env, target, [stored], select)


def deliver(env: Environment, table: Target, pages: Iterable[Sequence[Stored]], select: Sequence[str]) -> None:
    """Print the entities of a table and record the versions of those that were printed whole.

    They are printed and recorded page by page, where the format lets them.
    """
    batches = pages if env.out.streams else [[each for page in pages for each in page]]
    for page in batches:
        rows = [reads.as_printed(each, select) for each in page]
        env.out.show_rows(rows)
        env.out.flush()
        whole = env.out.whole(rows)
        if deliveries.to_stream(sys.stdout).is_kept:
            _remember_read(env, table, [each for each, is_whole in zip(page, whole, strict=True) if is_whole], select)


def _remember_read(env: Environment, table: Target, delivered: Iterable[Stored], select: Sequence[str]) -> None:
    """Record the versions of entities of one table that were just delivered, with all or only some properties."""
    found = ((reads.address(table, each), reads.to_seen_version(each)) for each in delivered)
    names = ",".join(sorted(set(select))) or None
    env.cache.record_all(
        ((Key(table.endpoint, str(address)), seen) for address, seen in found if address is not None),
        records.selecting(env.command, names),
    )
