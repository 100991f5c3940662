"""What was read of an address, in whichever account."""

from azguard.address import Location
from azguard.cache.etag_cache import EtagCache
from azguard.cache.records import Entry
from azguard.errors import NotFound
from azguard.urls import same_host


def find_entries(cache: EtagCache, location: Location, scope: str | None) -> list[Entry]:
    """Return what a scope, or with None every scope, has read of an address; of a URL, in the account it names."""
    wanted = str(location.address)
    found = (entry for entry in cache.list_entries(scope, wanted) if entry.address == wanted)
    return [entry for entry in found if _is_at(entry.account, location)]


def require_entries(cache: EtagCache, location: Location, scope: str) -> list[Entry]:
    """Return what a scope has read of an address.

    Raises:
        NotFound: it has read nothing of it.
    """
    found = find_entries(cache, location, scope)
    if not found:
        address = str(location.address)
        raise NotFound(f"{address} was never read here", address=address, reason="address_not_in_scope")
    return found


def forget(cache: EtagCache, location: Location, scope: str | None) -> int:
    """Forget an address in every account, for one scope or with None for all; return how many resources that were."""
    keys = [key for key in cache.list_keys(str(location.address), scope) if _is_at(key.account, location)]
    return sum(cache.forget(key, all_scopes=scope is None) for key in keys)


def _is_at(account: str, location: Location) -> bool:
    """Return whether an account may be the one of a location; an address alone is of any account."""
    return location.endpoint is None or same_host(account) == same_host(location.endpoint)
