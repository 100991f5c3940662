"""``azguard file``: copy, abort-copy, rename."""

from typing import TYPE_CHECKING, Annotated, ClassVar

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.cli import completers
from azguard.cli.context import Environment
from azguard.cli.input import addresses
from azguard.cli.nouns import Noun
from azguard.cli.options import common
from azguard.cli.options.content import RULES, SmbPropertyOptions, declare_abort, find_ends, locate_source
from azguard.cli.options.types import DURATION, TEXT
from azguard.cli.parsing.rows import argument, flag, option
from azguard.cli.parsing.tree import Group
from azguard.cli.rules import at_most_one, checked, excludes
from azguard.errors import UsageError
from azguard.files import files
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.guards.versions import parse_blob_etag
from azguard.requests.lineage import fresh_op
from azguard.resources import lifecycles
from azguard.wire.operations.shares import FILE_ABORT_COPY, FILE_RENAME

if TYPE_CHECKING:
    from azguard.files.copies import FileCopySettings

_Destination = Annotated[str, argument("SHARE/PATH", "The destination, or its URL.", completer=completers.files)]
# How long a copy waits for a byte.
_WAIT_SECONDS = 3600.0
_LAST = "@last"

app = Group()


@frozen
class FileCopyOptions:
    """The options of file copy."""

    smb: SmbPropertyOptions
    source: Annotated[
        str | None,
        option(
            "--source, --source-uri",
            "FILE|BLOB|URL",
            "Copy this; the only word is then the destination.",
            TEXT,
            completer=completers.file_sources,
        ),
    ] = None
    source_sas: common.SourceSas = None
    source_etag: Annotated[
        str | None,
        option("--source-etag", "ETAG|@last", "Copy only this version of the source.", TEXT),
    ] = None
    wait: Annotated[
        float | None,
        option(
            "--wait",
            "[DURATION]",
            "Stop the copy if it has not ended by then (exit 75).",
            DURATION,
            bare=DURATION.write(60),
            otherwise="wait as long as it goes on",
        ),
    ] = None
    no_wait: Annotated[bool, flag("--no-wait", "Stop the copy if it does not end at once.")] = False
    preserve_info: Annotated[
        bool, flag("--preserve-info", "Copy the attributes and times too, if the source is a file.")
    ] = False
    preserve_permissions: Annotated[
        bool, flag("--preserve-permissions", "Copy the permission too, if the source is a file.")
    ] = False
    metadata: common.Metadata = None
    if_exists: common.IfExists = None

    RULES: ClassVar = (
        at_most_one("--wait --no-wait"),
        *RULES,
        checked("--preserve-info --preserve-permissions", "the source is a file", "copies.build_settings"),
        checked("--source-etag", "@last: the source was read here", "copies.read_source_etag"),
        excludes("--preserve-permissions", "--permission-key"),
    )

    def build_settings(self, source: Target) -> "FileCopySettings":
        """Return the settings of the copy of this source, besides its content.

        Raises:
            UsageError: the source is a blob, which has nothing to preserve.
        """
        from azguard.files.copies import FileCopySettings

        if source.kind is not Kind.FILE and (self.preserve_info or self.preserve_permissions):
            option = "--preserve-info" if self.preserve_info else "--preserve-permissions"
            raise UsageError(f"{option} is for files, and the source is a blob", hint=f"leave {option} out")
        return FileCopySettings(
            smb=self.smb.build(),
            metadata=self.metadata,
            keeps_info=self.preserve_info,
            keeps_permission=self.preserve_permissions,
        )

    def read_source_etag(self, env: Environment, source: Target) -> str | None:
        """Return the version of the source that is wanted; None is the one that is there.

        Raises:
            UsageError: it is malformed, or this scope never read the source.
        """
        text = self.source_etag
        if text != _LAST:
            return None if text is None else parse_blob_etag(text, "source_etag")
        last = env.reads.find_last(source)
        if last is None:
            raise UsageError(f"--source-etag @last: {source} was never read here", hint="name its ETag, or read it")
        return last.etag


