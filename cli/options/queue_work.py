"""The options of queue work."""

import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from azguard import address
from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.cli import context
from azguard.cli.context import Environment
from azguard.cli.input import values
from azguard.cli.options import messages
from azguard.cli.options.messages import HIDING, HIDING_OF_RECEIVED, Encoding, PoisonQueue
from azguard.cli.options.types import COUNT, DURATION, FILE, TEXT, ValueType, lasting, whole
from azguard.cli.parsing import command_line
from azguard.cli.parsing.rows import flag, option
from azguard.cli.rules.engine import checked, needs
from azguard.errors import UsageError
from azguard.queues import message_results
from azguard.worker.settings import (
    MAX_DEQUEUE,
    MAX_POISON,
    POISON_STATUS,
    RETRY_SECONDS,
    VISIBILITY_SECONDS,
    WorkSettings,
)

if TYPE_CHECKING:
    from azguard.worker.results import WorkCounts, WorkEnd

_MOST_JOBS = 64
_MOST = 10**9
_SHORTEST_POLL_SECONDS = 0.1
# The service's limit for the name of a queue.
_LONGEST_NAME = 63


def _read_poison_status(text: str, name: str) -> int:
    from azguard.worker.results import AGAIN_STATUS

    found = values.whole(text, name, 1, 255)
    if found == AGAIN_STATUS:
        raise UsageError(
            f"{name} {found} contradicts the exit protocol: with {found} a message is tried again",
            hint=f"choose another, as in {name} 99",
        )
    return found


POISON_EXIT_CODE = ValueType("integer", _read_poison_status, bounds=(1, 255))


@dataclass(frozen=True)
class WorkOptions:
    """The options of queue work, as typed."""

    encoding: Encoding = message_results.TEXT
    jobs: Annotated[int, option("--jobs", "N", "Run N commands at a time.", whole(1, _MOST_JOBS))] = 1
    drain: Annotated[bool, flag("--drain", "End when the queue is empty.")] = False
    max_messages: Annotated[int | None, option("--max-messages", "N", "End after N messages.", COUNT)] = None
    visibility_timeout: Annotated[
        int,
        option(
            "--visibility-timeout",
            "DURATION",
            "Hide a message this long; azguard extends it at half of that.",
            HIDING_OF_RECEIVED,
        ),
    ] = VISIBILITY_SECONDS
    retry_visibility: Annotated[
        int,
        option("--retry-visibility", "DURATION", "Wait before the first retry; then twice as long each time.", HIDING),
    ] = RETRY_SECONDS
    max_dequeue: Annotated[
        int,
        option("--max-dequeue", "N", "Move a message to the poison queue after N receives.", whole(1, _MOST)),
    ] = MAX_DEQUEUE
    poison_queue: PoisonQueue = None
    max_time: Annotated[
        float | None,
        option("--max-time", "DURATION", "End a command that runs longer; it counts as failed.", lasting(0.1)),
    ] = None
    grace: Annotated[float, option("--grace", "DURATION", "Wait between TERM and KILL.", DURATION)] = 5.0
    strict: Annotated[bool, flag("--strict", "Stop at an exit status outside the protocol (exit 75).")] = False
    stop_after: Annotated[
        int | None, option("--stop-after", "N", "Stop after N failures in a row (exit 75).", COUNT)
    ] = None
    max_poison: Annotated[
        int,
        option(
            "--max-poison",
            "N",
            "Stop after N messages in a row poisoned at once (exit 75); 0: never.",
            whole(0, _MOST),
        ),
    ] = MAX_POISON
    poison_exit_code: Annotated[
        int,
        option("--poison-exit-code", "N", "The exit status that means: the message is bad.", POISON_EXIT_CODE),
    ] = POISON_STATUS
    poll_interval: Annotated[
        float,
        option(
            "--poll-interval",
            "DURATION",
            "Ask an empty queue again after at most this long.",
            lasting(_SHORTEST_POLL_SECONDS),
        ),
    ] = 5.0
    once_table: Annotated[
        str | None,
        option("--once-table", "TABLE", "Claim each message in this table, so that it is done once only."),
    ] = None
    once_key: Annotated[
        str | None,
        option("--once-key", "JMESPATH", "Claim this value of the JSON body instead of the id.", TEXT),
    ] = None
    strict_key: Annotated[
        bool,
        flag("--strict-key", "Move a message to the poison queue if its key was done with another body."),
    ] = False
    events: Annotated[
        Path | None, option("--events", "FILE", "Append what happens to each message, as JSON lines.", FILE)
    ] = None
    metrics: Annotated[
        Path | None, option("--metrics", "FILE", "Keep the counts in this file, as OpenMetrics text.", FILE)
    ] = None

    RULES: ClassVar = (
        needs("--once-key", "--once-table", "the claims are in that table", "add --once-table TABLE"),
        needs("--strict-key", "--once-key", "it compares the bodies of one key", "add --once-key JMESPATH"),
        checked("QUEUE --", "one queue, and the command behind --", "queue_work.split"),
        checked("--poison-queue", "another queue, whose name is not too long", "queue_work._find_poison"),
    )

    def build_settings(self, queue: Target, poison: Target) -> WorkSettings:
        """Return the settings in the options, without the command."""
        return WorkSettings(
            queue=queue,
            poison=poison,
            command=(),
            encoding=self.encoding,
            visibility=self.visibility_timeout,
            retry_visibility=self.retry_visibility,
            max_dequeue=self.max_dequeue,
            jobs=self.jobs,
            drain=self.drain,
            max_messages=self.max_messages,
            strict=self.strict,
            key_in_body=self.once_key is not None,
            strict_key=self.strict_key,
            stop_after=self.stop_after,
            max_poison=self.max_poison or None,
            poison_status=self.poison_exit_code,
            max_time=self.max_time,
            grace=self.grace,
            poll_interval=self.poll_interval,
            events=self.events,
            metrics=self.metrics,
        )


