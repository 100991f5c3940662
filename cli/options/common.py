"""The options that several commands share, each declared once, as Typer takes them.

A command names its own arguments; what every command takes (output), what every remote command takes (account)
and what every operation takes (conditions) is added by ``parsing.groups`` from the functions at the end.
"""

import inspect
from collections.abc import Callable
from copy import copy
from functools import cache
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperOption
from typer.main import get_command

from azguard.cli import completers
from azguard.cli.parsing.command_spec import CommandSpec

if TYPE_CHECKING:
    from azguard.guards.operations import Operation


# The panel is the heading an option stands under in --help.
CONDITIONS, ACCOUNT, GENERAL, TREES = "Conditions", "Account", "General", "With --recursive"

Blob = Annotated[
    str, typer.Argument(metavar="CONTAINER/NAME", help="The blob, or its URL.", autocompletion=completers.blobs)
]
Container = Annotated[
    str, typer.Argument(metavar="NAME", help="The container, or its URL.", autocompletion=completers.containers)
]
Table = Annotated[str, typer.Argument(metavar="TABLE", help="The table, or its URL.", autocompletion=completers.tables)]
Queue = Annotated[str, typer.Argument(metavar="QUEUE", help="The queue, or its URL.", autocompletion=completers.queues)]
AllScopes = Annotated[bool, typer.Option("--all-scopes", help="Include all scopes, not only this one.")]
Metadata = Annotated[
    list[str] | None,
    typer.Option("--metadata", metavar="KEY=VALUE", help="Set metadata; repeat it for more."),
]
SnapshotFirst = Annotated[
    bool, typer.Option("--snapshot-first", help="Keep what is replaced as a snapshot; see azguard help snapshots.")
]
NoSnapshotFirst = Annotated[
    bool, typer.Option("--snapshot-first", hidden=True, help="Refused: a blob is deleted with its snapshots.")
]
Tags = Annotated[
    list[str] | None,
    typer.Option("--tags", metavar="KEY=VALUE", help="Set index tags; repeat it for more."),
]
Tier = Annotated[str | None, typer.Option("--tier", metavar="Hot|Cool|Cold|Archive", help="Set the access tier.")]
ContentEncoding = Annotated[
    str | None, typer.Option("--content-encoding", metavar="TEXT", help="Set Content-Encoding, such as gzip.")
]
ContentLanguage = Annotated[
    str | None, typer.Option("--content-language", metavar="TEXT", help="Set Content-Language, such as de.")
]
ContentDisposition = Annotated[
    str | None, typer.Option("--content-disposition", metavar="TEXT", help="Set Content-Disposition.")
]
ContentCache = Annotated[
    str | None,
    typer.Option(
        "--content-cache", "--content-cache-control", metavar="TEXT", help="Set Cache-Control, such as no-store."
    ),
]
Prefix = Annotated[str | None, typer.Option("--prefix", metavar="TEXT", help="Show only names that begin with TEXT.")]
Limit = Annotated[str | None, typer.Option("--num-results", metavar="N", help="Show at most N; by default, all.")]
LeaseDuration = Annotated[
    str | None,
    typer.Option(
        "--lease-duration",
        metavar="DURATION",
        help="End it this long after its last renewal, 15s to 60s [default: 60s].",
    ),
]
LockContainer = Annotated[
    str | None,
    typer.Option(
        "--lock-container",
        metavar="NAME",
        help="The container of locks with a bare name, and of tables; by default, locks.",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Reason = Annotated[
    str | None,
    typer.Option("--reason", metavar="TEXT", help="Say why you hold it; all readers can see this."),
]
IfExists = Annotated[
    str | None,
    typer.Option("--if-exists", metavar="skip", help="If it exists, leave it alone and exit 0."),
]
WithContents = Annotated[bool, typer.Option("--with-contents", help="Delete it with all its contents; do not ask.")]
NoLineage = Annotated[
    bool,
    typer.Option(
        "--no-lineage",
        help="Write no lineage; see azguard help updates.",
    ),
]


def operation(which: "Operation", plain: "Operation | None" = None) -> CommandSpec:
    """Return the spec of a command that is one operation: it takes the account and its condition options.

    ``plain`` is the operation without a --source-url, where the command has that option.
    """
    return CommandSpec(operation=which, plain=plain)


def remote(reason: str) -> CommandSpec:
    """Return the spec of a command that talks to an account and takes no condition, for this reason."""
    return CommandSpec(why_no_conditions=reason)


def conditions(
    if_match: Annotated[
        str | None,
        typer.Option(
            "--if-match",
            metavar="ETAG|*|@last",
            help="Only if this is the version; * is any.",
            autocompletion=completers.etags,
        ),
    ] = None,
    if_none_match: Annotated[
        str | None,
        typer.Option(
            "--if-none-match",
            metavar="ETAG|*",
            help="Only if the version differs; * only creates.",
            autocompletion=completers.etags,
        ),
    ] = None,
    if_modified_since: Annotated[
        str | None,
        typer.Option("--if-modified-since", metavar="TIME", help="Only if it changed since TIME; a weak guard."),
    ] = None,
    if_unmodified_since: Annotated[
        str | None,
        typer.Option(
            "--if-unmodified-since", metavar="TIME", help="Only if it has not changed since TIME; a weak guard."
        ),
    ] = None,
    if_tags: Annotated[
        str | None,
        typer.Option("--if-tags", metavar="EXPR", help="Only if the index tags match; a weak guard."),
    ] = None,
    etag: Annotated[
        str | None,
        typer.Option(
            "--etag",
            metavar="ETAG|@last",
            help="Only if this is the version; works on every resource.",
            autocompletion=completers.etags,
        ),
    ] = None,
    lease_id: Annotated[
        str | None,
        typer.Option("--lease-id", metavar="ID|@held", help="Use the lease that you hold."),
    ] = None,
    fence: Annotated[
        str | None,
        typer.Option(
            "--fence",
            metavar="N",
            help="Your lock's number: refused if a later holder has written.",
        ),
    ] = None,
    last_writer_wins: Annotated[
        bool, typer.Option("--last-writer-wins", help="Write even if another writer was first.")
    ] = False,
    allow_race: Annotated[
        bool,
        typer.Option("--allow-race", help="Accept a gap between comparing and writing."),
    ] = False,
) -> None:
    """Declare the condition options of every operation."""


def _rare_conditions(
    source_if_match: Annotated[
        str | None, typer.Option("--source-if-match", metavar="ETAG", help="Only if the source's ETag is this.")
    ] = None,
    source_if_none_match: Annotated[
        str | None,
        typer.Option("--source-if-none-match", metavar="ETAG", help="Only if the source's ETag differs."),
    ] = None,
    source_if_modified_since: Annotated[
        str | None,
        typer.Option("--source-if-modified-since", metavar="TIME", help="Only if the source was modified since TIME."),
    ] = None,
    source_if_unmodified_since: Annotated[
        str | None,
        typer.Option(
            "--source-if-unmodified-since", metavar="TIME", help="Only if the source was not modified since TIME."
        ),
    ] = None,
    source_if_tags: Annotated[
        str | None, typer.Option("--source-if-tags", metavar="EXPR", help="Only if the source's index tags match.")
    ] = None,
    append_position: Annotated[
        str | None,
        typer.Option(
            "--append-position", metavar="SIZE", help="Only if the blob has this many bytes before the append."
        ),
    ] = None,
    max_size: Annotated[
        str | None,
        typer.Option("--max-size", metavar="SIZE", help="Only if the blob has at most this many bytes afterwards."),
    ] = None,
    if_sequence_number_le: Annotated[
        str | None,
        typer.Option("--if-sequence-number-le", metavar="N", help="Only if the sequence number is at most this."),
    ] = None,
    if_sequence_number_lt: Annotated[
        str | None,
        typer.Option("--if-sequence-number-lt", metavar="N", help="Only if the sequence number is less than this."),
    ] = None,
    if_sequence_number_eq: Annotated[
        str | None,
        typer.Option("--if-sequence-number-eq", metavar="N", help="Only if the sequence number is this."),
    ] = None,
    source_lease_id: Annotated[
        str | None, typer.Option("--source-lease-id", metavar="ID", help="The lease of the source.")
    ] = None,
) -> None:
    """Declare the condition options that few operations honour."""


def account(
    connection_string: Annotated[
        str | None,
        typer.Option("--connection-string", metavar="TEXT|@FILE", help="Use this connection string."),
    ] = None,
    account_name: Annotated[
        str | None, typer.Option("--account-name", metavar="NAME", help="Use this storage account.")
    ] = None,
    account_key: Annotated[
        str | None, typer.Option("--account-key", metavar="KEY|@FILE", help="Use this key of the account.")
    ] = None,
    sas_token: Annotated[
        str | None, typer.Option("--sas-token", metavar="SAS|@FILE", help="Use this shared access signature.")
    ] = None,
    auth_mode: Annotated[
        str | None,
        typer.Option("--auth-mode", metavar="login|key|anonymous", help="Choose how to authenticate."),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            metavar="NAME",
            help="Use this profile of the configuration file.",
            autocompletion=completers.profiles,
        ),
    ] = None,
    blob_endpoint: Annotated[
        str | None, typer.Option("--blob-endpoint", metavar="URL", help="Set the URL of the blobs.")
    ] = None,
    table_endpoint: Annotated[
        str | None, typer.Option("--table-endpoint", metavar="URL", help="Set the URL of the tables.")
    ] = None,
    queue_endpoint: Annotated[
        str | None, typer.Option("--queue-endpoint", metavar="URL", help="Set the URL of the queues.")
    ] = None,
    file_endpoint: Annotated[
        str | None, typer.Option("--file-endpoint", metavar="URL", help="Set the URL of the files.")
    ] = None,
    endpoint_suffix: Annotated[
        str | None,
        typer.Option("--endpoint-suffix", metavar="SUFFIX", help="Use this cloud, such as core.chinacloudapi.cn."),
    ] = None,
    emulator: Annotated[bool, typer.Option("--emulator", help="Use the emulator on this machine.")] = False,
    allow_http: Annotated[
        bool, typer.Option("--allow-http", help="Do not warn of a key or SAS that goes over http to another machine.")
    ] = False,
    trust_endpoint: Annotated[
        bool,
        typer.Option("--trust-endpoint", help="Log in to the tenant that an endpoint outside Azure names."),
    ] = False,
    timeout: Annotated[
        str | None,
        typer.Option("--timeout", metavar="DURATION", help="Try for this long; by default, 5s."),
    ] = None,
) -> None:
    """Declare the options that choose an account."""


def general(
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="json|table|tsv|yaml|none", help="Choose the format."),
    ] = None,
    query: Annotated[
        str | None, typer.Option("--query", metavar="JMESPATH", help="Show only this part of the result.")
    ] = None,
    scope: Annotated[
        str | None,
        typer.Option("--scope", metavar="NAME", help="Whose reads guard your writes; by default, this session's."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no hints, warnings or progress.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show what azguard does.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    no_color: Annotated[bool, typer.Option("--no-color", help="Show no colours; NO_COLOR does the same.")] = False,
    no_progress: Annotated[bool, typer.Option("--no-progress", help="Show no progress bars.")] = False,
) -> None:
    """Declare the options of every command."""


#: Every option that asks for a condition, whatever the command.
CONDITION_NAMES = frozenset(
    name for declaration in (conditions, _rare_conditions) for name in inspect.signature(declaration).parameters
)


def general_params() -> list[TyperOption]:
    """Return the options that every command takes."""
    return list(_params(general, GENERAL))


def account_params() -> list[TyperOption]:
    """Return the options that choose an account."""
    return list(_params(account, ACCOUNT))


@cache
def _params(declaration: Callable[..., None], panel: str) -> tuple[TyperOption, ...]:
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command()(declaration)
    params = tuple(param for param in get_command(app).params if isinstance(param, TyperOption))
    for param in params:
        param.rich_help_panel = panel
    return params


def condition_params(operation: "Operation | None") -> list[TyperOption]:
    """Return every condition option; those that mean nothing here are hidden, and refused by name with the reason."""
    shown = set() if operation is None else _list_shown(operation)
    params = []
    for declaration in (conditions, _rare_conditions):
        for param in _params(declaration, CONDITIONS):
            own = copy(param)
            own.hidden = param.name not in shown
            params.append(own)
    return params


def _list_shown(operation: "Operation") -> set[str]:
    """Return the names of the condition options that mean something to an operation."""
    shown = {condition.replace("-", "_") for condition in operation.honours}
    if operation.names_lease:
        shown.add("lease_id")
    if operation.writes and operation.guard != "none":
        shown.add("etag")
    if operation.fences:
        shown.add("fence")
    if operation.overwrites:
        shown.add("last_writer_wins")
    if operation.guard == "compare":
        shown.add("allow_race")
    return shown
