"""What a command is handed: the account, the cache, the conditions and the output of this run."""

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from azguard import address
from azguard.accounts.account import Account, Auth
from azguard.accounts.target import Target
from azguard.address import Kind, Location
from azguard.cache import records
from azguard.cli import deliveries, ending, inputs, values
from azguard.cli.output import Output, plain
from azguard.cli.progress import Progress
from azguard.cli.run_keys import ARGV, OPERATION, SHARED
from azguard.conditions import lease_ids, resolve
from azguard.conditions.operations import Lease, Operation
from azguard.conditions.resolve import Conditions, RequestedConditions
from azguard.conditions.seen import Remembered, SeenVersion
from azguard.errors import ConfigError, NotFound, UsageError
from azguard.folders import Folders
from azguard.locks import environment
from azguard.requests.deadline import PATIENCE_SECONDS, Deadline
from azguard.requests.lineage import new_op
from azguard.times import iso, parse_duration

if TYPE_CHECKING:
    from azguard.cache.copies import Copy
    from azguard.cache.etag_cache import EtagCache
    from azguard.cache.records import Entry, Key


@dataclass(frozen=True)
class Environment:
    """One run of one command. Everything in it is made when first asked for."""

    shared: Mapping[str, Any]
    operation: Operation | None
    command: str
    environ: Mapping[str, str]
    argv: tuple[str, ...] = ()
    #: What this run has warned of already.
    warned: list[str] = field(default_factory=list)

    @cached_property
    def out(self) -> Output:
        """Return where results and hints go."""
        return Output.of(self.shared, self.environ)

    @cached_property
    def folders(self) -> Folders:
        """Return where azguard keeps things on this machine."""
        return Folders.of(self.environ)

    @cached_property
    def scope(self) -> str:
        """Return whose reads guard this run's writes."""
        from azguard.cache.scope import current_scope

        return current_scope(self.shared.get("scope"), self.environ)

    @cached_property
    def cache(self) -> "EtagCache":
        """Return the ETag cache of this scope; damaged or read-only, it still answers, and a warning is shown."""
        from azguard.cache.etag_cache import EtagCache

        return EtagCache.open(self.folders.cache, self.scope, warn=self.out.warn, now=lambda: datetime.now(UTC))

    @cached_property
    def account(self) -> Account:
        """Return the account this run means."""
        from azguard.cli import accounts

        return accounts.choose(
            self.shared,
            self.environ,
            self.folders.profiles,
            lambda: accounts.local_emulator(self.folders),
        )

    @cached_property
    def located(self) -> dict[str, Target]:
        """Return the resources that this run is about, by address."""
        return {}

    @cached_property
    def deadline(self) -> Deadline:
        """Return how long this run keeps trying."""
        return self.patience(self.shared.get("timeout"), PATIENCE_SECONDS)

    def patience(self, timeout: str | None, otherwise: float) -> Deadline:
        """Return a deadline that begins now, of so many seconds or as long as the text of --timeout says.

        Raises:
            ConfigError: AZGUARD_WRITE_TIMEOUT is no duration.
        """
        seconds = otherwise if timeout is None else self.duration(timeout, "--timeout")
        return Deadline(seconds, answer_seconds=values.answer_seconds(self.environ))

    def warn_once(self, text: str) -> None:
        """Warn, unless this run has warned before: one credential that ends is one warning."""
        if not self.warned:
            self.warned.append(text)
            self.out.warn(text)

    def duration(self, text: str, option: str) -> float:
        """Return seconds for an option, refusing an empty or zero value."""
        seconds = parse_duration(text, option)
        if seconds <= 0:
            raise UsageError(f"{option} must be more than nothing", hint=f"{option} 30s")
        return seconds

    def location(self, text: str, kind: Kind | None = None) -> Location:
        """Return what an address or URL names, and where; the account in use may tell which service a URL is of.

        Raises:
            UsageError: it is malformed, or of another kind than the command takes.
        """
        return address.parse(text, kind, self._endpoints)

    def _endpoints(self) -> Mapping[str, str]:
        try:
            return self.account.endpoints
        except (ConfigError, UsageError):
            return {}  # A URL with a SAS needs no account; what needs one says what is wrong with it.

    def locate(self, text: str, kind: Kind | None = None, *, writable: bool = False) -> Target:
        """Return the resource an address or URL names, in its account.

        Raises:
            UsageError: the address is malformed, or names a snapshot where something is to be written.
        """
        location = self.location(text, kind)
        if writable and (location.address.snapshot or location.address.version):
            raise UsageError(
                f"{location.address.short} is a snapshot or version, which cannot be written",
                hint="leave ?snapshot=… or ?versionid=… out",
            )
        account = Account("", {}, Auth.ANONYMOUS) if location.sas is not None else self.account
        target = Target(account.at(location), location.address)
        ending.warn(target, self.deadline.seconds, self.warn_once)
        self.located[str(target.address)] = target
        return target

    def conditions(
        self,
        target: Target,
        copy: "Copy | SeenVersion | None" = None,
        operation: Operation | None = None,
        lease_id: str | None = None,
    ) -> Conditions:
        """Return what an operation sends for this run's conditions, or its own lease id, and the cache's guard.

        ``copy`` is the file that is written, or the version that what is written came with.
        """
        which = operation or self.operation
        assert which is not None
        asked = RequestedConditions.of(self.shared if lease_id is None else {**self.shared, "lease_id": lease_id})
        found = resolve.resolve(which, asked, target, self.known(target, which, asked, copy))
        around = environment.lease_id(target, self.environ)
        if around is None or found.lease_id is not None or which.lease is not Lease.REQUIRED:
            return found
        # Without it the service would refuse the write; the version stays what it is.
        return replace(found, lease_id=around, guard="lease" if found.guard == "none" else found.guard)

    def known(
        self, target: Target, operation: Operation, asked: RequestedConditions, copy: "Copy | SeenVersion | None" = None
    ) -> Remembered:
        """Return what this scope knows of a resource, as far as what was asked for needs it."""
        held = self._held(target) if asked.lease_id == "@held" else None
        needs_cache = operation.writes or "@last" in (asked.if_match, asked.if_none_match, asked.etag)
        if not needs_cache:
            return Remembered(lease=held)
        last = self.last(target)
        if isinstance(copy, SeenVersion):
            return Remembered(last=last, copy=last if last is not None and last.etag == copy.etag else copy, lease=held)
        if copy is None:
            return Remembered(last=last, lease=held)
        path, inode = (_seen(each) for each in self.cache.bound(self.key(target), copy))
        is_moved = path is not None and inode is not None and path.etag != inode.etag
        return Remembered(last=last, copy=path or inode, other=inode if is_moved else None, lease=held)

    def remember(
        self,
        target: Target,
        result: Any,
        copy: "Copy | None" = None,
        lineage: str | None = None,
        *,
        selected: str | None = None,
    ) -> None:
        """Record what was just delivered or written, so that the next write is guarded by it.

        A write whose ETag could not be learnt leaves nothing to be guarded by. ``selected`` is as in ``Seen``.
        """
        if result.etag is None:
            self.cache.forget(self.key(target))
            return
        blob_type = getattr(result, "blob_type", None)
        self.cache.record(
            self.key(target),
            etag=result.etag,
            last_modified=iso(result.last_modified),
            length=getattr(result, "content_length", None),
            content_hash=getattr(result, "content_hash", None),
            lineage=lineage,
            copy=copy,
            command=records.of_type(records.selecting(self.command, selected), blob_type),
        )

    def delivered(self, result: object) -> bool:
        """Return whether a result that was shown is, whole, where it can be used."""
        self.out.flush()
        return self.out.shows_whole(plain(result)) and deliveries.to_stream(sys.stdout).is_kept

    def follow(self, target: Target, before: str | None, after: str | None, lineage: str | None) -> None:
        """Record that a version read here got a new ETag by our own write, with its content unchanged."""
        if before is not None and after is not None:
            self.cache.follow(self.key(target), before, after, lineage)

    def lease_id(self, target: Target, asked: str | None) -> str | None:
        """Return the lease id an option names, ``@held`` included."""
        if asked is None:
            return environment.lease_id(target, self.environ)
        return lease_ids.resolve_lease_id(asked, self._held(target) if asked == "@held" else None)

    def _held(self, target: Target) -> str | None:
        """Return the id of the lease held on a resource: by the lock run around us, else by this scope."""
        found = self.cache.held(self.key(target))
        return environment.lease_id(target, self.environ) or (found.lease_id if found else None)

    def forget(self, target: Target) -> None:
        """Forget a resource that was deleted from here."""
        self.cache.forget(self.key(target))

    def key(self, target: Target) -> "Key":
        """Return the cache's key of a resource: the account's endpoint and the address, without secrets."""
        from azguard.cache.records import Key

        return Key(target.endpoint, str(target.address))

    def show(self, result: object, alone: str | None = None) -> None:
        """Print a result; ``alone`` is the field that TSV shows without the others."""
        self.out.show(result, alone)

    def show_each(self, results: Iterable[object]) -> None:
        """Print many results as they come."""
        self.out.show_each(results)

    def show_beside(self, result: object, file: Path | None, *, bytes_on_stdout: bool) -> None:
        """Print the result of a get, unless its bytes are on stdout; and write it to ``file`` if one is given."""
        if file is not None:
            inputs.write_json(file, result)
        if not bytes_on_stdout:
            self.show(result)

    def answer_exists(self, target: Target, look: Callable[[], object]) -> None:
        """Say whether a resource exists, on stdout and by the exit status: 0 or 44."""
        found = True
        try:
            look()
        except NotFound:
            found = False
        self.answer({"address": str(target.address), "exists": found}, 0 if found else NotFound.exit_code)

    def answer(self, result: object, status: int) -> None:
        """Print a result and end with a status that is part of the answer."""
        self.show(result)
        if status:
            raise typer.Exit(status)

    def progress(self, title: str, total: int | None = None) -> Progress:
        """Return a progress bar, which draws only on a terminal."""
        return Progress(title, total, self.out.progress)

    def new_op(self) -> str:
        """Return a fresh op id for one write."""
        return new_op(os.urandom(12))

    def last(self, target: Target) -> SeenVersion | None:
        """Return the version this scope last read or wrote."""
        return _seen(self.cache.last(self.key(target)))


def _seen(entry: "Entry | None") -> SeenVersion | None:
    if entry is None:
        return None
    return SeenVersion(
        entry.etag,
        entry.lineage,
        entry.last_modified,
        selected=records.selection(entry.command),
        blob_type=records.blob_type(entry.command),
    )


def of(ctx: typer.Context) -> Environment:
    """Return the environment of a command's run."""
    if not isinstance(ctx.obj, Environment):
        command = " ".join(ctx.command_path.split()[1:])
        ctx.obj = Environment(
            ctx.meta.get(SHARED, {}), ctx.meta.get(OPERATION), command, os.environ, ctx.meta.get(ARGV, ())
        )
        ctx.obj.out  # noqa: B018  # a wrong --output is said before anything is done
    return ctx.obj