@dataclass(frozen=True)
class Watched:
    """The settings of a worker whose messages stand above its counts, and what shows the counts."""

    settings: WorkSettings
    show: "Callable[[WorkCounts], None]"


def plan(env: Environment, words: list[str], given: WorkOptions) -> WorkSettings:
    """Return the settings that the command line describes.

    Raises:
        UsageError: the queue or the command is missing, or an option is wrong.
        CommandNotFound, NotExecutable: there is no such command.
    """
    from azguard.processes import child

    queue, command = split(words, env.argv)
    target = env.locate(queue, Kind.QUEUE)
    found = given.build_settings(target, _find_poison(target, messages.locate_poison(env, target, given.poison_queue)))
    child.check(command, env.environ)
    context.warn_of_end(target, max(found.visibility, found.max_time or 0.0), env.out.warn_once)
    patience = None if env.timeout is None else env.deadline.seconds
    told = replace(found, patience=patience, say=env.out.say, warn=env.out.warn)
    settings = replace(told, command=command, environ=dict(env.environ))
    return settings if given.once_table is None else _claim_in(env, settings, given.once_table, given.once_key)


def _find_poison(queue: Target, named: Target | None) -> Target:
    """Return the poison queue of a worker."""
    from azguard.queues.moving import POISON_SUFFIX

    own = queue.address.container
    if named is None:
        name = f"{own}{POISON_SUFFIX}"
        if len(name) > _LONGEST_NAME:
            raise UsageError(
                f"{name} is too long for the name of a queue: it has {len(name)} characters, and {_LONGEST_NAME} are "
                "allowed",
                hint="choose another with --poison-queue",
            )
        return Target(queue.account, address.parse(name, Kind.QUEUE).address)
    if (named.endpoint, named.address) == (queue.endpoint, queue.address):
        raise UsageError("the poison queue is the queue itself", hint="choose another with --poison-queue")
    return named


def _claim_in(env: Environment, settings: WorkSettings, table: str, key: str | None) -> WorkSettings:
    """Return settings with claims in a table, which is looked for before the first message is received."""
    from azguard.worker.once import KeyRule, OnceTable

    claims = OnceTable(env.locate(table, Kind.TABLE), f"{platform.node()} (pid {os.getpid()})")
    return replace(
        settings,
        claims=claims,
        choose_key=KeyRule(key).choose,
        prepare=lambda: claims.check(env.deadline.fresh()),
    )


def split(words: list[str], argv: tuple[str, ...]) -> tuple[str, list[str]]:
    """Return the queue and the command, which ``--`` divides."""
    command = command_line.split(argv)[1][1:]
    own = words[: len(words) - len(command)]
    if not command or not command[0]:
        raise UsageError("there is no command to run", hint="write it after --, as in: -- ./handle.sh")
    if not own:
        raise UsageError("there is no queue", hint="name it before --, as in: jobs -- ./handle.sh")
    if len(own) > 1:
        raise UsageError(
            f"a worker has one queue, and these are {len(own)}: {', '.join(own)}", hint="start a worker for each queue"
        )
    return own[0], command


@contextmanager
def live_counts(env: Environment, settings: WorkSettings) -> Iterator[Watched]:
    """Show the counts on a terminal, and messages above them; the line is gone after the block."""
    from azguard.cli.output.work import LiveCounts

    counts = LiveCounts(settings.queue.address.container, enabled=env.out.progress)
    told = replace(settings, say=counts.print_above(settings.say), warn=counts.print_above(settings.warn))
    try:
        yield Watched(told, counts.show)
    finally:
        counts.close()


def finish(env: Environment, ended: "WorkEnd") -> int:
    """Print what a worker did, and return its exit status.

    Raises:
        AzguardError: what ended it.
    """
    if ended.error is None or ended.summary.received:
        env.out.show(ended.summary)
    if ended.error is not None:
        env.out.flush()
        raise ended.error
    return ended.status
