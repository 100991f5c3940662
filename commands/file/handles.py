"""``azguard file``: handle, lock: who has a file open through SMB."""

import random
from collections.abc import Sequence
from dataclasses import field
from typing import Annotated, ClassVar

from azguard.address import Kind
from azguard.cli import completers
from azguard.cli.context import Environment
from azguard.cli.input import addresses, streams
from azguard.cli.options import common, leases
from azguard.cli.options.leases import GuardedRunOptions
from azguard.cli.options.types import TEXT, ValueType, choice, lasting, require_text, whole
from azguard.cli.parsing.rows import argument, flag, option
from azguard.cli.parsing.tree import Group
from azguard.cli.rules import checked, excludes, needs, one_of
from azguard.errors import Partial, UsageError
from azguard.files import handles
from azguard.frozen import frozen
from azguard.processes import child
from azguard.smb import file_lock, file_lock_run
from azguard.smb.file_lock import ByteRange, FileLock, FileLockSettings, Share
from azguard.times import parse_size
from azguard.wire import listeners
from azguard.wire.operations.shares import FILE_FORCE_CLOSE_HANDLES, FILE_LIST_HANDLES

_Recursive = Annotated[bool, flag("--recursive, -r", "Include all files and directories below it.")]


def _read_handle(text: str, name: str) -> str:
    if text == "*":
        raise UsageError(f"{name} is of one handle", hint="--close-all closes all")
    return require_text(text, name)


_HANDLE = ValueType("handle", _read_handle)
_DryRun = Annotated[bool, flag("--dry-run", "Show what would be closed; close nothing.")]
app = Group()
handle_app = Group("Handles that programs hold on files over SMB: list, close.")
app.add("handle", handle_app)
lock_app = Group("Files that are locked through SMB: run, list, break.")
app.add("lock", lock_app)


# Long enough for a slow network, and three times the grace.
_LOST_AFTER_SECONDS = 15.0
# Some questions, a second apart, fit into the least.
_LEAST_LOST_AFTER_SECONDS = 6.0
# The protocol counts bytes in 63 bits.
_MOST_BYTES = 2**63 - 1
_EXAMPLE = "team/nightly.lock"


def _read_range(text: str, name: str) -> ByteRange:
    """Return the bytes that OFFSET:LENGTH names."""
    offset, length = (parse_size(each) for each in text.partition(":")[::2])
    if offset is None or length is None:
        raise UsageError(f"{name} {text!r} is not OFFSET:LENGTH", hint="two numbers of bytes, as in --range 0:1")
    if length == 0:
        raise UsageError(f"{name} locks no byte", hint="a length of 1 or more, as in --range 0:1")
    if offset + length > _MOST_BYTES:
        raise UsageError(f"{name} {text} ends beyond the last byte that SMB can count", hint="as in --range 0:1")
    return ByteRange(offset, length)


RANGE = ValueType("range", _read_range)
SmbPort = Annotated[
    int | None,
    option("--smb-port", "PORT", "The port of SMB.", whole(1, 65_535), otherwise="AZGUARD_SMB_PORT, else 445"),
]


@frozen
class FileLockOptions:
    """The options of file lock run as typed."""

    run: GuardedRunOptions = field(default_factory=GuardedRunOptions)
    share: Annotated[str, option("--share", "none|read", "What others may do with the file.", choice)] = "none"
    shared: leases.Shared = False
    byte_range: Annotated[
        ByteRange | None, option("--range", "OFFSET:LENGTH", "Lock only these bytes; they need not exist.", RANGE)
    ] = None
    lost_after: Annotated[
        float,
        option(
            "--lost-after",
            "DURATION",
            "Count the lock as lost after this long without an answer.",
            lasting(_LEAST_LOST_AFTER_SECONDS),
        ),
    ] = _LOST_AFTER_SECONDS
    no_create: Annotated[bool, flag("--no-create", "Do not create a file that is missing.")] = False
    smb_port: SmbPort = None

    RULES: ClassVar = (
        excludes("--share", "--range", "others may read and write what is outside the range"),
        excludes("--share", "--shared", "readers let others read, and none write"),
        checked("SHARE/PATH --", "one file", "handles.plan_file_lock"),
    )


