"""The options of commands that move trees of files, whatever the service."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from azguard.cli.options.types import TEXT, choice, whole
from azguard.cli.parsing.rows import TREES, argument, flag, option
from azguard.cli.rules.engine import Rule, checked, excludes, needs
from azguard.errors import UsageError
from azguard.requests import pool

if TYPE_CHECKING:
    from azguard.cli.context import Environment
    from azguard.trees.names import Patterns


_KeepDirectories = Annotated[
    bool,
    flag("--keep-directories", "Keep directories that the deletes made empty.", panel=TREES),
]


#: The folder of a get.
Folder = Annotated[str | None, argument("DIR", "With --recursive: the folder to read into.")]


@dataclass(frozen=True)
class TreeOptions:
    """What every command on a tree takes."""

    recursive: Annotated[
        bool,
        flag("--recursive, -r", "All files below the address, each with its own guard.", panel=TREES),
    ] = False
    include: Annotated[
        list[str] | None,
        option("--include", "PATTERN", "Only files that match, as in .gitignore; repeat it for more.", panel=TREES),
    ] = None
    exclude: Annotated[
        list[str] | None,
        option("--exclude", "PATTERN", "No files that match, as in .gitignore; repeat it for more.", panel=TREES),
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
        checked("--include --exclude", "patterns as in .gitignore", "trees.read_patterns"),
    )

    def read_patterns(self) -> "Patterns":
        """Return which names are meant."""
        from azguard.trees.names import Patterns

        found = Patterns(tuple(self.include or ()), tuple(self.exclude or ()))
        found.check()
        return found


@dataclass(frozen=True)
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


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class FileTreeDeleteOptions(TreeOptions):
    """What a delete of a tree takes besides."""

    keep_directories: _KeepDirectories = False

    RULES: ClassVar[tuple[Rule, ...]] = (needs("--keep-directories", "--recursive"),)


@dataclass(frozen=True)
class FileTreePutOptions(TreePutOptions):
    """What a put of a tree takes besides."""

    keep_directories: _KeepDirectories = False

    RULES: ClassVar[tuple[Rule, ...]] = (needs("--keep-directories", "--recursive"),)


@dataclass(frozen=True)
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
