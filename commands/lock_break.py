"""``azguard lock break``."""

import typer

from azguard.cli import breaking, context, lock_names, options
from azguard.cli.breaking import BreakOptions
from azguard.cli.groups import group
from azguard.conditions import operations

app = group("Break a lock.")


@app.command(name="break", spec=options.operation(operations.BLOB_LEASE_BREAK))
def break_(
    ctx: typer.Context,
    address: lock_names.Lock,
    given: BreakOptions,
    lock_container: options.LockContainer = None,
) -> None:
    """Break a lock, after showing who holds it; its command is ended and exits with 77.

    By default the lease runs to its end. So the command of the holder has ended before the next command starts. With
    --lease-break-period 0 both run at the same time until the holder notices. In a script, confirm with --yes,
    --if-owner, --if-older-than, --if-run-finished or --if-match. If another holder took the lock since it was shown,
    nothing is broken (exit 42).

    --if-run-finished asks GitHub or Azure Pipelines about the run in the record. Nothing is broken if the run goes on
    (exit 42), or if that cannot be known (exit 53). The token is GITHUB_TOKEN or GH_TOKEN, SYSTEM_ACCESSTOKEN or
    AZURE_DEVOPS_EXT_PAT. Only github.com, dev.azure.com and the services that GITHUB_SERVER_URL and
    SYSTEM_COLLECTIONURI name are asked.

    Examples:
        azguard lock break deploy-prod --yes
        azguard lock break deploy-prod --yes --lease-break-period 0

    Topics: locks
    """
    env = context.of(ctx)
    target = lock_names.lock(env, address, lock_container, also=lock_names.FILES)
    env.out.show(breaking.break_lease(env, target, given))
