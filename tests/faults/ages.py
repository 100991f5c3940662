"""What azguard must do where the Date of answers is wrong: one table, *command that judges an age × clock*.

A gateway sets the Date of an answer, not the service. In each cell another has made something that is young or old, and
a command judges how old it is, to take it or to leave it. What it does is the same as under the right clock: it ends
with ``code``, and then ``look`` prints ``shows``; without a ``look`` it prints that itself.

To add a row for a new command: append an ``Age`` to ``AGES``. Name what another machine does before, how old that has
to become, the command line, its status, and what is to be seen afterwards.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from azguard.accounts.account import Account
from azguard.address import Address, Kind
from tests.support import sdk_clients

if TYPE_CHECKING:
    from tests.faults.machines import Step

_TICKET = "azguardticket"


class Clock(Enum):
    """Whose answers have a Date two hours ahead of the service's clock, or behind it."""

    AHEAD = "ahead"
    BEHIND = "behind"
    #: Those that the other receives, who writes a record; what judges it receives the right ones.
    HOLDER_AHEAD = "holder ahead"
    HOLDER_BEHIND = "holder behind"

    @property
    def ahead_seconds(self) -> int:
        """Return how far the Date is ahead."""
        return -7200 if self in (Clock.BEHIND, Clock.HOLDER_BEHIND) else 7200

    @property
    def is_holders(self) -> bool:
        """Return whether it is the clock of what is judged, and not of who judges."""
        return self in (Clock.HOLDER_AHEAD, Clock.HOLDER_BEHIND)


_JUDGES = (Clock.AHEAD, Clock.BEHIND)
_ALL = tuple(Clock)


@dataclass(frozen=True)
class Age:
    """One command line that judges an age."""

    name: str
    before: "tuple[Step, ...]"
    command: str
    code: int
    look: str
    shows: str
    #: How old what was made before has to become, in seconds.
    seconds: float = 0
    #: Those of the holder too, where it writes a time.
    clocks: tuple[Clock, ...] = _JUDGES
    #: What the other does again and again while it is judged, by which it stays young.
    keeps: Callable[[Account, str], None] | None = None


def _wait_in_line(account: Account, name: str) -> None:
    """Leave a ticket beside the lock, as a waiter does."""
    blob = sdk_clients.blob(account, Address(Kind.BLOB, (name, "lock!0000000001")))
    blob.upload_blob(b"", metadata={_TICKET: "6dd2b9e35c174a0ea2f18f4c1b7d9e01"})


def _give_a_sign(account: Account, name: str) -> None:
    """Give a sign of life, as a waiter does."""
    sdk_clients.blob(account, Address(Kind.BLOB, (name, "lock!0000000001"))).set_http_headers()


def _leave_upload(account: Account, name: str) -> None:
    """Leave a temporary file, as an upload from another machine does that was killed."""
    share = sdk_clients.share(account, Address(Kind.SHARE, (name,)))
    share.create_share()
    share.get_file_client(".azguard-0123456789abcdef.tmp").upload_file(b"half")


_CONTAINER = "container create {at}"
_FREE = (_CONTAINER, "blob put {at}/lock --allow-empty")
_HELD = (_CONTAINER, "lock hold blob:{at}/lock --sticky --reason why")
_LEASED = (*_FREE, "lease acquire blob:{at}/lock --infinite --reason why")
_STATE = "lock show blob:{at}/lock --query state -o tsv"
_CLAIM = (
    "table create {table}",
    "queue create {at}",
    'message put {at} --content {{"order":1}}',
    "entity insert {table}/{at}/1 state=claimed key=1 claim=theirs by=another",
)
_CLAIMED = "entity get {table}/{at}/1 --query claim=='theirs' -o tsv"
_WORK = "queue work {at} --drain --once-table {table} --once-key order -- true"
_PRUNED = "file list {at} --query length(@) -o tsv"
# Times are in whole seconds, so what is to be older than one second becomes this old.
_OLD = 2.2
# A claim of a second ends after the skew that azguard allows for; a waiter that is silent is dead after 15 s.
_EXPIRED = 4.5
_DEAD = 16.0

AGES = (
    Age("lock-break-young", _HELD, "lock break blob:{at}/lock --if-older-than 30m --yes", 42, _STATE, "held",
        clocks=_ALL),
    Age("lock-break-old", _HELD, "lock break blob:{at}/lock --if-older-than 1s --yes", 0, _STATE, "free", _OLD, _ALL),
    Age("lease-break-young", _LEASED, "lease break blob:{at}/lock --if-older-than 30m --yes", 42, _STATE, "held",
        clocks=_ALL),
    Age("lease-break-old", _LEASED, "lease break blob:{at}/lock --if-older-than 1s --yes", 0, _STATE, "free", _OLD,
        _ALL),
    Age("lock-list-young", _HELD, "lock list {at} --older-than 30m --query length(@) -o tsv", 0, "", "0"),
    Age("lock-list-old", _HELD, "lock list {at} --older-than 1s --query length(@) -o tsv", 0, "", "1", _OLD),
    Age("lease-list-young", _LEASED, "lease list {at} --older-than 30m --query length(@) -o tsv", 0, "", "0"),
    Age("lease-list-old", _LEASED, "lease list {at} --older-than 1s --query length(@) -o tsv", 0, "", "1", _OLD),
    Age("freeze-young", (_CONTAINER, "lock hold blob:{at}/lock --sticky --reason why --until 1h"),
        "lock run blob:{at}/lock --wait 2s -- true", 75, _STATE, "held", clocks=_ALL),
    Age("freeze-old", (_CONTAINER, "lock hold blob:{at}/lock --sticky --reason why --until 1s"),
        "lock run blob:{at}/lock --wait 60s -- true", 0, _STATE, "free", _OLD, _ALL),
    Age("waiter-young", (*_FREE, _wait_in_line), "lock run blob:{at}/lock --wait 6s -- true", 75,
        "blob exists {at}/lock!0000000001 --query exists", "true", keeps=_give_a_sign),
    Age("waiter-dead", (*_FREE, _wait_in_line), "lock run blob:{at}/lock --wait 60s -- true", 0, _STATE, "free", _DEAD),
    Age("claim-young", (*_CLAIM[:-1], _CLAIM[-1] + " seconds:int32=600"), _WORK, 0, _CLAIMED, "true"),
    Age("claim-expired", (*_CLAIM[:-1], _CLAIM[-1] + " seconds:int32=1"), _WORK, 0, _CLAIMED, "false", _EXPIRED),
    Age("upload-young", (_leave_upload,), "file prune {at} --older-than 30m", 0, _PRUNED, "1"),
    Age("upload-old", (_leave_upload,), "file prune {at} --older-than 1s", 0, _PRUNED, "0", _OLD),
)  # fmt: skip