def plan_file_lock(env: Environment, words: Sequence[str], given: FileLockOptions) -> file_lock_run.FileLockPlan:
    """Return the plan that the options describe.

    Raises:
        UsageError: the options contradict each other, or one is malformed.
        ConfigError: there is no account key.
        CommandNotFound, NotExecutable: there is no such command.
    """
    addresses, command = leases.split(words, env.argv, example=_EXAMPLE)
    if len(addresses) > 1:
        raise UsageError(
            f"one run locks one file, and {len(addresses)} are named",
            hint="nest them: azguard file lock run A -- azguard file lock run B -- CMD",
        )
    run = given.run
    run.check_grace(given.lost_after, "--lost-after", "and the rest is for answers that are late")
    target = env.locate(addresses[0], Kind.FILE, writable=True)
    server = file_lock.find_place(target.account, given.smb_port, env.environ)
    child.check(command, env.environ)
    return file_lock_run.FileLockPlan(
        lock=FileLock(target, server, Share(given.share), given.byte_range, given.shared),
        command=run.build_command(env, command, str(target.address), is_fenced=False),
        settings=FileLockSettings(
            wait=run.wait_seconds,
            patience=env.deadline.seconds,
            lost_after=given.lost_after,
            create=not given.no_create,
            say=env.out.say,
            tell=listeners.tell_listeners,
            uniform=random.SystemRandom().uniform,
        ),
        on_held=lambda: env.out.note(f"holding {target}"),
    )


@handle_app.command(name="list", spec=common.operation(FILE_LIST_HANDLES))
def list_handles(
    env: Environment,
    path: addresses.Path,
    recursive: _Recursive = False,
    num_results: common.Limit = None,
) -> None:
    """List the handles on a file, directory or share: which client has it open, for what, and since when.

    Only programs that use SMB hold handles. A lease over REST is no handle: see azguard lease show.

    Examples:
        azguard file handle list team/plan.txt
        azguard file handle list team --recursive
        azguard file handle list team/plan.txt --query '[].handle_id' -o tsv

    Topics: files
    """
    target = addresses.locate_path(env, path)
    env.out.show_each(handles.list_handles(target, env.deadline, recursive=recursive, limit=num_results))


@handle_app.command(
    "close",
    spec=common.operation(FILE_FORCE_CLOSE_HANDLES),
    rules=(
        one_of(
            "--handle-id --close-all",
            hint="--handle-id ID closes one (see azguard file handle list); --close-all closes all",
        ),
        needs("--recursive", "--close-all", "it is about all handles", "add --close-all instead of --handle-id"),
    ),
)
def close_handles(
    env: Environment,
    path: addresses.Path,
    handle_id: Annotated[str | None, option("--handle-id", "ID", "Close this handle.", _HANDLE)] = None,
    close_all: Annotated[bool, flag("--close-all", "Close all handles on it.")] = False,
    recursive: _Recursive = False,
    dry_run: _DryRun = False,
) -> int:
    """Close a handle on a file, directory or share, or all of them.

    The program that held it gets an error when it uses the file next; what it had not written yet is lost. If the file
    was in delete pending, it is deleted with its last handle.

    If no handle was open, the exit status is 0 and the outcome is unchanged. If the service fails to close some, the
    exit status is 20.

    Examples:
        azguard file handle close team/plan.txt --close-all
        azguard file handle close team --close-all --recursive

    Topics: files
    """
    target = addresses.locate_path(env, path)
    if dry_run:
        found = handles.list_handles(target, env.deadline, recursive=recursive, limit=None)
        env.out.show_each(each for each in found if handle_id in (None, each.handle_id))
        return 0
    done = handles.close(target, handle_id, env.deadline, recursive=recursive)
    return env.out.answer(done, Partial.exit_code if done.failed else 0)


