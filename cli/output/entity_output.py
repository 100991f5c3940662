"""Entities printed, and the versions of those that were printed whole recorded."""

import sys
from collections.abc import Iterable, Mapping, Sequence

from azguard.accounts.target import Target
from azguard.cache import records
from azguard.cache.records import Key
from azguard.cli.context import Environment
from azguard.cli.output import delivery
from azguard.cli.output.plain import plain
from azguard.cli.output.results import Output
from azguard.tables import entities
from azguard.tables.entities import Stored

_Row = Mapping[str, object]


def deliver_one(env: Environment, target: Target, stored: Stored, select: Sequence[str]) -> None:
    """Print an entity and record its version, if all of it was delivered."""
    row = _row(env.out, entities.as_printed(stored, select))
    env.out.show(row)
    env.out.flush()
    if env.out.shows_whole(row) and delivery.to_stream(sys.stdout).is_kept:
        _record_reads(env, target, [stored], select)


def deliver(env: Environment, table: Target, pages: Iterable[Sequence[Stored]], select: Sequence[str]) -> None:
    """Print the entities of a table and record the versions of those that were printed whole.

    They are printed and recorded page by page, where the format lets them.
    """
    batches = pages if _streams(env.out) else [[each for page in pages for each in page]]
    for page in batches:
        rows = [_row(env.out, entities.as_printed(each, select)) for each in page]
        _show(env.out, rows)
        env.out.flush()
        whole = _shows_whole(env.out, rows)
        if delivery.to_stream(sys.stdout).is_kept:
            _record_reads(env, table, [each for each, is_whole in zip(page, whole, strict=True) if is_whole], select)


def _streams(out: Output) -> bool:
    return out.format not in ("table", "yaml") and out.query is None


def _row(out: Output, row: _Row) -> _Row:
    """Return an entity as this format shows it: for people and as TSV without its types and ETag."""
    return entities.drop_types(row) if out.query is None and out.format in ("table", "tsv") else row


def _show(out: Output, rows: Sequence[_Row]) -> None:
    """Print entities: JSON as one object per line."""
    if out.format == "json" and out.query is None:
        out.json_lines(rows)
    else:
        out.show_each(rows)


def _shows_whole(out: Output, rows: Sequence[_Row]) -> list[bool]:
    """Return of each entity whether all of it is printed; --query can choose some and leave them whole."""
    if out.format == "none":
        return [False] * len(rows)
    values = [plain(row) for row in rows]
    if out.query is not None:
        found = out.pick(values)
        printed = {id(each) for each in found} if isinstance(found, list) else {id(found)}
        return [id(value) in printed for value in values]
    if out.format == "table":
        from azguard.cli.output import rendering

        return [rendering.shows_all(values, rendering.of(rows))] * len(rows)
    return [True] * len(rows)


def _record_reads(env: Environment, table: Target, delivered: Iterable[Stored], select: Sequence[str]) -> None:
    """Record the versions of entities of one table that were just delivered, with all or only some properties."""
    found = ((entities.find_address(table, each), entities.to_seen_version(each)) for each in delivered)
    names = ",".join(sorted(set(select))) or None
    env.cache.record_all(
        ((Key(table.endpoint, str(address)), seen) for address, seen in found if address is not None),
        records.add_selection(env.command, names),
    )
