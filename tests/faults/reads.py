"""What azguard must say where reads are answered from before: one table of the reads that decide.

In each row a command is run twice, and in between another changes what it reads. A gateway has kept the answers to the
first run, and gives each of them once more to the same request of the second one. That must end with ``code`` and print
``shows``, as is true by then.

To add a row: append a ``Read`` to ``READS``. ``before`` is done by the machine that reads, ``change`` by another one.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from azguard.accounts.account import Account
from azguard.address import Address, Kind
from tests.support import sdk_clients

if TYPE_CHECKING:
    from tests.faults.machines import Step


@dataclass(frozen=True)
class Read:
    """A command that reads, and what has changed when it reads again."""

    name: str
    before: "tuple[Step, ...]"
    command: str
    change: "tuple[Step, ...]"
    code: int
    shows: str


def _put(account: Account, at: str, content: bytes) -> None:
    sdk_clients.blob(account, Address(Kind.BLOB, (at, "x"))).upload_blob(content, overwrite=True)


def _old(account: Account, at: str) -> None:
    sdk_clients.container(account, Address(Kind.CONTAINER, (at,))).create_container()
    _put(account, at, b"old")


def _new(account: Account, at: str) -> None:
    _put(account, at, b"new")


def _gone(account: Account, at: str) -> None:
    sdk_clients.blob(account, Address(Kind.BLOB, (at, "x"))).delete_blob()


def _old_file(account: Account, at: str) -> None:
    share = sdk_clients.share(account, Address(Kind.SHARE, (at,)))
    share.create_share()
    share.get_file_client("x").upload_file(b"old")


def _new_file(account: Account, at: str) -> None:
    sdk_clients.share(account, Address(Kind.SHARE, (at,))).get_file_client("x").upload_file(b"newer")


_BREAK = ("lease break blob:{at}/x --yes",)
_LEASED = (_old, "lease acquire blob:{at}/x --infinite --reason why")
_HELD = ("container create {at}", "lock hold blob:{at}/x --sticky --reason why")
_ENTITY = ("table create {table}", "entity insert {table}/p/r n=1")
_MERGE = ("entity merge {table}/p/r n=2 --last-writer-wins",)
_SIZE = "--query content_length -o tsv"
_STATE = "--query state -o tsv"

READS = (
    Read("blob-get", (_old,), "blob get {at}/x", (_new,), 0, "new"),
    Read("blob-get-gone", (_old,), "blob get {at}/x", (_gone,), 44, ""),
    Read("blob-exists", (_old,), "blob exists {at}/x --query exists", (_gone,), 44, "false"),
    Read("blob-show", _LEASED, "blob show {at}/x --query lease_state -o tsv", _BREAK, 0, "broken"),
    Read("blob-list", (_old,), "blob list {at} --query length(@)", (_gone,), 0, "0"),
    Read("status", (_old, "blob get {at}/x -f copy"), "status blob:{at}/x --query [0].state -o tsv", (_new,), 42,
         "changed"),
    Read("lease-show", _LEASED, f"lease show blob:{{at}}/x {_STATE}", _BREAK, 0, "free"),
    Read("lease-list", _LEASED, "lease list {at} --query length(@)", _BREAK, 0, "0"),
    Read("lock-check", _HELD, f"lock check blob:{{at}}/x {_STATE}", _BREAK, 77, ""),
    Read("lock-show", _HELD, f"lock show blob:{{at}}/x {_STATE}", _BREAK, 0, "free"),
    Read("lock-list", _HELD, "lock list {at} --held --query length(@)", _BREAK, 0, "0"),
    Read("entity-get", _ENTITY, "entity get {table}/p/r --query n -o tsv", _MERGE, 0, "2"),
    Read("entity-query", _ENTITY, "entity query {table} --query [0].n -o tsv", _MERGE, 0, "2"),
    Read("file-get", (_old_file,), "file get {at}/x", (_new_file,), 0, "newer"),
    Read("file-show", (_old_file,), f"file show {{at}}/x {_SIZE}", (_new_file,), 0, "5"),
)  # fmt: skip
