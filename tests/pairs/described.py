"""What a command takes, and a value for each option and argument."""

from collections.abc import Iterator
from dataclasses import dataclass

from azguard.cli.parsing.rows import Row
from azguard.cli.parsing.tree import Command, root
from azguard.cli.rules.rows import Rule

#: Commands that wait for a person or another program, start servers, or tell of azguard itself.
NOT_PLAYED = ("demo", "edit", "emulator", "completion", "help", "version", "lock hold", "queue work", "cache import")
#: A value for each way in which help writes one.
_VALUES = {
    "ADDRESS": "pairs/a.json",
    "BASE64": "AAAAAAAAAAAAAAAAAAAAAA==",
    "CONTAINER/NAME|URL": "pairs/source.json",
    "SHARE/PATH|URL": "pairs/source.json",
    "ETAG": '"0x8DC0000000000A1"',
    "ETAG|*": "*",
    "ETAG|*|@last": '"0x8DC0000000000A1"',
    "ETAG|@last": '"0x8DC0000000000A1"',
    "EXPR": "\"state\" = 'new'",
    "FILE": "result.json",
    "FILE|-": "in.json",
    "GIB": "5",
    "GUID": "01234567-89ab-cdef-0123-456789abcdef",
    "ID": "01234567-89ab-cdef-0123-456789abcdef",
    "ID|@held": "01234567-89ab-cdef-0123-456789abcdef",
    "JMESPATH": "@",
    "KEY": "pairs",
    "KEY=VALUE": "pair=1",
    "LIST": "metadata",
    "NAME[:TYPE]=VALUE": "n=1",
    "NAME,…": "n",
    "ODATA": "n eq 1",
    "PATH": "gone",
    "PATH=JSON": "n=1",
    "PATH=TEXT": "n=1",
    "PATH[=N]": "n",
    "PATTERN": "*.json",
    "PID": "1",
    "SIZE": "512",
    "BYTES": "512",
    "TEXT": "text",
    "TIME": "2026-01-01T00:00:00Z",
    "TIME|DURATION": "1h",
    "TYPE": "text/plain",
    "N": "1",
    "NAME": "pairs",
    "TIER": "Hot",
    "QUEUE": "pairs",
    "TABLE": "Pairs",
    "[INITIAL]": "{}",
    "A|B": "ReadOnly",
}
#: Values of options whose metavar says too little.
_OF_OPTIONS = {"--state": "leased", "--if-older-than": "1s"}
#: Arguments, by how help writes them.
_PLACES = {
    "ADDRESS": "blob:pairs/a.json",
    "ADDRESS...": "blob:pairs/a.json",
    "ADDRESS... -- CMD [ARG...]": "pairs",
    "BLOB": "pairs/a.json",
    "SOURCE": "pairs/source.json",
    "DESTINATION": "pairs/a.json",
    "OLD": "pairs/a.json",
    "NEW": "pairs/b.json",
    "FROM": "pairs",
    "CONTAINER": "pairs",
    "CONTAINER/NAME": "pairs/a.json",
    "FILE|-": "in.json",
    "FILE": "pairs/a.json",
    "GIB": "5",
    "NAME": "pairs",
    "QUEUE": "pairs",
    "QUEUE/ID": "pairs/1",
    "SHARE": "pairs",
    "SHARE/PATH": "pairs/a.json",
    "SHARE/PATH -- CMD [ARG...]": "pairs/a.json",
    "SHARE[/PATH]": "pairs",
    "SIZE": "512",
    "TABLE": "Pairs",
    "TABLE/PARTITION/ROW": "Pairs/p/r",
    "TIER": "Hot",
    "TO": "pairs-poison",
}
#: Options that end a line without its command, or name an account that is not there.
_LEFT_OUT = (
    "--connection-string", "--account-name", "--account-key", "--sas-token", "--auth-mode", "--profile",
    "--blob-endpoint", "--table-endpoint", "--queue-endpoint", "--file-endpoint", "--endpoint-suffix", "--emulator",
    "--debug", "--watch",
)  # fmt: skip


@dataclass(frozen=True)
class Described:
    """A command, as the runner knows it."""

    name: str
    command: Command

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Return which options go together."""
        return self.command.rules

    @property
    def own(self) -> list[Row]:
        """Return the options of its own that are typed."""
        return [row for row in self.command.own if _is_typed(row)]

    @property
    def shared(self) -> list[Row]:
        """Return the options that it shares with others."""
        return [row for row in self.command.shared if _is_typed(row)]

    @property
    def is_remote(self) -> bool:
        """Return whether it asks a service."""
        return self.command.spec.is_remote

    def list_places(self) -> list[str]:
        """Return the words of the arguments that it needs."""
        needed = [row for row in self.command.own if row.is_argument and row.is_required]
        return [_PLACES[row.metavar.strip("[]")] for row in needed]

    @property
    def runs_command(self) -> bool:
        """Return whether a command of the user's follows ``--``."""
        return any("CMD" in row.metavar and row.is_required for row in self.command.own)


def list_described() -> Iterator[Described]:
    """Yield the commands that are played."""
    for name, command in root.walk():
        if not name.startswith(NOT_PLAYED):
            yield Described(name, command)


def words_of(row: Row) -> list[str]:
    """Return an option as it is typed, with a value of its type."""
    if row.is_flag:
        return [row.off or row.flags[0]]
    return [row.flags[0], find_value(row)]


def find_value(row: Row) -> str:
    """Return a value of an option."""
    if row.flags[0] in _OF_OPTIONS:
        return _OF_OPTIONS[row.flags[0]]
    kind = row.type
    if kind is not None and kind.choices:
        return kind.choices[0]
    if kind is not None and kind.bounds is not None:
        return kind.write(kind.bounds[0])
    if kind is not None and kind.name in ("duration", "size", "integer"):
        return {"duration": "1s", "size": "512", "integer": "1"}[kind.name]
    metavar = row.metavar.strip("[]")
    if metavar in _VALUES:
        return _VALUES[metavar]
    first = metavar.partition("|")[0]
    return "1s" if first == "DURATION" else first


def _is_typed(row: Row) -> bool:
    return not row.is_argument and not row.is_hidden and row.flags[0] not in _LEFT_OUT
