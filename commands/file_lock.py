"""``azguard file lock``: run."""

from typing import Annotated

import typer

from azguard.cli import completers, context, file_lock_options, guarded_options, options
from azguard.cli.groups import group

app = group("Files that are locked through SMB: run a command under such a lock.")


@app.command(spec=options.remote("the open file is what guards it"))
def run(
    ctx: typer.Context,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="SHARE/PATH -- CMD [ARG...]",
            help="The file to lock; and the command.",
            autocompletion=completers.files,
        ),
    ],
    wait: guarded_options.Wait = None,
    no_wait: guarded_options.NoWait = False,
    conflict_exit_code: guarded_options.ConflictExitCode = None,
    share: Annotated[
        str,
        typer.Option("--share", metavar="none|read", help="What others may do with the file; by default, none."),
    ] = "none",
    byte_range: Annotated[
        str | None,
        typer.Option("--range", metavar="OFFSET:LEN", help="Lock only these bytes; they need not exist."),
    ] = None,
    lost_after: Annotated[
        str | None,
        typer.Option(
            "--lost-after",
            metavar="DURATION",
            help="Without an answer of the server for so long the lock counts as lost; by default, 15s.",
        ),
    ] = None,
    grace: guarded_options.Grace = None,
    on_lost: guarded_options.OnLost = "term",
    heartbeat_file: guarded_options.HeartbeatFile = None,
    no_create: Annotated[bool, typer.Option("--no-create", help="Do not create a file that is missing.")] = False,
    smb_port: file_lock_options.SmbPort = None,
) -> None:
    """Run a command while a file is open through SMB so that others are kept out, and exit with its status.

    The lock is the open file. While it is open, no SMB client can open it for reading or writing, and the REST API
    answers 409 SharingViolation to reads and writes. With --share read others may read it. With --range they may open
    it, and read and write what is outside these bytes. The command cannot open the locked file either: use a file
    beside your data, or a range that is behind its end.

    A file that is missing is created empty, with the directories it is in; it stays. The share must exist.

    It needs the account key and port 445, and the extra smb: pip install 'azguard[smb]'. A SAS or a login cannot do
    SMB. Everything is encrypted. Shares of the protocol NFS have no SMB.

    azguard asks the server every second whether the file is still open. If it is not (an operator closed it, the
    network ended the connection), or if the server does not answer for --lost-after, the command and all that it
    started get TERM, and KILL after --grace. Then the exit status is 77.

    The lock has no term. It ends with its connection, which azguard and its process lock-guardian keep open. After
    kill -9 of azguard, lock-guardian ends the command, and then the file is free. After kill -9 of both it is free at
    once. A machine that lost its power is freed by the server's own timeout, or by azguard file lock break.

    azguard passes TERM, INT and HUP on to the command. After the command has ended, all that it left running gets
    TERM, and KILL after --grace, if it was told to end. The command gets AZGUARD_FILE_LOCK in its environment. Inside
    the command, file lock run of the same file starts at once. Waiters are served in no order.

    Not guaranteed: there is no fence. If an operator closes the file, the next one can lock it at once, while the
    command is still being ended; --on-lost kill is the fastest. A process that is paused keeps the lock; when the
    file was closed meanwhile, it can still finish a write to another place.

    Examples:
        azguard file lock run team/deploy.lock --wait 10m -- ./deploy.sh
        azguard file lock run team/plan.txt --share read -- ./deploy.sh
        azguard file lock run team/orders.db --range 0:1 --no-wait -- ./deploy.sh

    Topics: locks
    """
    from azguard.smb import run as core

    env = context.of(ctx)
    given = file_lock_options.FileLockOptions(
        wait=wait,
        no_wait=no_wait,
        conflict_exit_code=conflict_exit_code,
        share=share,
        byte_range=byte_range,
        lost_after=lost_after,
        grace=grace,
        on_lost=on_lost,
        heartbeat_file=heartbeat_file,
        no_create=no_create,
        smb_port=smb_port,
    )
    plan, busy = file_lock_options.plan(env, words, given)
    raise typer.Exit(core.run(plan, busy))
