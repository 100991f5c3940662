"""What this scope remembers, as the commands about the cache need it."""

from collections.abc import Sequence

from azguard import address
from azguard.accounts.target import Target
from azguard.cache.records import Entry, Key
from azguard.cli.context import Environment
from azguard.errors import NotFound
from azguard.status import Read
from azguard.urls import same_host


def remembered(env: Environment, text: str) -> list[Entry]:
    """Return what this scope has read of an address in whichever account, or of a URL in the account it names."""
    wanted, found = _entries(env, text, env.scope)
    if not found:
        raise NotFound(f"{wanted} was never read here", address=wanted, hint="azguard cache list --all-scopes")
    return found


def forget(env: Environment, text: str, *, all_scopes: bool) -> int:
    """Forget an address in every account, for this scope or all; return how many entries that were."""
    _, found = _entries(env, text, None if all_scopes else env.scope)
    return sum(env.cache.forget(key, all_scopes=all_scopes) for key in {entry.key for entry in found})


def _entries(env: Environment, text: str, scope: str | None) -> tuple[str, list[Entry]]:
    location = env.location(text)
    wanted, where = str(location.address), location.endpoint
    entries = (entry for entry in env.cache.entries(scope, wanted) if entry.address == wanted)
    return wanted, [entry for entry in entries if where is None or same_host(entry.account) == same_host(where)]


def reads(env: Environment, texts: Sequence[str]) -> list[Read]:
    """Return what this scope has read, of these addresses or all, in the account of this run."""
    if texts:
        targets = [env.locate(text) for text in texts]
        found = [(target, env.cache.last(Key.of(target))) for target in targets]
        unread = [str(target.address) for target, entry in found if entry is None]
        if unread:
            raise NotFound(f"{unread[0]} was never read here", address=unread[0], hint="azguard cache list")
    else:
        endpoints = set(env.account.endpoints.values())
        entries = list(env.cache.entries(env.scope))
        here = [entry for entry in entries if entry.account in endpoints]
        if len(here) < len(entries):
            env.out.info(f"{len(entries) - len(here)} more were read in other accounts: see azguard cache list")
        found = [(Target(env.account, address.parse(entry.address).address), entry) for entry in here]
    return [
        Read(target, entry.etag, entry.time, entry.path, env.cache.held(Key.of(target)) is not None)
        for target, entry in found
        if entry is not None
    ]
