"""``azguard lock run``."""

import os
import random
import shlex
from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Annotated

from azguard.address import Kind
from azguard.cli import completers, context, redaction
from azguard.cli.context import Environment
from azguard.cli.input.addresses import FILES, locks
from azguard.cli.options import common, leases
from azguard.cli.options.leases import GuardedRunOptions, LockOptions, split
from azguard.cli.options.types import TEXT
from azguard.cli.parsing.rows import argument, flag, option
from azguard.cli.parsing.tree import Group
from azguard.frozen import frozen
from azguard.leases.owners import Owner
from azguard.locks import run as core
from azguard.locks.run import LockPlan
from azguard.processes import child

if TYPE_CHECKING:
    from azguard.locks.terraform import StateGuard


app = Group()


@frozen
class RunOptions:
    """The options of lock run."""

    run: GuardedRunOptions = field(default_factory=GuardedRunOptions)
    lock: LockOptions = field(default_factory=LockOptions)
    terraform: Annotated[
        str | None,
        option(
            "--terraform",
            "ADDRESS",
            "Wait for this Terraform state; unlock it if the run dies.",
            TEXT,
            completer=completers.blobs,
        ),
    ] = None
    publish_command: Annotated[
        bool,
        flag("--publish-command", "Record the arguments too, for all readers; those named like a secret are masked."),
    ] = False


def _plan_run(env: Environment, addresses: Sequence[str], command: Sequence[str], given: RunOptions) -> LockPlan:
    run, seconds = given.run, given.lock.lease_duration
    run.check_grace(seconds, "the lease's term", "which renewals need")
    targets = locks(env, addresses, given.lock.lock_container, also=FILES)
    requests = [given.lock.request(target) for target in targets]
    child.check(command, env.environ)
    for each in requests:
        context.warn_of_end(each.target, run.wait_seconds + seconds, env.out.warn_once)
    return LockPlan(
        locks=requests,
        command=run.build_command(env, command, str(targets[0].address) if len(targets) == 1 else None),
        settings=given.lock.settings(env, _owner(env, command, given)),
        wait=run.wait_seconds,
        on_held=lambda held: env.out.note(f"holding {held.target}{_describe_fence(held.fence)}"),
        state=None if given.terraform is None else _state_guard(env, given.terraform, run.wait_seconds),
        metrics=given.lock.metrics_file,
    )


def _state_guard(env: Environment, text: str, wait: float) -> "StateGuard":
    """Return the guard that waits for a Terraform state, and releases the lock that a dead run left on the state."""
    from azguard.locks.terraform import StateGuard
    from azguard.processes.locked_file import ProcessNotes

    return StateGuard(
        target=env.locate(text, Kind.BLOB, writable=True),
        notes=ProcessNotes(env.folders.runs),
        wait_seconds=wait,
        say=env.out.say,
        uniform=random.SystemRandom().uniform,
    )


def _describe_fence(fence: int | None) -> str:
    return "" if fence is None else f" (fence {fence})"


def _owner(env: Environment, command: Sequence[str], given: RunOptions) -> Owner:
    """Return the record of a run: the program's name, and its arguments only if that was asked for."""
    name = os.path.basename(command[0])
    published = shlex.join(redaction.mask_arguments(command)) if given.publish_command else name
    return leases.this_process(env, published, given.lock.reason)


@app.command(spec=common.remote("the lease of the lock is what guards it"))
def run(
    env: Environment,
    words: Annotated[
        list[str],
        argument(
            "ADDRESS... -- CMD [ARG...]",
            "The locks: names, blobs, tables, shares or files; and the command.",
            completer=completers.locks,
        ),
    ],
    given: RunOptions,
) -> int:
    """Run a command while holding locks, and exit with its status.

    A lock is a lease on a blob. A missing blob is created. A bare NAME is blob:locks/NAME. azguard renews the lease
    while the command runs, and releases it when the command ends. If the lock is lost (another broke it, or the network
    is down for too long), the command and all that it started get TERM, and KILL after --grace. Then the exit status is
    77, or --lost-exit-code. azguard notices a lost lock within 5 s. kill -9 of azguard, or of its process
    lock-guardian, ends the command too.

    Waiters are served in the order in which they came, on all machines. Each keeps a small blob beside the lock while
    it waits. A waiter that dies loses its turn within 15 s. Without the right to list the container there is no order.

    A share or a file is a lock too, by its own lease: share:NAME, file:SHARE/PATH. It must be there. It has no queue,
    no --slots, no --shared and no history. The lease of a file has no term: if azguard is killed, the next lock run of
    the file on this machine releases it; from another machine, azguard lock break does. azguard looks at it every 5 s,
    and ends the command if that fails for --lease-duration.

    With --shared any number of runs hold the lock beside each other, and a run without --shared waits until they have
    ended. Those that come after it wait behind it.

    azguard passes TERM, INT and HUP on to the command, and waits for it. When such a command has ended, all that it
    left running gets TERM, and KILL after --grace. Then azguard releases the lock.

    All who can read the lock see its holder: user, host, pid, name of the program, --reason, CI run. After the release
    the run is added to the history of the lock, see azguard lock log; that takes 2 s at most, and never fails a run.

    The command gets AZGUARD_LOCK, AZGUARD_LEASE_ID and AZGUARD_FENCE in its environment, with one line per lock. The
    fence is a number that grows with each holder. azguard blob put --fence "$AZGUARD_FENCE" is refused by the storage
    if a later holder has written. Inside the command, lock run of the same lock starts at once.

    --terraform ADDRESS waits for the lock that Terraform or OpenTofu holds on its state, and does not take it. If the
    run dies of a signal, or with azguard, its infinite lease is released by its id: by this azguard, or by the next one
    on this machine. azguard never touches a lock of another machine or user, or any lock while another Terraform runs
    here.

    Not guaranteed: a lease stops only those who ask for it. A process that was paused or disconnected can still
    finish a write to a place that does not check the fence. azguard does not end what runs as another user. Outside
    Linux it does not end what left the process group of the command. If azguard and lock-guardian are killed at the
    same moment, Linux kills the command, but not what it started. What the command leaves running when it ends by
    itself keeps running, without the lock.

    Examples:
        azguard lock run deploy-prod --wait 10m -- ./deploy.sh
        azguard lock run table:Orders --no-wait -- ./deploy.sh
        azguard lock run prod --sequence 42 -- ./deploy.sh

    Topics: locks, fences
    """
    addresses, command = split(words, env.argv, needs_lock=given.terraform is None)
    return core.run(_plan_run(env, addresses, command, given))
