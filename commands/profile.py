"""``azguard profile``: named accounts in the configuration file."""

from typing import Annotated

import typer

from azguard.accounts import profiles
from azguard.accounts.profiles import Profile
from azguard.cli import accounts, completers, context, options
from azguard.cli.context import Environment
from azguard.cli.groups import group
from azguard.errors import NotFound

app = group("Named accounts in the configuration file.")
_Name = Annotated[str, typer.Argument(metavar="NAME", help="The profile.", autocompletion=completers.profiles)]


@app.command(name="list")
def list_(ctx: typer.Context) -> None:
    """List the profiles, without their secrets.

    Examples:
        azguard profile list
    """
    env = context.of(ctx)
    env.out.show([profile.shown for profile in profiles.load(env.folders.profiles).values()])


@app.command()
def show(ctx: typer.Context, name: _Name) -> None:
    """Show one profile, without its secrets.

    Examples:
        azguard profile show prod
    """
    env = context.of(ctx)
    env.out.show(_require_profiles(env, name)[name].shown)


@app.command(name="set", spec=options.remote("a profile keeps the account, and no conditions"))
def set_(
    ctx: typer.Context,
    name: _Name,
    default: Annotated[bool, typer.Option("--default", help="Use it if nothing else names an account.")] = False,
) -> None:
    """Write a profile from the account options.

    Name a secret as @FILE. A secret that you type stands in the configuration file as it is.

    Examples:
        azguard profile set prod --account-name contoso --auth-mode login
        azguard profile set local --emulator
        azguard profile set prod --account-name contoso --auth-mode login --default

    Topics: accounts
    """
    env = context.of(ctx)
    settings = accounts.to_keep(env.shared)
    known = profiles.load(env.folders.profiles)
    if default:
        known = {each: Profile(each, profile.settings, default=False) for each, profile in known.items()}
    kept = default or (name in known and known[name].default)
    profile = Profile(name, settings, kept)
    profiles.save(env.folders.profiles, {**known, name: profile})
    env.out.show(profile.shown)


@app.command()
def delete(ctx: typer.Context, name: _Name) -> None:
    """Delete a profile.

    Examples:
        azguard profile delete prod
    """
    env = context.of(ctx)
    known = _require_profiles(env, name)
    profiles.save(env.folders.profiles, {each: profile for each, profile in known.items() if each != name})
    env.out.show(known[name].shown)


def _require_profiles(env: Environment, name: str) -> dict[str, Profile]:
    """Return all profiles, of which one has this name."""
    known = profiles.load(env.folders.profiles)
    if name not in known:
        raise NotFound(f"there is no profile {name!r}", hint="azguard profile list")
    return known
