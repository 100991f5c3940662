"""``azguard queue``: work."""

import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from azguard import address
from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.cli import completers, context
from azguard.cli.context import Environment
from azguard.cli.options import common
from azguard.cli.options.messages import HIDING, HIDING_OF_RECEIVED, Encoding, PoisonQueue, locate_poison
from azguard.cli.options.types import COUNT, DURATION, FILE, JMESPATH, TEXT, ValueType, lasting, read_whole, whole
from azguard.cli.output import terminal
from azguard.cli.output.terminal import LiveLine
from azguard.cli.parsing import command_line
from azguard.cli.parsing.rows import argument, flag, option
from azguard.cli.parsing.tree import Group
from azguard.cli.rules import checked, needs
from azguard.errors import UsageError
from azguard.frozen import frozen
from azguard.queues import message_format
from azguard.worker.outcomes import Outcome, WorkCounts
from azguard.worker.settings import (
    MAX_DEQUEUE,
    MAX_POISON,
    POISON_STATUS,
    RETRY_SECONDS,
    VISIBILITY_SECONDS,
    WorkSettings,
)

if TYPE_CHECKING:
    from azguard.worker.outcomes import WorkEnd

app = Group()
_MOST_JOBS = 64
_MOST = 10**9
_SHORTEST_POLL_SECONDS = 0.1
# The service's limit for the name of a queue.
_LONGEST_NAME = 63


def _read_poison_status(text: str, name: str) -> int:
    from azguard.worker.settings import AGAIN_STATUS

    found = read_whole(text, name, 1, 255)
    if found == AGAIN_STATUS:
        raise UsageError(
            f"{name} {found} contradicts the exit protocol: with {found} a message is tried again",
            hint=f"choose another, as in {name} 99",
        )
    return found


POISON_EXIT_CODE = ValueType("integer", _read_poison_status, bounds=(1, 255))
_REDRAW_SECONDS = 0.5
# These are shown even while there are none.
_ALWAYS = (Outcome.DONE,)


class LiveCounts:
    """Draws one line on stderr, again and again; what commands print comes above it."""

    def __init__(self, queue: str, *, enabled: bool) -> None:
        self._queue, self._enabled = queue, enabled
        self._next = time.monotonic() + _REDRAW_SECONDS
        self._line = LiveLine()

    def show(self, counts: WorkCounts) -> None:
        if not self._enabled or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _REDRAW_SECONDS
        # The blanks keep what a command prints apart from it.
        self._line.draw(f"{terminal.cut(describe(self._queue, counts), self._line.room() - 2)}  ")

    def print_above(self, tell: Callable[[str], None]) -> Callable[[str], None]:
        """Return a function that prints a message in place of the progress line, which is drawn again below."""

        def tell_above(text: str) -> None:
            self._line.erase()
            tell(text)

        return tell_above

    def close(self) -> None:
        self._line.close()


def describe(queue: str, counts: WorkCounts) -> str:
    """Return the counts as one line; those that are zero are left out."""
    shown = [
        f"{number:,} {outcome.value}" for outcome, number in counts.outcomes.items() if number or outcome in _ALWAYS
    ]
    rate = counts.outcomes[Outcome.DONE] / counts.seconds if counts.seconds else 0.0
    return f"{queue}: {', '.join(shown)}; {counts.running} running; {rate:.1f}/s"


@frozen
class WorkOptions:
    """The options of queue work, as typed."""

    encoding: Encoding = message_format.TEXT
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
        option("--once-table", "TABLE", "Claim each message in this table, so that it is done once only.", TEXT),
    ] = None
    once_key: Annotated[
        str | None,
        option("--once-key", "JMESPATH", "Claim this value of the JSON body instead of the id.", JMESPATH),
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
        checked("QUEUE --", "one queue, and the command behind --", "work.split"),
        checked("--poison-queue", "another queue, whose name is not too long", "work._find_poison"),
    )

    def build_settings(self, queue: Target, poison: Target) -> WorkSettings:
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


@frozen
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
    found = given.build_settings(target, _find_poison(target, locate_poison(env, target, given.poison_queue)))
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
    counts = LiveCounts(settings.queue.address.container, enabled=env.out.progress)
    told = replace(settings, say=counts.print_above(settings.say), warn=counts.print_above(settings.warn))
    try:
        yield Watched(told, counts.show)
    finally:
        counts.close()


def finish(env: Environment, ended: "WorkEnd") -> int:
    """Print the counts of a worker, and return its exit status.

    Raises:
        AzguardError: the error that ended the worker.
    """
    if ended.error is None or ended.summary.received:
        env.out.show(ended.summary)
    if ended.error is not None:
        env.out.flush()
        raise ended.error
    return ended.status


@app.command(spec=common.remote("the receipt of each message guards what is done with it"))
def work(
    env: Environment,
    words: Annotated[
        list[str],
        argument("QUEUE -- CMD [ARG...]", "The queue, and the command.", completer=completers.queues),
    ],
    given: WorkOptions,
) -> int:
    """Run a command for each message of a queue, and delete the message when the command succeeds.

    The command reads the body on stdin. Its environment has AZGUARD_QUEUE, AZGUARD_MESSAGE_ID,
    AZGUARD_MESSAGE_DEQUEUE_COUNT, AZGUARD_MESSAGE_INSERTION_TIME and AZGUARD_MESSAGE_EXPIRATION_TIME, and in
    AZGUARD_MESSAGE_FILE the name of a file with all of it as JSON. What it prints goes to stderr. There is no shell.

    By the exit status of the command, 0: the message is deleted. 75: it is tried again after --retry-visibility, which
    doubles with each receive, up to 1h. 65 (or
    --poison-exit-code): it is moved to the poison queue at once. Any other: it is tried again, and
    moved to the poison queue after --max-dequeue receives. The poison queue is QUEUE-poison, and is made if it is
    missing.

    While the command runs, azguard keeps its message hidden. If another reader receives it nevertheless, azguard ends
    the command and all that it started, and deletes nothing. kill -9 of azguard ends the command, too.

    After TERM or Ctrl-C the running commands are finished, no more messages are taken, and the exit status is 0. A
    second signal ends the commands; their messages can be received again at once (exit 143 or 130).

    Exit status: 0, or 20 if a message went to the poison queue, or was not handled in the end;
    75 if --stop-after, --max-poison or --strict stopped the worker. Three messages in a row that are poisoned at once,
    with none done in between, stop it: the command is at fault, and not the messages.

    Not guaranteed: that a message is handled only once. If an answer is lost or a machine fails at the wrong moment, it
    is handled again. So the command must be safe to repeat; --once-table helps, see azguard help once.

    Examples:
        azguard queue work jobs --drain -- sh -c 'cat >> handled.txt'
        azguard queue work jobs --jobs 4 --drain --stop-after 10 -- ./handle.sh
        azguard queue work jobs --max-messages 1 --drain -- ./handle.sh

    Topics: worker, once, queues
    """
    from azguard.worker import run

    settings = plan(env, words, given)
    with live_counts(env, settings) as live:
        ended = run.run(live.settings, live.show)
    return finish(env, ended)
