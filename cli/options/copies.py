"""What names the source of a copy, and its destination."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from azguard.accounts.account import Account, Auth, Target
from azguard.address import Kind
from azguard.cli import completers
from azguard.cli.context import Environment
from azguard.cli.nouns import Noun
from azguard.cli.options import common
from azguard.cli.options.types import HEADER, TEXT
from azguard.cli.parsing.rows import option
from azguard.cli.parsing.tree import Group
from azguard.cli.rules import any_of, checked, excludes, needs
from azguard.errors import UsageError
from azguard.naming import same_host

if TYPE_CHECKING:
    from collections.abc import Iterator

    from azguard.guards.resolve import Conditions
    from azguard.resources.copies import SourcePiece
    from azguard.wire.rows import Operation


_PLACES = {"blob": "CONTAINER/NAME", "file": "SHARE/PATH"}
# What az calls the two commands, behind ``blob copy``.
_OF_AZ = {
    "start": "copy PLACE PLACE",
    "cancel": "abort-copy PLACE --copy-id ID",
}

CopyId = Annotated[str | None, option("--copy-id", "ID", "Stop this copy.", TEXT, otherwise="the pending one")]
#: Which rules every copy has.
RULES = (
    any_of("DESTINATION --source", "where to copy it to is missing", "type the source first, then the destination"),
    excludes("DESTINATION", "--source", "a copy has one source", "leave --source out"),
    checked("SOURCE", "no word of az", "copies.find_ends"),
    checked("--source-sas", "no SAS in the URL of the source, too", "copies.locate_source"),
)


def find_ends(first: str, second: str | None, source: str | None, noun: str = "blob") -> tuple[str, str]:
    """Return the source and the destination: two words, or the destination and --source.

    Raises:
        UsageError: the first is a word of az.
    """
    if first in _OF_AZ:
        ours = _OF_AZ[first].replace("PLACE", _PLACES[noun])
        raise UsageError(f"the address is missing; {first} is a word of az", hint=f"azguard {noun} {ours}")
    if source is not None:
        return source, first
    assert second is not None
    return first, second


def locate_source(env: Environment, target: Target, source: str, sas: str | None, kind: Kind = Kind.BLOB) -> Target:
    """Return the source of a copy: in the account of its destination, or where its URL leads.

    The credentials of the destination's account are not sent elsewhere: a source in another account needs a SAS, or is
    read as what is public.

    Raises:
        UsageError: it is malformed, or has two SAS.
        ConfigError: what was given as a SAS is none.
    """
    location = env.location(source, kind)
    own = target.account.endpoints.get(kind.service, "")
    if sas is not None:
        from azguard.accounts.account import parse_sas
        from azguard.cli.input.accounts import secret

        if location.sas is not None:
            raise UsageError("--source has a SAS already, and --source-sas is another", hint="leave one of them out")
        token = parse_sas(secret(sas), "--source-sas")
        location = replace(location, endpoint=location.endpoint or target.account.endpoint(kind.service), sas=token)
    if location.sas is not None:
        return Target(env.find_account_of_url(location), location.address)
    if location.endpoint is None or same_host(location.endpoint) == same_host(own):
        return Target(target.account, location.address)
    if kind is Kind.FILE:
        raise UsageError(
            f"{location.endpoint} is another account, whose files are read with a SAS only",
            hint="give one: --source-sas @FILE",
        )
    public = Account(location.account_name or "", {kind.service: location.endpoint}, Auth.ANONYMOUS)
    return Target(public, location.address)


def declare_abort(app: Group, noun: Noun, operation: "Operation", note: str = "") -> None:
    """Declare the command that stops a pending copy; ``note`` stands in its help."""

    def abort_copy(env: Environment, resource: Any, copy_id: CopyId = None, *, dry_run: common.DryRun = False) -> None:
        from azguard.resources import copies

        target = noun.locate(env, resource)
        done = copies.abort(target, copy_id, env.conditions(target), env.deadline, only_tells=dry_run)
        if not dry_run:
            env.reads.forget(target)
        env.out.show(done)

    line = f"azguard {noun.word} abort-copy {noun.example}"
    text = f"""Stop a copy that is pending. The destination is then an empty {noun.word}.

    {note}

    If the copy was stopped before, the exit status is 0 and the outcome is unchanged. If it has ended otherwise, the
    exit status is 42: there is nothing to stop, and the destination stays as it is.

    Examples:
        {line}
        {line} --copy-id "$COPY_ID"

    Topics: {noun.topic}
    """
    noun.declare(app, "abort-copy", common.operation(operation), text, abort_copy)


SourceUrl = Annotated[
    str | None,
    option(
        "--source, --source-uri",
        "BLOB|URL",
        "Let the service read the content from this blob.",
        TEXT,
        completer=completers.blobs,
    ),
]
CreatedType = Annotated[
    str | None, option("--content-type", "TYPE", "Set it on a created blob.", HEADER, otherwise="from the name")
]
OF_SOURCE = needs("--source-sas", "--source")
OF_CREATED = needs("--content-type --metadata", "--create", "they are set on a blob that is created")


def read_source(
    env: Environment, target: Target, url: str, sas: str | None, conditions: "Conditions"
) -> "Iterator[SourcePiece]":
    """Yield the ranges of the source, under the conditions on it."""
    from azguard.resources import copies

    source = locate_source(env, target, url, sas)
    return copies.read_pieces(source, conditions.source_headers, env.deadline)
