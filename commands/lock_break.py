"""``azguard lock break``."""

import typer

from azguard.cli import breaking, context, lease_options, lock_names, options, signals
from azguard.cli.groups import group
from azguard.conditions import operations

app = group("Break a lock.")


@app.command(name="break", spec=options.operation(operations.BLOB_LEASE_BREAK))
def break_(
    ctx: typer.Context,
    address: lock_names.Lock,
    lease_break_period: options.BreakPeriod = None,
    yes: options.Yes = False,
    if_owner: options.IfOwner = None,
    if_older_than: options.IfOlderThan = None,
    if_run_finished: breaking.IfRunFinished = False,
    wait: options.WaitUntilFree = False,
    lock_container: options.LockContainer = None,
) -> None:
    """Break a lock, after showing who holds it; its command is ended and exits with 77.

    By default the lease runs to its end. So the command of the holder has ended before the next command starts. With
    --lease-break-period 0 both run at the same time until the holder notices. In a script, confirm with --yes,
    --if-owner, --if-older-than, --if-run-finished or --if-match. If another holder took the lock since it was shown,
    nothing is broken (exit 42).

    --if-run-finished asks GitHub or Azure Pipelines about the run in the record. If it goes on, nothing is broken
    (exit 42), nor if that is not known (exit 53). The token is GITHUB_TOKEN or GH_TOKEN, SYSTEM_ACCESSTOKEN or
    AZURE_DEVOPS_EXT_PAT. Only github.com, dev.azure.com and the services that GITHUB_SERVER_URL and
    SYSTEM_COLLECTIONURI name are asked.

    Examples:
        azguard lock break deploy-prod --yes
        azguard lock break deploy-prod --yes --lease-break-period 0

    Topics: locks
    """
    env = context.of(ctx)
    target = lock_names.lock(env, address, lock_container, also=lock_names.FILES)
    period = breaking.period_of(lease_break_period)
    meant = breaking.safeguards(env, if_owner, if_older_than, if_run_finished=if_run_finished)
    done = breaking.broken(env, target, period, meant, yes=yes)
    if wait:
        with signals.heed():
            lease_options.wait_free(env, target, breaking.after(env, done))
    env.out.show(done)
