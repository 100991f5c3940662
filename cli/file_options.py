"""The options of the commands for shares, directories and files."""

import re
from typing import Annotated, Any

import typer

from azguard.accounts.target import Target
from azguard.address import Kind
from azguard.cli import completers, lease_options, part_options
from azguard.cli.context import Environment
from azguard.conditions.operations import Part
from azguard.conditions.resolve import Conditions
from azguard.files.guarding import Guarding
from azguard.leases.process_leases import ProcessLeases
from azguard.processes.notes import ProcessNotes

Share = Annotated[str, typer.Argument(metavar="SHARE", help="The share, or its URL.", autocompletion=completers.shares)]
Directory = Annotated[
    str, typer.Argument(metavar="SHARE/PATH", help="The directory, or its URL.", autocompletion=completers.files)
]
File = Annotated[
    str, typer.Argument(metavar="SHARE/PATH", help="The file, or its URL.", autocompletion=completers.files)
]
Folder = Annotated[
    str,
    typer.Argument(metavar="SHARE[/PATH]", help="The share or directory, or its URL.", autocompletion=completers.files),
]
Path = Annotated[
    str,
    typer.Argument(
        metavar="SHARE[/PATH]", help="The file, directory or share, or its URL.", autocompletion=completers.files
    ),
]
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def locate_folder(env: Environment, text: str, *, writable: bool = False) -> Target:
    """Return the directory, or the share whose root, a command looks into; ``writable`` refuses a snapshot.

    Raises:
        UsageError: the address is malformed, or names something else.
    """
    return _locate(env, text, Kind.DIR, writable=writable)


def locate_path(env: Environment, text: str) -> Target:
    """Return the file, directory or share that an address names; without a prefix, a path is that of a file.

    Raises:
        UsageError: the address is malformed, or names something else.
    """
    return _locate(env, text, Kind.DIR if text.startswith(f"{Kind.DIR}:") else Kind.FILE)


def is_share_url(env: Environment, text: str) -> bool:
    """Return whether a URL has no path in its share; one that tells no service is read as that of a container."""
    return env.location(text).address.kind in (Kind.SHARE, Kind.CONTAINER)


def _locate(env: Environment, text: str, inside: Kind, *, writable: bool = False) -> Target:
    if _URL.match(text):
        return env.locate(text, Kind.SHARE if is_share_url(env, text) else inside, writable=writable)
    prefix, colon, _ = text.partition("?")[0].partition(":")
    is_share = prefix == Kind.SHARE if colon else "/" not in prefix
    return env.locate(text, Kind.SHARE if is_share else inside, writable=writable)


def guarding(env: Environment) -> Guarding:
    """Return where the lease of a guarded write is recorded, and who takes it."""
    owner = lease_options.this_process(env, f"azguard {env.command}")
    return Guarding(
        records=lease_options.CacheRecords(env),
        owner=owner,
        processes=ProcessLeases(env.folders.process_leases),
        temporary=ProcessNotes(env.folders.process_files),
    )


def read_metadata(*asked: Any) -> Any:
    """Return the metadata of a share, a directory or a file, and their lineage."""
    from azguard.files import properties

    return properties.get_metadata(*asked)


def replace_metadata(env: Environment, target: Target, typed: list[str] | None, file: str | None) -> None:
    """Replace the metadata of a share, a directory or a file by those that were typed, or by those of a file."""
    from azguard.files import properties

    wanted, seen = part_options.read_metadata(typed, file)
    done = properties.replace_metadata(target, wanted, env.conditions(target, seen), guarding(env), env.deadline)
    part_options.record_replaced(env, target, Part.METADATA, done)


def record_written(env: Environment, target: Target, conditions: Conditions, done: Any) -> None:
    """Record the version that was written, if the rest of the file is known here."""
    if conditions.expected_etag is not None:
        env.reads.record(target, done)
