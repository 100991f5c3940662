"""``azguard blob``: append, append seal."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, ClassVar

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.cli import completers
from azguard.cli.context import Environment
from azguard.cli.input import streams
from azguard.cli.options import common
from azguard.cli.options.content import (
    OF_CREATED,
    OF_SOURCE,
    ContentOptions,
    CreatedType,
    SourceUrl,
    guess_content_type,
    read_source,
)
from azguard.cli.options.types import ValueType, choice, require_text
from azguard.cli.parsing.rows import argument, flag, option
from azguard.cli.parsing.tree import Group
from azguard.cli.rules import at_most_one, excludes
from azguard.errors import UsageError
from azguard.frozen import frozen
from azguard.guards.requested import RequestedConditions
from azguard.requests.deadline import PATIENCE_SECONDS
from azguard.wire import listeners
from azguard.wire.operations.blobs import BLOB_APPEND_BLOCK, BLOB_APPEND_BLOCK_FROM_URL, BLOB_SEAL_APPEND_BLOB

if TYPE_CHECKING:
    from azguard.blobs.content.append_blob import Append, Proof
    from azguard.blobs.content.upload import Settings
    from azguard.resources.copies import SourcePiece

app = Group()
# How long other writers are given way to, unless --timeout says otherwise.
_CONTENTION_SECONDS = 60.0
_NOT_SEEN = "the bytes of the source are not seen here, so a lease alone guards them"


def _read_line(text: str, name: str) -> str:
    if "\n" in require_text(text, name):
        raise UsageError(f"{name}: the text has more than one line", hint="repeat --line, or pipe it to --lines")
    return text


_LINE = ValueType("text", _read_line)


@frozen
class AppendOptions(ContentOptions):
    """The options of blob append."""

    line: Annotated[
        list[str] | None,
        option("--line", "TEXT", "Append this line; repeat it for more, which stay together.", _LINE),
    ] = None
    lines: Annotated[
        bool,
        flag("--lines", "Let lines of other writers come between the lines of the input."),
    ] = False
    source_url: SourceUrl = None
    source_sas: common.SourceSas = None
    source_key: common.SourceKey = None
    guard: Annotated[
        str | None,
        option(
            "--guard",
            "position|content|lease",
            "Choose the guard; see azguard help appends.",
            choice,
        ),
    ] = None
    create: Annotated[bool, flag("--create", "Create the append blob if it is missing.")] = False
    content_type: CreatedType = None
    metadata: common.Metadata = None
    allow_empty: Annotated[bool, flag("--allow-empty", "Do nothing if the input is empty.")] = False

    RULES: ClassVar = (
        at_most_one("--file --content --line --source"),
        excludes("--line", "--lines"),
        excludes("--source", "--lines --guard=position --guard=content", _NOT_SEEN),
        OF_SOURCE,
        OF_CREATED,
        excludes("--guard=lease", "--lease-id"),
        excludes("--guard", "--last-writer-wins"),
    )

    @property
    def is_lines(self) -> bool:
        """Return whether lines are appended, between which those of other writers may stand."""
        return self.lines or bool(self.line)

    def plan(self, env: Environment, target: Target) -> "Append":
        from azguard.blobs.content.append_blob import Append

        asked = RequestedConditions.of(env.shared)
        typed = env.timeout
        return Append(
            target=target,
            conditions=self._find_conditions(env, target, asked),
            deadline=env.patience(typed, PATIENCE_SECONDS),
            proof=self._choose_proof(asked),
            is_lines=self.is_lines,
            is_anywhere=asked.last_writer_wins,
            create=self._read_settings(target.address.name) if self.create else None,
            contention_seconds=env.patience(typed, _CONTENTION_SECONDS).seconds,
            queue=_join_queue(env, target),
        )

    def _choose_proof(self, asked: RequestedConditions) -> "Proof":
        from azguard.blobs.content.append_blob import Proof

        if self.source_url is not None and asked.lease_id is None and not asked.last_writer_wins:
            return Proof.LEASE
        return Proof(self.guard or Proof.NONE)

    def open_here(self) -> AbstractContextManager[BinaryIO | None]:
        """Return the content that is to be read; None where it is a text or a source."""
        if self.content is not None:
            return streams.open_text(self.content)
        return nullcontext() if self.line or self.source_url is not None else streams.source(self.file)

    def read(self, env: Environment, given: "Append", source: BinaryIO | None) -> Iterator["bytes | SourcePiece"]:
        from azguard.blobs.content import append_write

        if self.source_url is not None:
            return read_source(env, given.target, self.source_url, self.source_sas, self.source_key, given.conditions)
        if source is None:
            return iter([append_write.join_lines(self.line or ())])
        return append_write.read_lines(source) if self.lines else append_write.read_pieces(source)

    def _find_conditions(self, env: Environment, target: Target, asked: RequestedConditions) -> Any:
        found = env.conditions(target)
        own = [each for each in asked.values if not each.of_source]
        is_default = not own and asked.etag is None and not asked.last_writer_wins
        return found.without_version() if self.is_lines and is_default else found

    def _read_settings(self, name: str) -> "Settings":
        from azguard.blobs.content.upload import Settings

        return Settings(content_type=guess_content_type(self.content_type, name, None), metadata=self.metadata or {})


def _join_queue(env: Environment, target: Target) -> Callable[[], AbstractContextManager[Any]]:
    from azguard.updates.local_runs import LocalQueue

    key = f"{target.endpoint} {target.address}"
    return lambda: LocalQueue(
        env.folders.queues, key, env.patience(None, _CONTENTION_SECONDS), listeners.tell_listeners
    )


_AppendBlob = Annotated[
    str, argument("BLOB", "The append blob: CONTAINER/NAME, or its URL.", completer=completers.blobs)
]


@app.command(spec=common.operation(BLOB_APPEND_BLOCK_FROM_URL, BLOB_APPEND_BLOCK))
def append(env: Environment, blob: _AppendBlob, given: AppendOptions) -> None:
    """Add content, or a line, to the end of an append blob, exactly once.

    If you read the blob, content is appended only to the version you have seen (exit 42). Otherwise it is appended at
    the end as it is now. A line never depends on a version: many writers can append lines, and no line is lost,
    doubled or cut.

    Each piece of content is sent for one position, so that it cannot be appended twice. If an answer is lost, azguard
    reads the bytes there. If they differ, the piece was not appended, and azguard sends it again. If they are equal,
    they may be yours or another writer's: then the exit status is 74. --guard content says that no other writer writes
    equal bytes, for example because each line has an id. --guard lease holds a lease for a moment, so that no other
    writer can write: that is safe for all content, but other writers fail during that time.

    More than 4 MiB are appended in several pieces. If that stops in the middle, the exit status is 20, and the error
    says how many bytes were appended and at which byte to go on.

    With --source the service takes the content of another blob, in the version that it has now. azguard does not
    see its bytes, so a lease guards the append.

    With --last-writer-wins the end is not looked up. That needs only the permission to add, and after a lost answer the
    exit status is 74.

    Examples:
        azguard blob append logs/deploys --line "deployed v42" --create
        azguard blob append logs/deploys -f config.json --create
        azguard blob append logs/deploys --line "rolled back" --guard lease --create

    Topics: appends, conditions
    """
    from azguard.blobs.content import append_write

    target = env.locate(blob, Kind.BLOB, writable=True)
    plan = given.plan(env, target)
    with given.open_here() as source, env.out.progress_bar(f"append {target}", streams.size(source)) as progress:
        pieces = given.read(env, plan, source)
        allows_empty = given.may_be_empty(allowed=given.allow_empty)
        done = append_write.append(plan, pieces, env.lease_records, progress.at, allow_empty=allows_empty)
    append_write.remember_append(plan, done, env.reads)
    env.out.show(done)


@app.command(name="append seal", spec=common.operation(BLOB_SEAL_APPEND_BLOB))
def seal(env: Environment, blob: _AppendBlob) -> None:
    """Seal an append blob, so that nothing can be appended any more.

    There is no way back. Metadata and tags of a sealed blob can still be changed, and it can be deleted.

    Examples:
        azguard blob append seal logs/night
        azguard blob append seal logs/night --append-position 12

    Topics: appends, conditions
    """
    from azguard.blobs.content import append_blob

    target = env.locate(blob, Kind.BLOB, writable=True)
    conditions = env.conditions(target)
    done = append_blob.seal(target, conditions, env.deadline)
    env.reads.follow(target, conditions.expected_etag, done.etag, conditions.lineage)
    env.out.show(done)
