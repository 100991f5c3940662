"""The fields of a shared access signature that say what it is for; the signature itself is never read.

Source: Create a service SAS, Create an account SAS, Create a user delegation SAS, in the REST reference.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import parse_qsl

# The letters of the permissions, and what they allow.
PERMISSIONS = {
    "r": "read", "a": "add", "c": "create", "w": "write", "d": "delete", "x": "delete versions", "y": "delete for ever",
    "l": "list", "t": "tags", "f": "find by tags", "u": "update", "p": "process", "m": "move", "e": "execute",
    "o": "ownership", "i": "set immutability",
}  # fmt: skip
SERVICES = {"b": "blob", "q": "queue", "t": "table", "f": "file"}
RESOURCE_TYPES = {"s": "the service", "c": "containers and tables", "o": "blobs, files, messages and entities"}


@dataclass(frozen=True)
class Sas:
    """What a SAS says of itself; None is a field it does not have."""

    #: From when on it is valid (``st``, ``skt``).
    starts: datetime | None
    #: Until when it is valid (``se``, ``ske``); None also if a stored access policy says it.
    ends: datetime | None
    #: The permissions, a letter each (``sp``).
    permissions: str | None
    #: The services of an account SAS, a letter each (``ss``).
    services: str | None
    #: The resource types of an account SAS, a letter each (``srt``).
    resource_types: str | None
    #: The resource of a service SAS of blobs or files (``sr``).
    resource: str | None
    #: The table of a service SAS of tables (``tn``).
    table: str | None
    #: The addresses it is accepted from (``sip``).
    addresses: str | None
    #: The protocols it is accepted over (``spr``).
    protocols: str | None
    #: The stored access policy that may hold what is missing here (``si``).
    policy: str | None

    @property
    def is_of_account(self) -> bool:
        """Return whether it is an account SAS."""
        return self.services is not None


def read(token: str) -> Sas:
    """Return the fields of a SAS; a field that cannot be understood counts as missing."""
    fields = dict(parse_qsl(token.lstrip("?"), keep_blank_values=False))
    return Sas(
        # A user delegation SAS holds no longer than the key it was signed with.
        starts=max(filter(None, (moment(fields.get("st")), moment(fields.get("skt")))), default=None),
        ends=min(filter(None, (moment(fields.get("se")), moment(fields.get("ske")))), default=None),
        permissions=fields.get("sp"),
        services=fields.get("ss"),
        resource_types=fields.get("srt"),
        resource=fields.get("sr"),
        table=fields.get("tn"),
        addresses=fields.get("sip"),
        protocols=fields.get("spr"),
        policy=fields.get("si"),
    )


def moment(text: str | None) -> datetime | None:
    """Return a time of a SAS, which may leave out the time of day, its seconds, or the zone, which is UTC."""
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (OverflowError, ValueError):
        return None
