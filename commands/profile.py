"""``azguard profile``: named accounts in the configuration file."""

from typing import Annotated

from azguard.accounts import profiles
from azguard.cli import completers
from azguard.cli.context import Environment
from azguard.cli.input import accounts
from azguard.cli.options import common
from azguard.cli.options.types import ValueType
from azguard.cli.parsing.rows import argument, flag
from azguard.cli.parsing.tree import Group
from azguard.errors import NotFound, UsageError

app = Group()


def _read_name(text: str, _: str) -> str:
    if not text.strip():
        raise UsageError("the profile's name is empty", hint="an unset shell variable looks like this")
    if not text.isprintable():
        raise UsageError(f"the profile's name {text!r} has characters that cannot be shown", hint="write it in letters")
    return text


_Name = Annotated[str, argument("NAME", "The profile.", ValueType("text", _read_name), completer=completers.profiles)]


@app.command(name="list")
def list_(env: Environment, num_results: common.Limit = None) -> None:
    """List the profiles, without their secrets.

    Examples:
        azguard profile list
    """
    env.out.show([profile.shown for profile in profiles.load(env.folders.profiles).values()][:num_results])


@app.command()
def show(env: Environment, name: _Name) -> None:
    """Show one profile, without its secrets.

    Examples:
        azguard profile show prod
    """
    found = profiles.load(env.folders.profiles).get(name)
    if found is None:
        raise _missing(name)
    env.out.show(found.shown)


@app.command(
    name="set",
    spec=common.remote("a profile keeps the account, and no conditions"),
)
def set_(
    env: Environment,
    name: _Name,
    default: Annotated[bool, flag("--default", "Use it if nothing else names an account.")] = False,
) -> None:
    """Write a profile from the account options.

    Name a secret as @FILE. A secret that you type stands in the configuration file as it is.

    Examples:
        azguard profile set prod --account-name contoso --auth-mode login
        azguard profile set local --emulator
        azguard profile set prod --account-name contoso --auth-mode login --default

    Topics: accounts
    """
    settings = accounts.to_keep(env.shared)
    env.out.show(profiles.put(env.folders.profiles, name, settings, default=default).shown)


@app.command()
def delete(
    env: Environment,
    name: _Name,
    dry_run: Annotated[bool, flag("--dry-run", "Show what would be deleted; change nothing.")] = False,
) -> None:
    """Delete a profile.

    Examples:
        azguard profile delete prod
        azguard profile delete prod --dry-run
    """
    folder = env.folders.profiles
    deleted = profiles.load(folder).get(name) if dry_run else profiles.delete(folder, name)
    if deleted is None:
        raise _missing(name)
    env.out.show(deleted.shown)


def _missing(name: str) -> NotFound:
    return NotFound(f"there is no profile {name!r}", hint="azguard profile list")
