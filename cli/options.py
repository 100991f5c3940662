"""The options that several commands share, each declared once.

A command names its own arguments; what every command takes (output), what every remote command takes (account)
and what every operation takes (conditions) is added by ``cli.groups`` from the three functions at the end.
"""

from typing import Annotated

import typer

from azguard.cli import completers
from azguard.cli.command_spec import CommandSpec
from azguard.conditions.operations import Operation

# The panel is the heading an option stands under in --help.
CONDITIONS, ACCOUNT, GENERAL = "Conditions", "Account", "General"

Table = Annotated[str, typer.Argument(metavar="TABLE", help="The table, or its URL.", autocompletion=completers.tables)]
AllScopes = Annotated[bool, typer.Option("--all-scopes", help="Of every scope, not only this one.")]
Metadata = Annotated[
    list[str] | None,
    typer.Option("--metadata", metavar="KEY=VALUE", help="Metadata to set; repeat for more."),
]
Prefix = Annotated[str | None, typer.Option("--prefix", metavar="TEXT", help="Only names that begin with it.")]
Limit = Annotated[str | None, typer.Option("--num-results", metavar="N", help="At most so many; all by default.")]
LeaseDuration = Annotated[
    str | None,
    typer.Option("--lease-duration", metavar="DURATION", help="How long it lasts: 15s to 60s; 60s by default."),
]
LockContainer = Annotated[
    str | None,
    typer.Option(
        "--lock-container",
        metavar="NAME",
        help="Where the locks of bare names and of tables are; AZGUARD_LOCK_CONTAINER, or locks, by default.",
    ),
]
BreakPeriod = Annotated[
    str | None,
    typer.Option("--lease-break-period", metavar="DURATION", help="How long it may still last, 0 to 60s."),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
IfOwner = Annotated[
    str | None,
    typer.Option("--if-owner", metavar="NAME", help="Only if its record names this user, host or user@host."),
]
IfOlderThan = Annotated[
    str | None,
    typer.Option("--if-older-than", metavar="DURATION", help="Only if it was certainly taken longer ago."),
]
Reason = Annotated[
    str | None,
    typer.Option("--reason", metavar="TEXT", help="What it is held for; shown to all who may read the blob."),
]
WaitUntilFree = Annotated[bool, typer.Option("--wait", help="Wait until it is free (exit 75 after --timeout).")]
NoLineage = Annotated[
    bool,
    typer.Option(
        "--no-lineage",
        help="Write no azguardlineage metadata. A lost response can then end as exit 74 instead of being settled.",
    ),
]


def operation(which: Operation) -> CommandSpec:
    """Return the spec of a command that is one operation: it takes the account and its condition options."""
    return CommandSpec(operation=which)


def remote(reason: str) -> CommandSpec:
    """Return the spec of a command that talks to an account and takes no condition, for this reason."""
    return CommandSpec(why_no_conditions=reason)


def conditions(
    if_match: Annotated[
        str | None,
        typer.Option(
            "--if-match",
            metavar="ETAG|*|@last",
            help="Only if the ETag is this; @last is the one this scope last read.",
        ),
    ] = None,
    if_none_match: Annotated[
        str | None,
        typer.Option("--if-none-match", metavar="ETAG|*", help="Only if the ETag differs; * is: only create."),
    ] = None,
    if_modified_since: Annotated[
        str | None,
        typer.Option("--if-modified-since", metavar="TIME", help="Only if modified since; whole seconds."),
    ] = None,
    if_unmodified_since: Annotated[
        str | None,
        typer.Option("--if-unmodified-since", metavar="TIME", help="Only if not modified since; whole seconds."),
    ] = None,
    if_tags: Annotated[
        str | None,
        typer.Option("--if-tags", metavar="EXPR", help="Only if the blob's index tags match, e.g. \"env\" = 'dev'."),
    ] = None,
    etag: Annotated[
        str | None,
        typer.Option(
            "--etag",
            metavar="ETAG|@last",
            help="Only if it is still this version, kept by the service or, where it cannot, by a lease.",
        ),
    ] = None,
    lease_id: Annotated[
        str | None,
        typer.Option(
            "--lease-id", metavar="ID|@held", help="The lease you hold; @held is this scope's. The version guards too."
        ),
    ] = None,
    fence: Annotated[
        str | None,
        typer.Option(
            "--fence",
            metavar="N",
            help="The lock you hold, by its number: refused (exit 77) once a holder with a higher one has written. It "
            "is an index tag: needs t in a SAS or Storage Blob Data Owner, and no hierarchical namespace.",
        ),
    ] = None,
    last_writer_wins: Annotated[
        bool, typer.Option("--last-writer-wins", help="No condition at all: overwrite whatever is there.")
    ] = False,
    allow_race: Annotated[
        bool,
        typer.Option("--allow-race", help="Accept compare-then-write where the service offers no guard."),
    ] = False,
) -> None:
    """Declare the condition options of every operation."""


def rare_conditions(
    source_if_match: Annotated[
        str | None, typer.Option("--source-if-match", metavar="ETAG", help="Only if the source's ETag is this.")
    ] = None,
    source_if_none_match: Annotated[
        str | None,
        typer.Option("--source-if-none-match", metavar="ETAG", help="Only if the source's ETag differs."),
    ] = None,
    source_if_modified_since: Annotated[
        str | None,
        typer.Option("--source-if-modified-since", metavar="TIME", help="Only if the source was modified since."),
    ] = None,
    source_if_unmodified_since: Annotated[
        str | None,
        typer.Option("--source-if-unmodified-since", metavar="TIME", help="Only if the source was not modified since."),
    ] = None,
    source_if_tags: Annotated[
        str | None, typer.Option("--source-if-tags", metavar="EXPR", help="Only if the source's index tags match.")
    ] = None,
    if_append_position: Annotated[
        str | None,
        typer.Option("--if-append-position", metavar="N", help="Only if the blob has so many bytes before the append."),
    ] = None,
    if_max_size: Annotated[
        str | None,
        typer.Option("--if-max-size", metavar="N", help="Only if the blob has at most so many bytes afterwards."),
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
        typer.Option("--connection-string", metavar="TEXT|@FILE", help="A storage connection string."),
    ] = None,
    account_name: Annotated[
        str | None, typer.Option("--account-name", metavar="NAME", help="The storage account.")
    ] = None,
    account_key: Annotated[str | None, typer.Option("--account-key", metavar="KEY|@FILE", help="Its key.")] = None,
    sas_token: Annotated[
        str | None, typer.Option("--sas-token", metavar="SAS|@FILE", help="A shared access signature.")
    ] = None,
    auth_mode: Annotated[
        str | None,
        typer.Option("--auth-mode", metavar="login|key|anonymous", help="login: your Azure identity."),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            metavar="NAME",
            help="A profile from the configuration file.",
            autocompletion=completers.profiles,
        ),
    ] = None,
    blob_endpoint: Annotated[
        str | None, typer.Option("--blob-endpoint", metavar="URL", help="Where its blobs are, if not in a usual place.")
    ] = None,
    table_endpoint: Annotated[
        str | None, typer.Option("--table-endpoint", metavar="URL", help="The same for tables.")
    ] = None,
    queue_endpoint: Annotated[
        str | None, typer.Option("--queue-endpoint", metavar="URL", help="The same for queues.")
    ] = None,
    file_endpoint: Annotated[
        str | None, typer.Option("--file-endpoint", metavar="URL", help="The same for files.")
    ] = None,
    endpoint_suffix: Annotated[
        str | None,
        typer.Option("--endpoint-suffix", metavar="SUFFIX", help="Its cloud, e.g. core.chinacloudapi.cn."),
    ] = None,
    emulator: Annotated[bool, typer.Option("--emulator", help="The emulator on this machine.")] = False,
    timeout: Annotated[
        str | None,
        typer.Option("--timeout", metavar="DURATION", help="How long to keep trying, e.g. 90s; 5s by default."),
    ] = None,
) -> None:
    """Declare the options that choose an account."""


def general(
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="json|table|tsv|yaml|none", help="A table on a terminal, else JSON."),
    ] = None,
    query: Annotated[
        str | None, typer.Option("--query", metavar="JMESPATH", help="Show only this part of the result.")
    ] = None,
    scope: Annotated[
        str | None,
        typer.Option("--scope", metavar="NAME", help="Whose reads guard the writes; this session's by default."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No hints, warnings or progress.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Tell what happens.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    no_color: Annotated[bool, typer.Option("--no-color", help="No colours; NO_COLOR does the same.")] = False,
    no_progress: Annotated[bool, typer.Option("--no-progress", help="No progress bars.")] = False,
) -> None:
    """Declare the options of every command."""
