"""The options that several commands share, each declared once.

A command names its own arguments; what every command takes (output), what every remote command takes (account)
and what every operation takes (conditions) is added by ``parsing.tree``.
"""

from functools import cache
from typing import TYPE_CHECKING, Annotated, ClassVar

from azguard.accounts import endpoints
from azguard.cache import scope
from azguard.cli import completers
from azguard.cli.options.types import (
    API_VERSION,
    COUNT,
    DURATION,
    ETAG,
    EXPRESSION,
    HEADER,
    JMESPATH,
    LEASE_ID,
    METADATA,
    NUMBER,
    POSITION,
    SCOPE,
    TAGS,
    TEXT,
    TIME,
    URL,
    ValueType,
    choice,
    size,
    spelt,
)
from azguard.cli.parsing.rows import ACCOUNT, CONDITIONS, GENERAL, CommandSpec, Row, argument, flag, in_panel, option
from azguard.cli.rules import Rule, at_most_one, checked, excludes, needs
from azguard.errors import UsageError
from azguard.frozen import frozen
from azguard.requests.deadline import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from azguard.wire.rows import Operation


Blob = Annotated[str, argument("BLOB", "The blob: CONTAINER/NAME, or its URL.", completer=completers.blobs)]
Container = Annotated[str, argument("CONTAINER", "The container, or its URL.", completer=completers.containers)]
Entity = Annotated[
    str,
    argument("TABLE/PARTITION/ROW", "The entity, or its URL.", completer=completers.entities),
]
Table = Annotated[str, argument("TABLE", "The table, or its URL.", completer=completers.tables)]
Queue = Annotated[str, argument("QUEUE", "The queue, or its URL.", completer=completers.queues)]
AllScopes = Annotated[bool, flag("--all-scopes", "Include all scopes, not only this one.")]
InputFile = Annotated[str | None, option("--file, -f", "FILE|-", "Read this file.", TEXT, otherwise="stdin")]
Content = Annotated[str | None, option("--content, --data", "TEXT", "Write this text.")]
Metadata = Annotated[
    dict[str, str] | None,
    option("--metadata", "KEY=VALUE", "Set metadata; repeat it for more.", METADATA),
]
SnapshotFirst = Annotated[
    bool, flag("--snapshot-first", "Keep what is replaced as a snapshot; see azguard help snapshots.")
]
NoSnapshotFirst = Annotated[
    bool, flag("--snapshot-first", "Refused: a blob is deleted with its snapshots.", is_hidden=True)
]
Tags = Annotated[
    dict[str, str] | None,
    option("--tags", "KEY=VALUE", "Set index tags; repeat it for more.", TAGS),
]
Tier = Annotated[
    str | None,
    option("--tier", "Hot|Cool|Cold|Archive", "Set the access tier.", spelt),
]
ContentEncoding = Annotated[
    str | None, option("--content-encoding", "TEXT", "Set Content-Encoding, such as gzip.", HEADER)
]
ContentLanguage = Annotated[
    str | None, option("--content-language", "TEXT", "Set Content-Language, such as de.", HEADER)
]
ContentDisposition = Annotated[str | None, option("--content-disposition", "TEXT", "Set Content-Disposition.", HEADER)]
ContentCache = Annotated[
    str | None,
    option("--content-cache, --content-cache-control", "TEXT", "Set Cache-Control, such as no-store.", HEADER),
]
Prefix = Annotated[str | None, option("--prefix", "TEXT", "Show only names that begin with TEXT.")]
#: Of a command that clears a part of something.
ClearedLength = Annotated[
    int | None, option("--length", "SIZE", "Clear this many bytes, a multiple of 512; always needed.", size(1))
]
Param = Annotated[list[str] | None, option("--param", "NAME[:TYPE]=VALUE", "Give @NAME in the filter this value.")]
Limit = Annotated[int | None, option("--num-results", "N", "Show at most N.", COUNT, otherwise="all")]
LockContainer = Annotated[
    str | None,
    option(
        "--lock-container",
        "CONTAINER",
        "The container of locks with a bare name, and of tables.",
        TEXT,
        rules=(checked("--lock-container", "a lock with a bare name, or a table", "addresses.locks"),),
        otherwise="locks",
    ),
]
Yes = Annotated[bool, flag("--yes, -y", "Do not ask.")]
Reason = Annotated[
    str | None,
    option("--reason", "TEXT", "Say why you hold it; all readers can see this."),
]
IfExists = Annotated[str | None, option("--if-exists", "skip", "If it exists, leave it alone and exit 0.", choice)]
_ALONE = "an existing resource is left alone, in any version"
WithContents = Annotated[bool, flag("--with-contents", "Delete it with all its contents; do not ask.")]
NoLineage = Annotated[
    bool,
    flag("--no-lineage", "Write no lineage; see azguard help updates."),
]
_FILE = option("--file, -f", "FILE|-", "Read this JSON file, as get prints it.", TEXT, otherwise="stdin")
JsonFile = Annotated[str | None, _FILE]
MetadataFile = Annotated[str | None, _FILE._replace(rules=(excludes("--file", "--metadata"),))]
TagsFile = Annotated[str | None, _FILE._replace(rules=(excludes("--file", "--tags"),))]
DryRun = Annotated[bool, flag("--dry-run", "Show what would be done; change nothing.")]
VersionOf = Annotated[
    str | None,
    option(
        "--version-of",
        "FILE",
        "Delete only the version that came with this copy.",
        TEXT,
        rules=(
            excludes("--version-of", "--recursive --etag --last-writer-wins"),
            checked("--version-of", "a file that azguard wrote, or put", "content.find_version_of"),
        ),
    ),
]


