"""Which blob a lock is that a command line names."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from azguard.accounts.target import Target
from azguard.address import Kind
from azguard.cli import command_line, completers, values
from azguard.cli.context import Environment
from azguard.errors import ConfigError, UsageError
from azguard.locks import lock_blobs, log

Lock = Annotated[
    str,
    typer.Argument(
        metavar="ADDRESS",
        help="The lock, e.g. deploy-prod (which is blob:locks/deploy-prod), blob:site/state or table:Orders.",
        autocompletion=completers.locks,
    ),
]

#: What else than a blob is a lock of a run: its own lease.
FILES = (Kind.SHARE, Kind.FILE)


def lock(env: Environment, text: str, container: str | None, *, also: Sequence[Kind] = ()) -> Target:
    """Return the blob that a lock's address names: itself, the one of a bare name, or the one that stands for a table.

    ``also`` are the kinds of other resources that are a lock here by their own lease.

    Raises:
        UsageError: neither a blob nor a table, or a container is named that it is not in.
    """
    return locks(env, [text], container, also=also)[0]


def locks(env: Environment, texts: Sequence[str], container: str | None, *, also: Sequence[Kind] = ()) -> list[Target]:
    """Return the blobs that locks' addresses name.

    Raises:
        UsageError: one is neither a blob nor a table, or a container of locks is named, and none of them is in it.
    """
    found = [_locate(env, text, container, also) for text in texts]
    if container is not None and not any(
        _is_bare(text) or env.location(text).address.kind is Kind.TABLE for text in texts
    ):
        raise UsageError(
            f"--lock-container is for bare names, and {found[0].address} names its own container",
            hint="leave the option out, or give a bare name such as deploy-prod",
        )
    return found


def _locate(env: Environment, text: str, container: str | None, also: Sequence[Kind]) -> Target:
    target = env.locate(_expand_name(env, text, container), writable=True)
    if target.kind is Kind.BLOB and (lock := log.find_name_of_lock(target.address.short)) is not None:
        raise UsageError(f"{target} is the history of a lock", hint=f"azguard lock log {command_line.quote(lock)}")
    if target.kind is Kind.BLOB or target.kind in also:
        return target
    if target.kind in FILES:
        raise _refuse_file(env, target)
    if target.kind is not Kind.TABLE:
        raise UsageError(
            f"a lock is a blob, a share, a file, or a table that a blob stands for; not {target.kind.one}",
            hint="NAME or blob:CONTAINER/NAME, or lease a container with azguard lease acquire",
        )
    return locate_designated(env, target, container)


def _refuse_file(env: Environment, target: Target) -> UsageError:
    """Return the refusal of a share or a file by a command that needs more than its lease."""
    word = command_line.quote(str(target.address))
    if env.command == "lock log":
        return UsageError(
            f"a {target.kind} has no history: it takes a blob beside the lock", hint="lock a name instead"
        )
    return UsageError(
        f"a {target.kind} is held by lock run alone: its lease would stay if its holder were killed",
        hint=f"azguard lock run {word} -- COMMAND, or lease it: azguard lease acquire {word} --infinite",
    )


def choose_container(named: str | None, environ: Mapping[str, str]) -> str:
    """Return the container of locks: the one that is named, else that of the environment, else the usual one.

    Raises:
        UsageError: it is no name of a container.
        ConfigError: that of the environment is empty: the lock would not be the one that other jobs hold.
    """
    variable = lock_blobs.CONTAINER_VARIABLE
    if named is None and not environ.get(variable, lock_blobs.CONTAINER).strip():
        raise ConfigError(f"{variable} is set but empty", hint=f"set it, or remove it: unset {variable}")
    return lock_blobs.choose_container(values.not_empty(named, "--lock-container"), environ)


def _expand_name(env: Environment, text: str, container: str | None) -> str:
    """Return the address that a bare name stands for, and anything else as it is."""
    if not _is_bare(text):
        return text
    return f"{Kind.BLOB}:{choose_container(container, env.environ)}/{text}"


def _is_bare(text: str) -> bool:
    """Return whether a lock is named without its container."""
    # With a colon it is more likely a misspelt kind of resource than a name: it would be a lock of its own.
    return bool(text.strip()) and "/" not in text and ":" not in text


def locate_designated(env: Environment, table: Target, container: str | None) -> Target:
    """Return the blob that stands for a table, and say so."""
    blob = lock_blobs.choose_lock_blob(table, choose_container(container, env.environ))
    env.out.info(f"{table.address} has no lease of its own; its lock is {blob.address}")
    return blob
