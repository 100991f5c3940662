"""``azguard queue work``."""

from typing import Annotated

import typer

from azguard.cli import completers, context, options, work_options
from azguard.cli.groups import group
from azguard.cli.work_options import WorkOptions
from azguard.worker import run

app = group("Run a command for each message.")


@app.command(spec=options.remote("the receipt of each message guards what is done with it"))
def work(
    ctx: typer.Context,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="QUEUE -- CMD [ARG...]", help="The queue, and the command.", autocompletion=completers.queues
        ),
    ],
    given: WorkOptions,
) -> None:
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
    env = context.of(ctx)
    settings = work_options.plan(env, words, given)
    with work_options.live_counts(env, settings) as live:
        ended = run.run(live.settings, live.show)
    work_options.finish(env, ended)