@lock_app.command("run", spec=common.remote("the open file is what guards it"))
def run_locked(
    env: Environment,
    words: Annotated[
        list[str],
        argument("SHARE/PATH -- CMD [ARG...]", "The file to lock; and the command.", completer=completers.files),
    ],
    given: FileLockOptions,
) -> int:
    """Run a command while azguard keeps a file open through SMB, for itself alone, and exit with its status.

    The lock is the open file. While it is open, no SMB client can open it for reading or writing, and the REST API
    answers 409 SharingViolation to reads and writes. With --share read others may read it. With --range they may open
    it, and read and write what is outside these bytes.

    With --shared azguard opens the file to read it. Any number of runs with --shared hold the lock beside each other,
    others may read the file, and a run without --shared waits until they have ended.

    Without --shared the command cannot open the locked file either: use a file beside your data, or a range that is
    behind its end.

    A file that is missing is created empty, with the directories it is in; it stays. The share must exist.

    It needs the account key and port 445, and the extra smb: pip install '.[smb]' in the clone of azguard. A SAS or a
    login cannot do SMB. Everything is encrypted. Shares of the protocol NFS have no SMB.

    azguard asks the server every second whether the file is still open. If it is not (an operator closed it, the
    network ended the connection), or if the server does not answer for --lost-after, the command and all that it
    started get TERM, and KILL after --grace. Then the exit status is 77, or
    --lost-exit-code.

    The lock has no term. It ends with its connection, which azguard and its process lock-guardian keep open. After
    kill -9 of azguard, lock-guardian ends the command, and then the file is free. After kill -9 of both it is free at
    once. A machine that lost its power is freed by the server's own timeout, or by azguard file lock break.

    azguard passes TERM, INT and HUP on to the command. If the command was told to end, all that it left running gets
    TERM, and KILL after --grace. The command gets AZGUARD_FILE_LOCK in its environment. Inside the command, file lock
    run of the same file starts at once. Waiters are served in no order.

    Not guaranteed: there is no fence. If an operator closes the file, the next one can lock it at once, while the
    command is still being ended; --on-lost kill is the fastest. A process that is paused keeps the lock; when the
    file was closed meanwhile, it can still finish a write to another place.

    Examples:
        azguard file lock run team/deploy.lock --wait 10m -- ./deploy.sh
        azguard file lock run team/plan.txt --shared -- ./deploy.sh
        azguard file lock run team/orders.db --range 0:1 --no-wait -- ./deploy.sh

    Topics: smb-locks
    """
    return file_lock_run.run_locked(plan_file_lock(env, words, given))


@lock_app.command(name="list", spec=common.operation(FILE_LIST_HANDLES))
def list_holders(env: Environment, path: addresses.Path, num_results: common.Limit = None) -> None:
    """List who has the files of a share open through SMB: from which machine, for what, and since when.

    Of a directory, or a share, it lists all files below it. A lock of azguard file lock run is one of them, with the
    access Read and Write. The service does not tell what a program lets others do with the file, nor which bytes it
    has locked. Leases over REST are not listed: see azguard lease show.

    Examples:
        azguard file lock list team
        azguard file lock list team/plan.txt --query '[].client' -o tsv

    Topics: smb-locks
    """
    env.out.show_each(handles.list_holders(addresses.locate_path(env, path), env.deadline, num_results))


@lock_app.command(name="break", spec=common.operation(FILE_FORCE_CLOSE_HANDLES))
def break_lock(
    env: Environment,
    file: addresses.File,
    yes: common.Yes = False,
    if_owner: Annotated[
        str | None,
        option("--if-owner", "CLIENT", "Only if this machine, by name or IP, alone has it open.", TEXT),
    ] = None,
    dry_run: _DryRun = False,
) -> int:
    """Close a file by force, after showing who has it open; a command of file lock run is ended and exits with 77.

    Only what was shown is closed: a program that opens the file meanwhile keeps it. In a script, confirm with --yes or
    --if-owner. If other machines have it open too, --if-owner closes nothing (exit 42).

    The next one can lock the file at once. The command of the holder is ended within seconds: until then, both run. A
    program that is not azguard gets an error at its next use of the file, and loses what it had not written yet. If no
    program has it open, the exit status is 44. If the service does not close some, it is 20.

    Examples:
        azguard file lock break team/plan.txt --yes
        azguard file lock break team/plan.txt --if-owner 127.0.0.1

    Topics: smb-locks
    """
    target = env.locate(file, Kind.FILE, writable=True)
    request = handles.BreakFileLock(target, if_owner, assume_yes=yes)
    if dry_run:
        env.out.show_each(handles.look_before_breaking(request, env.deadline, env.out.info))
        return 0
    confirm = (lambda: streams.confirm("close it?", "nothing was closed")) if streams.on_terminal() else None
    done = handles.break_after_showing(request, env.deadline, env.out.info, confirm)
    return env.out.answer(done, Partial.exit_code if done.failed else 0)
