"""Options and addresses → the run of a tree, and what it shows."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from azguard.accounts.target import Target
from azguard.address import Address, Kind
from azguard.cli import lifecycle_options, terminal, tree_output, values
from azguard.cli.context import Environment
from azguard.cli.tree_get_options import TreeGetOptions
from azguard.cli.tree_options import TreeOptions, TreePutOptions
from azguard.conditions.requested import RequestedConditions
from azguard.errors import Partial, UsageError
from azguard.requests.pool import Done, Job

if TYPE_CHECKING:
    from azguard.blobs.trees import BlobTree
    from azguard.cli.put_options import PutOptions
    from azguard.trees.items import TreeSummary
    from azguard.trees.runs import Control


class Tree(Protocol):
    """What is run: an upload, a download or a delete."""

    @property
    def address(self) -> str:
        """Return what the prefix is."""

    def phases(self, control: "Control") -> list[Iterator[Job]]:
        """Return what is done one after the other."""

    def preview(self, control: "Control") -> Iterator[Done]:
        """Yield what would be done."""


def put(env: Environment, first: str, second: str | None, given: "PutOptions", tree: TreePutOptions) -> None:
    """Write a folder: ``put FOLDER ADDRESS``, or ``put ADDRESS -f FOLDER``.

    Raises:
        UsageError: there is no folder, or two of them.
        Partial: some files failed, or their outcome is unknown.
    """
    from azguard.trees.uploads import TreeUpload

    tree.check(env)
    if given.snapshot_first:
        raise UsageError(
            "--snapshot-first and --recursive do not go together", hint="azguard blob snapshot keeps one blob"
        )
    folder, address = _pair(first, second, given.file)
    skips_existing = lifecycle_options.skips(env, given.if_exists)
    store = _blobs(
        env,
        address,
        settings=given.check,
        stamps=not given.no_lineage,
        any_type=given.blob_type is not None,
    )
    upload = TreeUpload(
        folder=folder,
        store=store,
        patterns=tree.read_patterns(),
        reads=env.reads,
        asked=RequestedConditions.of(env.shared),
        scope=env.scope,
        skips_existing=skips_existing,
        skips_unchanged=tree.skips_unchanged,
        mirrors=tree.mirror,
        allows_empty=given.allow_empty,
        last=tuple(tree.last or ()),
        follows_links=tree.follow_symlinks,
    )
    _run(env, upload, tree, f"put {folder}")


def get(env: Environment, address: str, file: str | None, tree: TreeGetOptions) -> None:
    """Read what is under an address into a folder.

    Raises:
        UsageError: no folder was named.
        Partial: some files failed.
    """
    from azguard.trees.downloads import TreeDownload

    tree.check(env)
    if values.not_empty(file, "--file") in (None, "-"):
        raise UsageError("--recursive needs a folder to read into", hint="name it with -f DIR")
    store = _blobs(env, address)
    download = TreeDownload(
        store=store,
        folder=Path(str(file)),
        patterns=tree.read_patterns(),
        reads=env.reads,
        asked=RequestedConditions.of(env.shared),
        skips_existing=tree.skips_existing,
        skips_unchanged=tree.skips_unchanged,
        mirrors=tree.mirror,
        allows_empty=tree.allow_empty,
    )
    _run(env, download, tree, f"get {store.address}")


def delete(env: Environment, address: str, snapshots: str | None, tree: TreeOptions) -> None:
    """Delete what is under an address.

    Raises:
        Partial: some files failed, or their outcome is unknown.
    """
    from azguard.trees.deletes import Deleting, TreeDelete

    tree.check(env)
    store = _blobs(env, address, snapshots=snapshots)
    deleting = Deleting(store=store, reads=env.reads, asked=RequestedConditions.of(env.shared))
    _run(env, TreeDelete(deleting=deleting, patterns=tree.read_patterns()), tree, f"delete {store.address}")


def _pair(first: str, second: str | None, file: str | None) -> tuple[Path, str]:
    """Return the folder and the address, however they were typed."""
    folder, address = (file, first) if second is None else (first, second)
    if second is not None and file is not None:
        raise UsageError("two folders are named: one before the address, one with -f", hint="leave one of them out")
    if values.not_empty(folder, "the folder") in (None, "-"):
        raise UsageError(
            "--recursive needs a folder to write", hint="azguard blob put DIR CONTAINER/PREFIX/ --recursive"
        )
    return Path(str(folder)), address


def _blobs(env: Environment, text: str, **settings: Any) -> "BlobTree":
    """Return the blobs under an address: a container, or a prefix in it, with or without a slash at its end."""
    from azguard.blobs.trees import BlobTree

    is_url = "://" in text
    plain = text if is_url else text.rstrip("/").removeprefix("blob:").removeprefix("container:")
    kind = Kind.BLOB if "/" in plain else Kind.CONTAINER
    address = (target := env.locate(plain, None if is_url else kind, writable=True)).address
    if address.kind not in (Kind.BLOB, Kind.CONTAINER):
        raise UsageError(f"{text!r} names {address.kind.one}, and this command takes blobs")
    container = Target(target.account, Address(Kind.CONTAINER, (address.container,)))
    prefix = "" if address.kind is Kind.CONTAINER else f"{address.name.rstrip('/')}/"
    return BlobTree(container=container, prefix=prefix, **settings)


def _run(env: Environment, tree: Tree, given: TreeOptions, title: str) -> None:
    from azguard.trees import outage, runs

    lines = tree_output.Lines(env.out)
    if given.dry_run:
        try:
            _preview(tree.preview(runs.Control(env.deadline)), lines.print, tree.address)
        finally:
            lines.end()
        lines.finish()
        return
    with env.out.progress_bar(title) as progress:
        jobs = given.read_jobs()
        control = runs.Control(env.deadline, progress.at, outage=outage.Outage(outage.ROUNDS * jobs))

        def tell(summary: "TreeSummary") -> None:
            lines.end()
            tree_output.tell(env.out, summary, progress)

        runs.run_phases(tree.address, tree.phases(control), jobs, control, lines.show, tell)
    lines.finish()


def _preview(found: Iterator[Done], show: Callable[[Done], None], address: str) -> None:
    from azguard.trees.items import WOULD_REFUSE

    refused = 0
    for done in found:
        show(done)
        if done.error is not None or done.outcome == WOULD_REFUSE:
            refused += 1
    if refused:
        raise Partial(
            f"{terminal.count(refused, 'file')} of {address} would be refused",
            address=address,
            hint="read what changed first: azguard blob get --recursive",
        )
