"""Who holds a lock: the owner record that azguard leaves in a blob's metadata, and Terraform's.

Both are for people. Whoever crashed left them behind, and no lock is ever granted or released because of one.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

# One key each: metadata is 8 KiB in all, and the names must be C# identifiers.
OWNER, FENCE, SLOTS = "azguardowner", "azguardfence", "azguardslots"
# https://github.com/hashicorp/terraform/blob/main/internal/backend/remote-state/azure/client.go
TERRAFORM = "terraformlockid"
# What of a command line is worth keeping in 8 KiB of metadata.
_LONGEST_COMMAND = 500


@dataclass(frozen=True)
class Owner:
    """Who took a lock. ``since`` is ISO 8601 UTC by the holder's clock; ``run`` is the URL of a CI run."""

    who: str
    host: str
    pid: int
    command: str
    since: str
    run: str | None = None

    def __str__(self) -> str:
        by = f"{self.who}@{self.host}, pid {self.pid}"
        return f"{by}, since {self.since}: {self.run or self.command}"

    def as_metadata(self) -> str:
        """Return the record as a metadata value, which is ASCII."""
        command = self.command if len(self.command) <= _LONGEST_COMMAND else self.command[: _LONGEST_COMMAND - 1] + "…"
        return json.dumps({**asdict(self), "command": command}, separators=(",", ":"))

    def is_named(self, name: str) -> bool:
        """Return whether a name is this owner's: the user, the host, ``user@host`` or the CI run's URL."""
        return name in (self.who, self.host, f"{self.who}@{self.host}", self.run)


@dataclass(frozen=True)
class TerraformLock:
    """What Terraform writes beside the infinite lease on its state, whose lease id is ``id``."""

    id: str
    operation: str
    who: str
    version: str
    created: str
    path: str
    info: str

    @property
    def since(self) -> str:
        """Return when it was taken, by the holder's clock."""
        return self.created

    def __str__(self) -> str:
        return f"Terraform {self.version}, {self.operation} by {self.who}, since {self.created}"

    def is_named(self, name: str) -> bool:
        """Return whether a name is this holder's: ``user@host``, either part of it, or the lock's id."""
        return name in (self.who, *self.who.split("@"), self.id)


Holder = Owner | TerraformLock


def owner(metadata: Mapping[str, str]) -> Owner | None:
    """Return the owner record, or None where there is none that can be read."""
    found = _json(_value(metadata, OWNER))
    try:
        return Owner(
            who=str(found["who"]),
            host=str(found["host"]),
            pid=int(found["pid"]),
            command=str(found["command"]),
            since=str(found["since"]),
            run=None if found.get("run") is None else str(found["run"]),
        )
    except (KeyError, TypeError, ValueError):
        return None


def terraform(metadata: Mapping[str, str]) -> TerraformLock | None:
    """Return Terraform's lock info, or None where there is none that can be read."""
    try:
        found = _json(base64.b64decode(_value(metadata, TERRAFORM), validate=True).decode())
    except ValueError:
        return None
    if not isinstance(found.get("ID"), str):
        return None
    names = ("ID", "Operation", "Who", "Version", "Created", "Path", "Info")
    return TerraformLock(*(str(found.get(name) or "") for name in names))


def holder(metadata: Mapping[str, str]) -> Holder | None:
    """Return what tells who holds the lease: the owner record, else Terraform's lock info, else None."""
    return owner(metadata) or terraform(metadata)


def number(metadata: Mapping[str, str], key: str) -> int | None:
    """Return a number in the metadata, such as the fence, or None where there is none."""
    text = _value(metadata, key)
    return int(text) if text.isascii() and text.isdecimal() else None


def age(since: str, now: datetime) -> float | None:
    """Return how many seconds ago a moment was, or None if it cannot be read."""
    try:
        then = datetime.fromisoformat(since)
        return (now - then).total_seconds()
    except (ValueError, TypeError):
        return None


def _value(metadata: Mapping[str, str], key: str) -> str:
    """Return a value by its key, whose case a service or a tool may have changed."""
    return next((value for name, value in metadata.items() if name.lower() == key), "")


def _json(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