@frozen
class OptionalWaitOptions:
    """How long a command waits that waits only if it is told to."""

    wait: Annotated[
        float | None,
        option("--wait", "[DURATION]", "Wait this long; then exit 75.", DURATION, bare="60s", otherwise="do not wait"),
    ] = None
    no_wait: Annotated[bool, flag("--no-wait", "Do not wait.")] = False

    RULES: ClassVar[tuple[Rule, ...]] = (at_most_one("--wait --no-wait"),)


@frozen
class WaitOptions(OptionalWaitOptions):
    """How long a command waits that waits unless it is told not to."""

    wait: Annotated[float, option("--wait", "[DURATION]", "Wait this long; then exit 75.", DURATION, bare="60s")] = 60.0

    @property
    def wait_seconds(self) -> float:
        return 0.0 if self.no_wait else self.wait


def operation(which: "Operation", plain: "Operation | None" = None) -> CommandSpec:
    """Return the spec of a command that is one operation: it takes the account and its condition options.

    ``plain`` is the operation without a --source, where the command has that option.
    """
    return CommandSpec(operation=which, plain=plain, takes_key=which.noun == "blob")


def remote(reason: str, *, takes_key: bool = False) -> CommandSpec:
    """Return the spec of a command that talks to an account and takes no condition, for this reason."""
    return CommandSpec(why_no_conditions=reason, takes_key=takes_key)


# The condition options of many operations.
_USUAL_CONDITIONS = in_panel(
    CONDITIONS,
    (
        option(
            "--if-match", "ETAG|*|@last", "Only if this is the version; * is any.", ETAG, completer=completers.etags
        ),
        option(
            "--if-none-match",
            "ETAG|*",
            "Only if the version differs; * only creates.",
            ETAG,
            completer=completers.etags,
        ),
        option("--if-modified-since", "TIME", "Only if it changed since TIME; a weak guard.", TIME),
        option("--if-unmodified-since", "TIME", "Only if it has not changed since TIME; a weak guard.", TIME),
        option("--if-tags", "EXPR", "Only if the index tags match; a weak guard.", EXPRESSION),
        option(
            "--etag",
            "ETAG|@last",
            "Only if this is the version; works on every resource.",
            ETAG,
            completer=completers.etags,
        ),
        option("--lease-id", "ID|@held", "Use the lease that you hold.", LEASE_ID),
        option("--fence", "N", "Your lock's number: refused if a later holder has written.", NUMBER),
        flag("--last-writer-wins", "Write even if another writer was first."),
        flag("--allow-race", "Accept a gap between comparing and writing."),
    ),
)


