"""``azguard lock log``."""

from typing import Annotated

import typer

from azguard.cli import context, lock_names, options, values
from azguard.cli.groups import group

# More lines than the service takes.
_MOST = 1_000_000

app = group("The history of a lock.")


@app.command(spec=options.remote("lock log only looks"))
def log(
    ctx: typer.Context,
    address: lock_names.Lock,
    num_results: Annotated[
        str | None, typer.Option("--num-results", metavar="N", help="Show the newest N holders; by default, all.")
    ] = None,
    lock_container: options.LockContainer = None,
) -> None:
    """Show who held a lock, from when to when, how that ended, and why. The newest holder is last.

    lock run and lock hold add a line when they have released or lost a lock, unless --no-log is given. It has the
    exit status of the command, and the number of the signal that ended it. lock break and lease break add who broke
    the lock, when and why (--reason). A lock whose holder was broken and added no line is shown as broken. A run that
    took a lock, had to wait for its readers and gave up is shown as gave_up: its command was not run. A holder that
    was killed adds no line. It is shown as unknown once the next one has ended. Times are by the clock of the
    service.

    The lines are in the append blob NAME!log beside the lock. The service takes 50,000. Before that azguard moves them
    to NAME!log.ETAG, and begins anew. lock log reads them all. A history that cannot be read is an error.

    Not guaranteed: the history may lack a holder. A line that cannot be written in 2 s is left out, and the run says so
    on stderr.

    Examples:
        azguard lock log deploy-prod
        azguard lock log deploy-prod --num-results 5 -o json

    Topics: locks
    """
    from azguard.locks import log as history

    env = context.of(ctx)
    count = values.count(num_results, "--num-results") or _MOST
    found = history.read(lock_names.lock(env, address, lock_container), env.deadline, count)
    for gap in found.gaps:
        env.out.warn(gap)
    env.out.show_each(found.lines[-count:])
