"""``azguard blob``: block."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.blobs.content import blocks
from azguard.cli.context import Environment
from azguard.cli.input import streams
from azguard.cli.options import common
from azguard.cli.options.content import ContentOptions
from azguard.cli.options.types import HEADER, METADATA, TEXT, ValueType, choice, require_text
from azguard.cli.parsing.rows import flag, option
from azguard.cli.parsing.tree import Group
from azguard.cli.rules import any_of, checked, excludes
from azguard.errors import UsageError
from azguard.frozen import frozen
from azguard.wire.operations.blobs import BLOB_GET_BLOCK_LIST, BLOB_PUT_BLOCK, BLOB_PUT_BLOCK_LIST

if TYPE_CHECKING:
    from azguard.blobs.content.upload import Upload

app = Group()
block_app = Group("Blocks of a block blob: stage, commit, list.")
app.add("block", block_app)
_NAME_BLOCKS = "name them with --block-id or -f FILE; for an empty blob: --allow-empty"


def _read_block_id(text: str, name: str) -> str:
    blocks.check_id(require_text(text, name))
    return text


#: The id of a block, in base64.
BLOCK_ID = ValueType("base64", _read_block_id)


@frozen
class CommitOptions:
    """The options of blob block commit."""

    block_id: Annotated[
        list[str] | None,
        option("--block-id", "BASE64", "Use this block; repeat it for more, in their order.", BLOCK_ID),
    ] = None
    file: Annotated[
        str | None,
        option("--file, -f", "FILE|-", "Read the block ids from this file, one per line.", TEXT),
    ] = None
    content_type: Annotated[
        str | None, option("--content-type", "TYPE", "Set Content-Type.", HEADER, otherwise="it stays")
    ] = None
    metadata: Annotated[
        dict[str, str] | None,
        option("--metadata", "KEY=VALUE", "Replace the metadata.", METADATA, otherwise="they stay"),
    ] = None
    allow_empty: Annotated[bool, flag("--allow-empty", "Make an empty blob of no blocks.")] = False

    RULES: ClassVar = (
        excludes("--block-id", "--file"),
        any_of("--block-id --file --allow-empty", "no block is named", _NAME_BLOCKS),
        checked("--block-id --file", "some block, and ids of one length", "blocks.read_ids"),
    )

    def read_ids(self) -> Sequence[str]:
        """Return the ids of the blocks.

        Raises:
            UsageError: one is malformed, they differ in length, or there are none.
        """
        ids = self.block_id or []
        if self.file is not None:
            ids = streams.read(self.file).decode("utf-8", "replace").split()
        if not ids and not self.allow_empty:
            raise UsageError("no block is named", hint=_NAME_BLOCKS)
        for block in ids:
            blocks.check_id(block)
        blocks.check_ids(ids)
        return ids

    def to_upload(self, env: Environment, target: Target) -> "Upload":
        from azguard.blobs.content.upload import Settings, Upload
        from azguard.requests.lineage import fresh_op

        return Upload(
            target=target,
            settings=Settings(content_type=self.content_type, metadata=self.metadata),
            conditions=env.conditions(target),
            deadline=env.deadline,
            op=fresh_op(),
        )


@block_app.command("stage", spec=common.operation(BLOB_PUT_BLOCK))
def stage_blocks(
    env: Environment,
    blob: common.Blob,
    given: ContentOptions,
    block_id: Annotated[str | None, option("--block-id", "BASE64", "Stage one block under this id.", BLOCK_ID)] = None,
) -> None:
    """Stage blocks of a blob, which no reader sees until they are committed.

    Without --block-id the content is staged as blocks of 4 MiB, whose ids no other writer has. The ids of one blob must
    have one length. The service keeps staged blocks for a week. A commit of any writer discards those that it does not
    name.

    Examples:
        azguard blob block stage site/big -f config.json
        azguard blob block stage site/big -f config.json --query '[].block_id' -o tsv

    Topics: conditions
    """
    target = env.locate(blob, Kind.BLOB, writable=True)
    lease_id = env.conditions(target).lease_id
    with (
        given.open() as source,
        env.out.progress_bar(f"stage {target}", streams.size(source)) as progress,
    ):
        staged = list(blocks.stage(target, source, block_id, lease_id, env.deadline, progress.at))
    env.out.show(staged)


@block_app.command("commit", spec=common.operation(BLOB_PUT_BLOCK_LIST))
def commit_blocks(env: Environment, blob: common.Blob, given: CommitOptions) -> None:
    """Make a blob of staged or committed blocks, but only of the version you have seen.

    The blocks stand in the order in which they are named. A block that was staged again is taken as staged. Blocks that
    are not named are discarded, also those of other writers: the result says how many.

    Headers, metadata, tags and tier of the version that is replaced stay. If you never read the blob, commit creates
    it; if it exists, the exit status is 45.

    Examples:
        azguard blob block commit site/big --block-id cGFydC0wMDAx
        azguard blob block commit site/big -f ids

    Topics: conditions, fences
    """
    target = env.locate(blob, Kind.BLOB, writable=True)
    upload = given.to_upload(env, target)
    done, stamp = blocks.commit(upload, given.read_ids())
    env.reads.record(target, done, lineage=stamp)
    if done.discarded_blocks:
        env.out.warn(f"{done.discarded_blocks} staged blocks of {target} that were not named are discarded")
    env.out.show(done)


@block_app.command(name="list", spec=common.operation(BLOB_GET_BLOCK_LIST))
def list_blocks(
    env: Environment,
    blob: common.Blob,
    state: Annotated[
        str, option("--state", "committed|uncommitted|all", "Show the blocks in this state.", choice)
    ] = "all",
    num_results: common.Limit = None,
) -> None:
    """List the blocks of a blob: the committed ones in their order, then those that are staged.

    Examples:
        azguard blob block list site/big
        azguard blob block list site/big --state uncommitted

    Topics: conditions
    """
    target = env.locate(blob, Kind.BLOB)
    env.out.show(blocks.list_blocks(target, env.conditions(target), state, env.deadline)[:num_results])
