"""What this scope remembers, as the commands about the cache need it."""

from collections.abc import Sequence

from azguard import address
from azguard.account import Target
from azguard.cli.context import Environment
from azguard.errors import NotFound
from azguard.etag_cache import Entry
from azguard.freshness import Read


def remembered(env: Environment, text: str) -> list[Entry]:
    """Return what this scope has read of an address, in whichever account."""
    wanted = str(address.parse(text).address)
    found = [entry for entry in env.cache.entries(env.scope, wanted) if entry.address == wanted]
    if not found:
        raise NotFound(f"{wanted} was never read here", address=wanted, hint="azguard cache list --all-scopes")
    return found


def forget(env: Environment, text: str, *, all_scopes: bool) -> int:
    """Forget an address in every account, for this scope or all; return how many entries that were."""
    wanted = str(address.parse(text).address)
    entries = env.cache.entries(None if all_scopes else env.scope, wanted)
    keys = {entry.key for entry in entries if entry.address == wanted}
    return sum(env.cache.forget(key, all_scopes=all_scopes) for key in keys)


def reads(env: Environment, texts: Sequence[str]) -> list[Read]:
    """Return what this scope has read, of these addresses or all, in the account of this run."""
    if texts:
        targets = [env.locate(text) for text in texts]
        found = [(target, env.cache.last(env.key(target))) for target in targets]
        unread = [str(target.address) for target, entry in found if entry is None]
        if unread:
            raise NotFound(f"{unread[0]} was never read here", address=unread[0], hint="azguard cache list")
    else:
        endpoints = set(env.account.endpoints.values())
        entries = list(env.cache.entries(env.scope))
        here = [entry for entry in entries if entry.account in endpoints]
        if len(here) < len(entries):
            env.out.say(f"{len(entries) - len(here)} more were read in other accounts: see azguard cache list")
        found = [(Target(env.account, address.parse(entry.address).address), entry) for entry in here]
    return [
        Read(target, entry.etag, entry.time, entry.path, env.cache.held(env.key(target)) is not None)
        for target, entry in found
        if entry is not None
    ]