# The condition options that few operations honour.
_RARE_CONDITIONS = in_panel(
    CONDITIONS,
    (
        option("--source-if-match", "ETAG", "Only if the source's ETag is this.", ETAG),
        option("--source-if-none-match", "ETAG", "Only if the source's ETag differs.", ETAG),
        option("--source-if-modified-since", "TIME", "Only if the source was modified since TIME.", TIME),
        option("--source-if-unmodified-since", "TIME", "Only if the source was not modified since TIME.", TIME),
        option("--source-if-tags", "EXPR", "Only if the source's index tags match.", EXPRESSION),
        option("--append-position", "SIZE", "Only if the blob has this many bytes before the append.", POSITION),
        option("--max-size", "SIZE", "Only if the blob has at most this many bytes afterwards.", POSITION),
        option("--if-sequence-number-le", "N", "Only if the sequence number is at most this.", NUMBER),
        option("--if-sequence-number-lt", "N", "Only if the sequence number is less than this.", NUMBER),
        option("--if-sequence-number-eq", "N", "Only if the sequence number is this.", NUMBER),
        option("--source-lease-id", "ID", "The lease of the source.", LEASE_ID),
    ),
)


def _with_facts(row: Row) -> Row:
    """Return a row with what is known of the setting of an account: whether it is a secret, and its variable."""
    name = row.flags[0].removeprefix("--")
    return row._replace(is_secret=name in endpoints.SECRETS, variable=endpoints.VARIABLES.get(name, row.variable))


_ONE_ACCOUNT = checked(
    "--account-name --account-key --sas-token --auth-mode --profile --emulator --endpoint-suffix --blob-endpoint "
    "--table-endpoint --queue-endpoint --file-endpoint",
    "one option names the account, and one says who asks",
    "accounts.options",
)
#: The options that choose an account.
ACCOUNT_ROWS = in_panel(
    ACCOUNT,
    map(
        _with_facts,
        (
            option("--connection-string", "TEXT|@FILE", "Use this connection string.", TEXT),
            option("--account-name", "NAME", "Use this storage account.", TEXT, rules=(_ONE_ACCOUNT,)),
            option("--account-key", "KEY|@FILE", "Use this key of the account.", TEXT),
            option("--sas-token", "SAS|@FILE", "Use this shared access signature.", TEXT),
            option("--auth-mode", "login|key|anonymous", "Choose how to authenticate.", spelt),
            option(
                "--profile",
                "NAME",
                "Use this profile of the configuration file.",
                TEXT,
                completer=completers.profiles,
                variable="AZGUARD_PROFILE",
            ),
            option("--blob-endpoint", "URL", "Set the URL of the blobs.", URL),
            option("--table-endpoint", "URL", "Set the URL of the tables.", URL),
            option("--queue-endpoint", "URL", "Set the URL of the queues.", URL),
            option("--file-endpoint", "URL", "Set the URL of the files.", URL),
            option("--endpoint-suffix", "SUFFIX", "Use this cloud, such as core.chinacloudapi.cn.", TEXT),
            option("--api-version", "DATE", "Speak this version of the services, such as 2019-07-07.", API_VERSION),
            flag("--emulator", "Use the emulator on this machine."),
            flag("--allow-http", "Do not warn of a key or SAS that goes over http to another machine."),
            flag("--trust-endpoint", "Log in to the tenant that an endpoint outside Azure names."),
        ),
    ),
)
#: How long a command keeps trying. It stands with the account, but some commands have one of their own.
TIMEOUT = option("--timeout", "DURATION", "Try for this long.", DURATION, default=PATIENCE_SECONDS, panel=ACCOUNT)
_KEY, _SCOPE = "--encryption-key", "--encryption-scope"
#: How a blob is encrypted. They stand with the account, which keeps them, of commands that read or write blobs.
ENCRYPTION_ROWS = in_panel(
    ACCOUNT,
    (
        option(
            _KEY,
            "KEY|@FILE",
            "Of commands on blobs: encrypt and read with this key for AES-256.",
            TEXT,
            is_secret=True,
            variable=endpoints.ENCRYPTION_VARIABLE,
            rules=(excludes(_KEY, _SCOPE, "a blob is encrypted in one of the two ways"),),
        ),
        option(_SCOPE, "NAME", "Of commands on blobs: encrypt what is written in this scope.", HEADER),
    ),
)
_SOURCE_SAS = option("--source-sas", "SAS|@FILE", "Read the source with this SAS.", TEXT, is_secret=True)
SourceSas = Annotated[str | None, _SOURCE_SAS]
_SOURCE_KEY = option(
    "--source-encryption-key", "KEY|@FILE", "Read the source with this key for AES-256.", TEXT, is_secret=True
)
SourceKey = Annotated[str | None, _SOURCE_KEY]
#: The options whose value is a secret, unless it names a file.
SECRET_ROWS = tuple(row for row in (*ACCOUNT_ROWS, *ENCRYPTION_ROWS, _SOURCE_SAS, _SOURCE_KEY) if row.is_secret)