@app.command(spec=common.operation(FILE_RENAME))
def copy(
    env: Environment,
    path: Annotated[str, argument("SOURCE", "The file or blob, or its URL.", completer=completers.file_sources)],
    to: Annotated[str | None, argument("DESTINATION", "Where it goes: SHARE/PATH.", completer=completers.files)] = None,
    *,
    given: FileCopyOptions,
) -> None:
    """Copy a file or a blob over the version you have seen, or to where nothing is.

    The source comes first, as with cp. It is a file or blob:CONTAINER/NAME in the same account, one in a snapshot, or a
    URL. For a source in another account the URL has a SAS, or --source-sas has it.

    The service copies into a temporary file beside the destination. azguard waits for the end, and then renames that
    file. So the destination is never a part of the copy. It is guarded as by azguard file put: exit status 45 if it
    exists and you never read it, 42 if it changed since. Only the rename is done under a lease.

    The copy belongs to this command. Within an account it usually ends at once; from another account it may take hours.
    Ctrl-C and TERM stop it, and nothing is written. Without --wait azguard waits as long as the copy goes on, and gives
    up (exit 75) when no byte came for an hour. With --wait it stops the copy after that time, and with --no-wait if the
    copy does not end at once (exit 75, too). After kill -9 a temporary file remains, whose name begins
    with .azguard-, and a pending copy goes on into it. The next copy or put in the directory on this machine stops and
    deletes it, and so does azguard file prune.

    The service compares no version of the source. azguard reads its ETag before and after the copy; if it changed, the
    exit status is 42 and nothing is written. A program that has the source open over SMB may move the ETag later: copy
    from a snapshot of the share then.

    Content headers are those of the source, and so are the metadata, unless you give --metadata. Attributes, the
    creation time and the permission are those of the version that is replaced, unless you set them or preserve those
    of the source.

    Examples:
        azguard file copy team/plan.txt team/copy.txt
        azguard file copy team/plan.txt team/old.txt --wait 10m

    Topics: files, conditions
    """
    from azguard.files import copies, replacing
    from azguard.files.copies import FileCopy

    origin, destination = find_ends(path, to, given.source, "file")
    target = env.locate(destination, Kind.FILE, writable=True)
    skip = given.if_exists is not None
    source = _locate_source(env, target, origin, given.source_sas)
    wait = 0.0 if given.no_wait else given.wait
    plan = FileCopy(
        target=target,
        source=source,
        source_etag=given.read_source_etag(env, source),
        settings=given.build_settings(source),
        conditions=replacing.create_only(target) if skip else env.conditions(target),
        deadline=env.deadline,
        patience=env.patience(None, _WAIT_SECONDS if wait is None else wait),
        is_strict=wait is not None,
        op=fresh_op(),
    )
    guarding = addresses.guarding(env)
    with env.out.progress_bar(f"copy {target}") as progress:
        copied = lifecycles.create_unless_exists(
            lambda: copies.copy(plan, guarding, progress.at),
            lambda: lifecycles.find_existing(target, plan.op, env.deadline),
            skip=skip,
        )
    lineage = getattr(copied, "lineage", None)
    env.reads.follow_parts(target, plan.conditions.expected_etag, copied.etag, lineage)
    env.reads.record(target, copied, lineage=lineage)
    env.out.show(copied)


declare_abort(
    app,
    Noun(Kind.FILE, _Destination, "team/copy.txt", "files"),
    FILE_ABORT_COPY,
    """It is for copies that other programs began, such as az storage file copy start. azguard file copy stops its own
    copy when it is interrupted. If azguard was killed on another machine, azguard file list SHARE --prefix .azguard-
    shows its temporary file: stop the copy into it, and delete it.""",
)


@app.command(spec=common.operation(FILE_RENAME))
def rename(
    env: Environment,
    file: Annotated[str, argument("OLD", "The file: SHARE/PATH, or its URL.", completer=completers.files)],
    new: Annotated[str, argument("NEW", "Its new address: SHARE/PATH.", completer=completers.files)],
    source_lease_id: Annotated[
        str | None, option("--source-lease-id", "ID", "The lease of the file that is renamed.", TEXT)
    ] = None,
    dry_run: common.DryRun = False,
) -> None:
    """Rename a file inside its share; nothing is replaced that you did not read.

    What is at the new address stays, and the exit status is 45: of several that rename to one address, one succeeds. If
    you read the file there, or name its version with --etag, that version is replaced. If you read the file that is
    renamed, its version is compared, too. azguard holds a lease on both files meanwhile. With --last-writer-wins it
    holds no lease, and replaces what is there.

    The conditions and --lease-id are those of the new address. A lease of the file stays with it.

    Examples:
        azguard file rename team/plan.txt team/reports/plan.txt

    Topics: files
    """
    source = env.locate(file, Kind.FILE, writable=True)
    target = env.locate(new, Kind.FILE, writable=True)
    last = env.reads.find_last(source)
    lease_id = env.reads.choose_lease_id(source, source_lease_id)
    expected = None if last is None else last.etag
    given = files.FileRename(
        source=source,
        target=target,
        conditions=env.conditions(target),
        on_source=Conditions(guard="lease", expected_etag=expected, lease_id=lease_id),
        guarding=addresses.guarding(env),
        deadline=env.deadline,
    )
    if dry_run:
        env.out.show(files.preview_rename(given))
        return
    done = files.rename_file(given)
    env.reads.forget(source)
    if last is None:
        env.reads.forget(target)
    else:
        env.reads.record(target, done)
    env.out.show(done)


def _locate_source(env: Environment, target: Target, text: str, sas: str | None) -> Target:
    """Return the source of a copy: a file, or a blob, in the account of its destination or where its URL leads.

    Raises:
        UsageError: it is malformed, or names something else.
    """
    is_blob = text.startswith(f"{Kind.BLOB}:") or env.find_service(text) == "blob"
    return locate_source(env, target, text, sas, Kind.BLOB if is_blob else Kind.FILE)
