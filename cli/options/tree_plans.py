"""Options and addresses → the run of a tree, and what it shows."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from azguard.cli.context import Environment
from azguard.cli.input import values
from azguard.cli.options.trees import TreeGetOptions, TreeOptions, TreePutOptions
from azguard.cli.output import terminal
from azguard.cli.output.trees import Lines, TreeProgress
from azguard.cli.output.trees import tell as tell_summary
from azguard.errors import Changed, Partial
from azguard.guards.requested import RequestedConditions
from azguard.requests.pool import Done, Job

if TYPE_CHECKING:
    from azguard.resources.tree_store import TreeStore
    from azguard.trees.runs import Control, TreeSummary
    from azguard.wire.rows import Operation


# Options of a put that say nothing of what a file is to be besides its content.
_OF_NO_PROPERTY = ("file", "content", "if_exists", "allow_empty", "no_lineage")


class Tree(Protocol):
    """What is run: an upload, a download or a delete."""

    @property
    def address(self) -> str:
        """Return the address of the prefix."""

    def phases(self, control: "Control") -> list[Iterator[Job]]:
        """Return the phases of the run, one after the other."""

    def preview(self, control: "Control") -> Iterator[Done]:
        """Yield what would be done."""


class PutGiven(Protocol):
    """What the options of a put of one file say of a tree, too."""

    @property
    def if_exists(self) -> str | None:
        """Return --if-exists."""

    @property
    def allow_empty(self) -> bool:
        """Return --allow-empty."""


def put(
    env: Environment,
    words: tuple[str, str | None],
    given: PutGiven,
    tree: TreePutOptions,
    open_store: "Callable[[str], TreeStore]",
    *,
    keeps_folders: bool = False,
) -> None:
    """Write a folder: ``put DIR ADDRESS``.

    Raises:
        UsageError: there is no folder.
        Partial: some files failed, or their outcome is unknown.
    """
    from azguard.trees.uploads import TreeUpload

    folder, address = words
    assert address is not None  # says the rule
    values.not_empty(folder, "DIR")
    skips_existing = given.if_exists is not None
    store = open_store(address)
    _check_options(env, store.PUT, store)
    asked = RequestedConditions.of(env.shared)
    upload = TreeUpload(
        folder=Path(folder),
        store=store,
        patterns=tree.read_patterns(),
        reads=env.reads,
        asked=asked,
        scope=env.scope,
        skips_existing=skips_existing,
        skips_unchanged=tree.unchanged is not None,
        skips_delivered=not skips_existing and asked == RequestedConditions() and not _sets_properties(given),
        mirrors=tree.mirror,
        allows_empty=given.allow_empty,
        keeps_folders=keeps_folders,
        last=tuple(dict.fromkeys(tree.last or ())),
        follows_links=tree.follow_symlinks,
    )
    _run(env, upload, tree, upload.sizes())


def _sets_properties(given: Any) -> bool:
    """Return whether properties were typed, which files get, too, whose content is there already."""
    for each in fields(given):
        value = getattr(given, each.name)
        if is_dataclass(value):
            if _sets_properties(value):
                return True
        elif each.name not in _OF_NO_PROPERTY and value not in (None, False, []):
            return True
    return False


def get(
    env: Environment,
    store: "Callable[[], TreeStore]",
    folder: str | None,
    tree: TreeGetOptions,
    *,
    overwrites: bool,
) -> None:
    """Read what is under an address into a folder.

    Raises:
        UsageError: the folder has no name.
        Partial: some files failed.
    """
    from azguard.trees.downloads import TreeDownload

    assert folder is not None  # says the rule
    values.not_empty(folder, "DIR")
    found = store()
    _check_options(env, found.GET, found)
    download = TreeDownload(
        store=found,
        folder=Path(folder),
        patterns=tree.read_patterns(),
        reads=env.reads,
        asked=RequestedConditions.of(env.shared),
        skips_existing=tree.if_exists is not None,
        skips_unchanged=tree.unchanged is not None,
        overwrites=overwrites,
        mirrors=tree.mirror,
        allows_empty=tree.allow_empty,
    )
    _run(env, download, tree, download.sizes(env.deadline))


def delete(
    env: Environment, store: "Callable[[], TreeStore]", tree: TreeOptions, *, keeps_folders: bool = False
) -> None:
    """Delete what is under an address.

    Raises:
        Partial: some files failed, or their outcome is unknown.
    """
    from azguard.trees.deletes import Deleting, TreeDelete

    found = store()
    _check_options(env, found.DELETE, found)
    deleting = Deleting(store=found, reads=env.reads, asked=RequestedConditions.of(env.shared))
    delete = TreeDelete(deleting=deleting, patterns=tree.read_patterns(), keeps_folders=keeps_folders)
    _run(env, delete, tree, None)


def _check_options(env: Environment, operation: "Operation", store: "TreeStore") -> None:
    """Refuse properties and conditions that no file can have, once and before any request."""
    from azguard.guards.resolve import resolve

    any_file = store.locate(f"{store.prefix}x")
    store.describe_settings(any_file)
    with suppress(Changed):  # Which files were read here is asked for each of them.
        resolve(operation, RequestedConditions.of(env.shared), any_file)


def _run(env: Environment, tree: Tree, given: TreeOptions, sizes: Iterator[int] | None) -> None:
    """Run a tree; ``sizes`` is what counts its files and bytes beside the run, if they can be counted."""
    from azguard.trees import runs

    lines = Lines(env.out)
    if given.dry_run:
        try:
            _preview(tree.preview(runs.Control(env.deadline)), lines.print, tree.address, env.command)
        finally:
            lines.end()
            lines.tell_wrong()
        lines.finish()
        return
    jobs = given.jobs
    control = runs.Control(env.deadline, outage=runs.Outage(runs.ROUNDS * jobs))
    with TreeProgress(env.command, tree.address, control.headway, sizes, enabled=env.out.progress) as progress:

        def tell(summary: "TreeSummary") -> None:
            lines.end()
            tell_summary(env.out, summary, progress)
            lines.tell_wrong()

        runs.run_phases(tree.address, tree.phases(control), jobs, control, progress.keep_below(lines.show), tell)
    lines.finish()


def _preview(found: Iterator[Done], show: Callable[[Done], None], address: str, command: str) -> None:
    from azguard.trees.runs import WOULD_REFUSE

    refused = 0
    for done in found:
        show(done)
        if done.error is not None or done.outcome == WOULD_REFUSE:
            refused += 1
    if refused:
        noun, verb = command.split()
        way_out = "here: --overwrite takes theirs" if verb == "get" else f"is read with azguard {noun} get --recursive"
        raise Partial(
            f"{terminal.count(refused, 'file')} of {address} would be refused",
            address=address,
            hint=f"each line says why; what changed {way_out}",
        )