#: The options of every command.
GENERAL_ROWS = in_panel(
    GENERAL,
    (
        option(
            "--output, -o",
            "json|table|tsv|yaml|none",
            "Choose the format.",
            choice,
        ),
        option("--query", "JMESPATH", "Show only this part of the result.", JMESPATH),
        option(
            "--scope",
            "NAME",
            "Whose reads guard your writes.",
            SCOPE,
            variable=scope.VARIABLE,
            otherwise="this session's",
        ),
        flag("--quiet, -q", "Show no hints, warnings or progress.", rules=(excludes("--quiet", "--verbose"),)),
        flag("--verbose, -v", "Show what azguard does."),
        flag("--debug", "Show the traceback of an error."),
        flag("--no-color", "Show no colours; NO_COLOR does the same."),
        flag("--no-progress", "Show no progress bars."),
    ),
)


#: Every option that asks for a condition, of all commands.
CONDITION_NAMES = frozenset(row.name for row in (*_USUAL_CONDITIONS, *_RARE_CONDITIONS))


def _refuse_timeout(text: str, name: str) -> str:
    raise UsageError(f"{name} bounds requests; --wait says how long to wait", hint=f"--wait {text}")


NoTimeout = Annotated[
    str | None,
    option("--timeout", "DURATION", "Refused: see --wait.", ValueType("refused", _refuse_timeout), is_hidden=True),
]


@cache
def list_conditions(operation: "Operation | None") -> tuple[Row, ...]:
    """Return every condition option; those that mean nothing here are hidden, and refused by name with the reason."""
    shown = () if operation is None else operation.asks
    rows = (*_USUAL_CONDITIONS, *_RARE_CONDITIONS)
    return tuple(row._replace(is_hidden=row.name not in shown) for row in rows)


def list_condition_rules(spec: CommandSpec, *, skips_existing: bool) -> "Iterator[Rule]":
    """Yield which condition options of a command go together; ``skips_existing`` says whether it has --if-exists."""
    if spec.operation is None:
        return
    from azguard.wire.rows import list_contradictions  # which help and versions do not need

    for each in list_contradictions(spec.operation):
        names = _join(each.arguments)
        yield excludes(names, _join(each.others), each.why) if each.others else at_most_one(names, each.why)
    if skips_existing and spec.operation.creates:
        for row in list_conditions(spec.operation):
            if not row.is_hidden:
                # --if-exists skip does the same.
                unless = "--if-none-match=*" if row.name == "if_none_match" else ""
                yield excludes("--if-exists", row.flags[0], _ALONE, unless=unless)
    if spec.takes_key and spec.operation.drops_encryption:
        yield checked(f"{_KEY} {_SCOPE}", "an operation that takes them", "context._encrypt")
    if spec.plain is not None:
        of_source = sorted(spec.operation.honours - spec.plain.honours)
        yield needs(" ".join(f"--{each}" for each in of_source), "--source")


def _join(arguments: "Iterable[str]") -> str:
    return " ".join(f"--{name.replace('_', '-')}" for name in arguments)
