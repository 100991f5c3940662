"""The options of commands that move trees of files, whatever the service."""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated

import typer

from azguard.cli.input import values
from azguard.cli.options import common
from azguard.errors import UsageError

if TYPE_CHECKING:
    from azguard.cli.context import Environment
    from azguard.trees.names import Patterns


_TREES = common.TREES
# Each names one version or one lease, and a tree has many.
_OF_ONE = ("if_match", "if_none_match", "etag", "lease_id")
_KeepDirectories = Annotated[
    bool,
    typer.Option(
        "--keep-directories",
        rich_help_panel=common.TREES,
        help="Keep directories that the deletes made empty.",
    ),
]


@dataclass(frozen=True)
class TreeOptions:
    """What every command on a tree takes."""

    recursive: Annotated[
        bool,
        typer.Option(
            "--recursive", "-r", rich_help_panel=_TREES, help="All files below the address, each with its own guard."
        ),
    ] = False
    include: Annotated[
        list[str] | None,
        typer.Option(
            "--include",
            metavar="PATTERN",
            rich_help_panel=_TREES,
            help="Only files that match, as in .gitignore; repeat it for more.",
        ),
    ] = None
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude",
            metavar="PATTERN",
            rich_help_panel=_TREES,
            help="No files that match, as in .gitignore; repeat it for more.",
        ),
    ] = None
    dry_run: Annotated[
        bool, typer.Option("--dry-run", rich_help_panel=_TREES, help="Show what would be done; write nothing.")
    ] = False
    jobs: Annotated[
        str | None,
        typer.Option("--jobs", metavar="N", rich_help_panel=_TREES, help="Work on N files at a time; by default, 16."),
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
        typer.Option(
            "--unchanged",
            metavar="skip",
            rich_help_panel=_TREES,
            help="Skip files whose content is there already, also those never read here.",
        ),
    ] = None
    mirror: Annotated[
        bool,
        typer.Option("--mirror", rich_help_panel=_TREES, help="At the end, delete files there that are not here."),
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
        typer.Option(
            "--last",
            metavar="FILE",
            rich_help_panel=_TREES,
            help="Write this file after all others; repeat it for more.",
        ),
    ] = None
    follow_symlinks: Annotated[
        bool,
        typer.Option("--follow-symlinks", rich_help_panel=_TREES, help="Follow symbolic links."),
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
        typer.Option("--if-exists", metavar="skip", rich_help_panel=_TREES, help="Leave alone what is in the folder."),
    ] = None

    allow_empty: Annotated[
        bool,
        typer.Option(
            "--allow-empty",
            rich_help_panel=_TREES,
            help="End with 0 if nothing is there; with --mirror this empties your folder.",
        ),
    ] = False

    @property
    def skips_existing(self) -> bool:
        """Return whether what is in the folder is left alone, whatever it holds."""
        return values.choice(values.not_empty(self.if_exists, "--if-exists"), "--if-exists", ("skip",)) is not None
