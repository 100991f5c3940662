"""What was read of an address, in whichever account."""

from azguard.address import Location
from azguard.cache.etag_cache import EtagCache
from azguard.cache.records import Entry
from azguard.errors import NotFound
from azguard.urls import same_host


def find_entries(cache: EtagCache, location: Location, scope: str | None) -> list[Entry]:
    """Return what a scope, or with None every scope, has read of an address; of a URL, in the account it names."""
    wanted = str(location.address)
    where = location.endpoint
    found = (entry for entry in cache.list_entries(scope, wanted) if entry.address == wanted)
    return [entry for entry in found if where is None or same_host(entry.account) == same_host(where)]


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
    """Forget an address in every account, for one scope or with None for all; return how many entries that were."""
    found = find_entries(cache, location, scope)
    return sum(cache.forget(key, all_scopes=scope is None) for key in {entry.key for entry in found})
