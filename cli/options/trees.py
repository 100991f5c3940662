"""The options of commands that move trees of files, whatever the service."""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated

from azguard.cli.input import values
from azguard.cli.parsing.rows import TREES, flag, option
from azguard.errors import UsageError

if TYPE_CHECKING:
    from azguard.cli.context import Environment
    from azguard.trees.names import Patterns


# Each names one version or one lease, and a tree has many.
_OF_ONE = ("if_match", "if_none_match", "etag", "lease_id")
_KeepDirectories = Annotated[
    bool,
    flag("--keep-directories", "Keep directories that the deletes made empty.", panel=TREES),
]


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
    jobs: Annotated[
        str | None,
        option("--jobs", "N", "Work on N files at a time; by default, 16.", panel=TREES),
    ] = None

    def check(self, env: "Environment", second: str | None = None) -> None:
        """Refuse what means nothing together; ``second`` is an address behind the first argument.

        Raises:
            UsageError: an option of trees without --recursive, or one of single files with it.
        """
        if not self.recursive:
            self._refuse_without_recursive()
            if second is not None:
                from azguard.cli.words import guesses

                raise UsageError(
                    f"two arguments are one too many: {second!r}",
                    hint=guesses.hint_for_values(env.argv)
                    or "name the file with -f FILE, or add --recursive if it is a folder",
                )
            return
        from azguard.guards.requested import RequestedConditions

        asked = RequestedConditions.of(env.shared)
        for name in _OF_ONE:
            if getattr(asked, name) is not None:
                option = f"--{name.replace('_', '-')}"
                raise UsageError(
                    f"{option} is for one file, and --recursive is for many: each has a version of its own",
                    hint=f"leave {option} out: each file is guarded by the version that was read here",
                )
        self.read_patterns()
        self.read_jobs()

    def _refuse_without_recursive(self) -> None:
        for each in fields(self):
            if getattr(self, each.name) not in (None, False):
                raise UsageError(f"--{each.name.replace('_', '-')} needs --recursive", hint="add --recursive")

    def read_patterns(self) -> "Patterns":
        """Return which names are meant."""
        from azguard.trees.names import Patterns

        found = Patterns(tuple(self.include or ()), tuple(self.exclude or ()))
        found.check()
        return found

    def read_jobs(self) -> int:
        """Return how many files are moved at a time."""
        from azguard.requests import pool

        return pool.DEFAULT_JOBS if self.jobs is None else values.whole(self.jobs, "--jobs", 1, pool.MOST_JOBS)


@dataclass(frozen=True)
class TreeCopyOptions(TreeOptions):
    """What a put and a get of a tree take besides."""

    unchanged: Annotated[
        str | None,
        option(
            "--unchanged",
            "skip",
            "Skip files whose content is there already, also those never read here.",
            panel=TREES,
        ),
    ] = None
    mirror: Annotated[
        bool,
        flag("--mirror", "At the end, delete files there that are not here.", panel=TREES),
    ] = False

    @property
    def skips_unchanged(self) -> bool:
        """Return whether content that is there already is left alone."""
        return values.choice(values.not_empty(self.unchanged, "--unchanged"), "--unchanged", ("skip",)) is not None


@dataclass(frozen=True)
class TreePutOptions(TreeCopyOptions):
    """What a put of a tree takes besides."""

    last: Annotated[
        list[str] | None,
        option("--last", "FILE", "Write this file after all others; repeat it for more.", panel=TREES),
    ] = None
    follow_symlinks: Annotated[
        bool,
        flag("--follow-symlinks", "Follow symbolic links.", panel=TREES),
    ] = False

    def read_last(self) -> tuple[str, ...]:
        """Return the names that come after all others, each once."""
        return tuple(dict.fromkeys(str(values.not_empty(each, "--last")) for each in self.last or ()))


@dataclass(frozen=True)
class FileTreeDeleteOptions(TreeOptions):
    """What a delete of a tree takes besides."""

    keep_directories: _KeepDirectories = False


@dataclass(frozen=True)
class FileTreePutOptions(TreePutOptions):
    """What a put of a tree takes besides."""

    keep_directories: _KeepDirectories = False


@dataclass(frozen=True)
class TreeGetOptions(TreeCopyOptions):
    """What a get of a tree takes besides."""

    if_exists: Annotated[
        str | None,
        option("--if-exists", "skip", "Leave alone what is in the folder.", panel=TREES),
    ] = None

    allow_empty: Annotated[
        bool,
        flag("--allow-empty", "End with 0 if nothing is there; with --mirror this empties your folder.", panel=TREES),
    ] = False

    @property
    def skips_existing(self) -> bool:
        """Return whether what is in the folder is left alone, whatever it holds."""
        return values.choice(values.not_empty(self.if_exists, "--if-exists"), "--if-exists", ("skip",)) is not None
