"""The options of commands that move trees of blobs or files, and the run that they describe."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol

from azguard.cli.options.types import TEXT, ValueType, choice, require_text, whole
from azguard.cli.parsing.rows import TREES, argument, flag, option
from azguard.cli.rules import Rule, checked, excludes, needs
from azguard.errors import Changed, UsageError
from azguard.frozen import frozen
from azguard.guards.requested import RequestedConditions
from azguard.guards.resolve import resolve
from azguard.resources import pool

if TYPE_CHECKING:
    from azguard.cli.context import Environment
    from azguard.cli.output.trees import Tree
    from azguard.resources.tree_store import TreeStore
    from azguard.trees.names import Patterns
    from azguard.wire.rows import Operation


# Options of a put that set no property of a file.
_OF_NO_PROPERTY = ("file", "content", "if_exists", "allow_empty", "no_lineage")


def _read_pattern(text: str, name: str) -> str:
    from azguard.trees import names

    names.check_pattern(text, name)
    return text


_PATTERN = ValueType("pattern", _read_pattern)
_KeepDirectories = Annotated[
    bool,
    flag("--keep-directories", "Keep directories that the deletes made empty.", panel=TREES),
]


#: The folder of a get.
Folder = Annotated[str | None, argument("DIR", "With --recursive: the folder to read into.", TEXT)]


@frozen
class TreeOptions:
    """What every command on a tree takes."""

    recursive: Annotated[
        bool,
        flag("--recursive, -r", "All files below the address, each with its own guard.", panel=TREES),
    ] = False
    include: Annotated[
        list[str] | None,
        option(
            "--include",
            "PATTERN",
            "Only files that match, as in .gitignore; repeat it for more.",
            _PATTERN,
            panel=TREES,
        ),
    ] = None
    exclude: Annotated[
        list[str] | None,
        option(
            "--exclude", "PATTERN", "No files that match, as in .gitignore; repeat it for more.", _PATTERN, panel=TREES
        ),
    ] = None
    dry_run: Annotated[bool, flag("--dry-run", "Show what would be done; write nothing.", panel=TREES)] = False
    jobs: Annotated[int, option("--jobs", "N", "Work on N files at a time.", whole(1, pool.MOST_JOBS), panel=TREES)] = (
        pool.DEFAULT_JOBS
    )

    RULES: ClassVar[tuple[Rule, ...]] = (
        needs("--include --exclude --jobs", "--recursive"),
        excludes(
            "--recursive",
            "--if-match --if-none-match --etag --lease-id",
            "each file has a version of its own",
            "leave the version out: each file is guarded by what was read of it here",
        ),
    )

    def read_patterns(self) -> "Patterns":
        from azguard.trees.names import Patterns

        return Patterns(tuple(self.include or ()), tuple(self.exclude or ()))

    def delete(self, env: "Environment", store: "TreeStore", *, keeps_folders: bool = False) -> None:
        """Delete all files below an address.

        Raises:
            Partial: some files failed, or their outcome is unknown.
        """
        from azguard.trees.deletes import Deleting, TreeDelete

        asked = _check_conditions(env, store.DELETE, store)
        deleting = Deleting(store=store, reads=env.reads, asked=asked)
        self._run(env, TreeDelete(deleting=deleting, patterns=self.read_patterns(), keeps_folders=keeps_folders))

    def _run(self, env: "Environment", tree: "Tree", sizes: Iterator[int] | None = None) -> None:
        from azguard.cli.output import trees

        trees.run(env, tree, self.jobs, sizes, is_preview=self.dry_run)


@frozen
class TreeCopyOptions(TreeOptions):
    """What a put and a get of a tree take besides."""

    unchanged: Annotated[
        str | None,
        option(
            "--unchanged",
            "skip",
            "Skip files whose content is there already, also those never read here.",
            choice,
            panel=TREES,
        ),
    ] = None
    mirror: Annotated[
        bool,
        flag("--mirror", "At the end, delete files there that are not here.", panel=TREES),
    ] = False

    RULES: ClassVar[tuple[Rule, ...]] = (needs("--unchanged --mirror --dry-run", "--recursive"),)


@frozen
class TreePutOptions(TreeCopyOptions):
    """What a put of a tree takes besides."""

    last: Annotated[
        list[str] | None,
        option("--last", "FILE", "Write this file after all others; repeat it for more.", TEXT, panel=TREES),
    ] = None
    follow_symlinks: Annotated[
        bool,
        flag("--follow-symlinks", "Follow symbolic links.", panel=TREES),
    ] = False

    RULES: ClassVar[tuple[Rule, ...]] = (
        needs("--last --follow-symlinks", "--recursive"),
        excludes(
            "--recursive",
            "--file",
            "a folder is the first word",
            "name it before the address: put DIR DEST/ --recursive",
        ),
        checked("CONTAINER/PREFIX/ SHARE/PREFIX/", "only with --recursive", "trees.refuse_second"),
    )

    def put(
        self,
        env: "Environment",
        words: tuple[str, str | None],
        given: "PutGiven",
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
        require_text(folder, "DIR")
        store = open_store(address)
        asked = _check_conditions(env, store.PUT, store)
        skips_existing = given.if_exists is not None
        upload = TreeUpload(
            folder=Path(folder),
            store=store,
            patterns=self.read_patterns(),
            reads=env.reads,
            asked=asked,
            scope=env.scope,
            skips_existing=skips_existing,
            skips_unchanged=self.unchanged is not None,
            skips_delivered=not skips_existing and asked == RequestedConditions() and not _sets_properties(given),
            mirrors=self.mirror,
            allows_empty=given.allow_empty,
            keeps_folders=keeps_folders,
            last=tuple(dict.fromkeys(self.last or ())),
            follows_links=self.follow_symlinks,
        )
        self._run(env, upload, upload.sizes())


class PutGiven(Protocol):
    """What the options of a put of one file say of a tree, too."""

    @property
    def if_exists(self) -> str | None:
        """Return --if-exists."""

    @property
    def allow_empty(self) -> bool:
        """Return --allow-empty."""


def _sets_properties(given: Any) -> bool:
    """Return whether properties were typed, which files get, too, whose content is there already."""
    values = ((each.name, getattr(given, each.name)) for each in fields(given))
    return any(
        _sets_properties(value) if is_dataclass(value) else name not in _OF_NO_PROPERTY and value not in (None, False)
        for name, value in values
    )


@frozen
class FileTreeDeleteOptions(TreeOptions):
    """What a delete of a tree takes besides."""

    keep_directories: _KeepDirectories = False

    RULES: ClassVar[tuple[Rule, ...]] = (needs("--keep-directories", "--recursive"),)


@frozen
class FileTreePutOptions(TreePutOptions):
    """What a put of a tree takes besides."""

    keep_directories: _KeepDirectories = False

    RULES: ClassVar[tuple[Rule, ...]] = (needs("--keep-directories", "--recursive"),)


@frozen
class TreeGetOptions(TreeCopyOptions):
    """What a get of a tree takes besides."""

    if_exists: Annotated[
        str | None,
        option("--if-exists", "skip", "Leave alone what is in the folder.", choice, panel=TREES),
    ] = None

    allow_empty: Annotated[
        bool,
        flag("--allow-empty", "End with 0 if nothing is there; with --mirror this empties your folder.", panel=TREES),
    ] = False

    RULES: ClassVar[tuple[Rule, ...]] = (
        needs("--if-exists --allow-empty", "--recursive"),
        excludes(
            "--recursive",
            "--file",
            "the folder is the second word",
            "name it behind the address: get SRC/ DIR --recursive",
        ),
        excludes("--recursive", "--result", "each file has a line of its own", "leave --result out"),
        checked("DIR", "only with --recursive", "trees.refuse_second"),
        checked("--query", "a result, not content, goes to stdout", "streams.choose_places"),
        needs("--recursive", "DIR", "the folder to read into", "name it behind the address: get SRC/ DIR --recursive"),
    )

    def get(self, env: "Environment", store: "TreeStore", folder: str | None, *, overwrites: bool) -> None:
        """Read all files below an address into a folder.

        Raises:
            Partial: some files failed.
        """
        from azguard.trees.downloads import TreeDownload

        assert folder is not None  # says the rule
        download = TreeDownload(
            store=store,
            folder=Path(folder),
            patterns=self.read_patterns(),
            reads=env.reads,
            asked=_check_conditions(env, store.GET, store),
            skips_existing=self.if_exists is not None,
            skips_unchanged=self.unchanged is not None,
            overwrites=overwrites,
            mirrors=self.mirror,
            allows_empty=self.allow_empty,
        )
        self._run(env, download, download.sizes(env.deadline))


def _check_conditions(env: "Environment", operation: "Operation", store: "TreeStore") -> RequestedConditions:
    """Return the conditions; refuse those, and properties, that no file can have, once and before any request."""
    asked = RequestedConditions.of(env.shared)
    any_file = store.locate(f"{store.prefix}x")
    store.settings(any_file.address.name)
    with suppress(Changed):  # Which files were read here is asked for each of them.
        resolve(operation, asked, any_file)
    return asked


def refuse_second(env: "Environment", second: str | None) -> None:
    """Refuse a second word where one resource is meant.

    Raises:
        UsageError: there is one; the hint tells where an option is missing before it.
    """
    if second is not None:
        from azguard.cli.words import guesses

        raise UsageError(
            f"two arguments are one too many: {second!r}",
            hint=guesses.hint_for_values(env.argv)
            or "name the file with -f FILE, or add --recursive if it is a folder",
        )
