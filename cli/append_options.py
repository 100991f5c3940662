"""The options of ``blob append``, and what of them goes together."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from azguard.accounts import trace
from azguard.accounts.target import Target
from azguard.cli import copy_options, inputs, options, source_options, values
from azguard.cli.context import Environment
from azguard.conditions.requested import RequestedConditions
from azguard.errors import UsageError
from azguard.requests.deadline import PATIENCE_SECONDS

if TYPE_CHECKING:
    from azguard.blobs.content.append_request import Append, Proof
    from azguard.blobs.content.upload import Settings
    from azguard.blobs.copy_sources import SourcePiece

# How long other writers are given way to, unless --timeout says otherwise.
_CONTENTION_SECONDS = 60.0


@dataclass(frozen=True)
class AppendOptions:
    """The options of blob append, as typed."""

    file: Annotated[
        str | None, typer.Option("--file", "-f", metavar="FILE|-", help="Append this file; by default, stdin.")
    ] = None
    line: Annotated[
        list[str] | None,
        typer.Option("--line", metavar="TEXT", help="Append this line; repeat it for more, which stay together."),
    ] = None
    lines: Annotated[
        bool,
        typer.Option("--lines", help="Let lines of other writers come between the lines of the input."),
    ] = False
    source_url: source_options.SourceUrl = None
    source_sas: copy_options.SourceSas = None
    guard: Annotated[
        str | None,
        typer.Option("--guard", metavar="position|content|lease", help="Choose the guard; see azguard help appends."),
    ] = None
    create: Annotated[bool, typer.Option("--create", help="Create the append blob if it is missing.")] = False
    content_type: Annotated[
        str | None,
        typer.Option("--content-type", metavar="TYPE", help="Set it on a created blob; by default, from the name."),
    ] = None
    metadata: options.Metadata = None
    allow_empty: Annotated[bool, typer.Option("--allow-empty", help="Do nothing if the input is empty.")] = False

    @property
    def is_lines(self) -> bool:
        """Return whether lines are appended, between which those of other writers may stand."""
        return self.lines or bool(self.line)

    def check(self, env: Environment) -> None:
        """Refuse what contradicts itself, or is malformed.

        Raises:
            UsageError: names the options, and what goes instead.
        """
        values.choice(self.guard, "--guard", ("position", "content", "lease"))
        source_options.check(self.source_url, self.source_sas, self.file)
        if self.source_url is not None and (self.is_lines or self.guard in ("position", "content")):
            raise UsageError(
                "--source-url: the bytes of the source are not seen here, so a lease alone guards them",
                hint="leave --line, --lines and --guard out",
            )
        if self.line and (self.file is not None or self.lines):
            raise UsageError("--line and the lines of a file do not go together", hint="leave one of them out")
        for text in self.line or ():
            values.not_empty(text, "--line")
            if "\n" in text:
                raise UsageError("--line: the text has more than one line", hint="repeat --line, or pipe it to --lines")
        if not self.create and (self.content_type is not None or self.metadata):
            raise UsageError("--content-type and --metadata are for a blob that is created", hint="add --create")
        asked = RequestedConditions.of(env.shared)
        if self.guard == "lease" and asked.lease_id is not None:
            raise UsageError("--guard lease and --lease-id contradict each other", hint="leave one of them out")
        if self.guard is not None and asked.last_writer_wins:
            raise UsageError("--guard and --last-writer-wins contradict each other", hint="leave one of them out")

    def plan(self, env: Environment, target: Target) -> "Append":
        """Return the append that the options describe."""
        from azguard.blobs.content.append_request import Append

        asked = RequestedConditions.of(env.shared)
        typed = env.shared.get("timeout")
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
        from azguard.blobs.content.append_request import Proof

        if self.source_url is not None and asked.lease_id is None and not asked.last_writer_wins:
            return Proof.LEASE
        return Proof(self.guard or Proof.NONE)

    def open(self) -> AbstractContextManager[BinaryIO | None]:
        """Return the content that is to be read; None where it is a text or a source."""
        return nullcontext() if self.line or self.source_url is not None else inputs.source(self.file)

    def read(self, env: Environment, given: "Append", source: BinaryIO | None) -> "Iterator[bytes | SourcePiece]":
        """Yield the pieces to append."""
        from azguard.blobs.content import append_request

        if self.source_url is not None:
            return source_options.read(env, given.target, self.source_url, self.source_sas, given.conditions)
        if source is None:
            return iter([append_request.join_lines(self.line or ())])
        return append_request.read_lines(source) if self.lines else append_request.read_pieces(source)

    def find_size(self, source: BinaryIO | None) -> int | None:
        """Return how many bytes are to be read, where that is known."""
        return None if source is None else inputs.size(source)

    @property
    def takes_empty(self) -> bool:
        """Return whether empty content may be meant: it was said, or a file was named that holds it."""
        return self.allow_empty or inputs.keeps_content(self.file)

    def _find_conditions(self, env: Environment, target: Target, asked: RequestedConditions) -> Any:
        found = env.conditions(target)
        own = [each for each in asked.values if not each.of_source]
        is_default = not own and asked.etag is None and not asked.last_writer_wins
        return found.without_version() if self.is_lines and is_default else found

    def _read_settings(self, name: str) -> "Settings":
        from azguard.blobs.content.upload import Settings

        return Settings(
            content_type=values.content_type(self.content_type, name, None), metadata=values.metadata(self.metadata)
        )


def _join_queue(env: Environment, target: Target) -> Callable[[], AbstractContextManager[Any]]:
    from azguard.updates.local_queue import LocalQueue

    key = f"{target.endpoint} {target.address}"
    return lambda: LocalQueue(env.folders.queues, key, env.patience(None, _CONTENTION_SECONDS), trace.tell)
