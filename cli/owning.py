"""Who we are, for the record that a lease or a lock leaves behind: everyone who may read the blob reads it."""

import os
import socket
from datetime import UTC, datetime

from azguard.cli import redaction
from azguard.cli.context import Environment
from azguard.errors import UsageError
from azguard.leases.owners import Owner
from azguard.times import iso

# Metadata hold 8 KiB in all, and a character can take 12 bytes there.
_LONGEST_REASON = 200


def record(env: Environment, command: str, reason: str | None = None, *, lasting: bool = False) -> Owner:
    """Return the record; what looks like a secret stays out.

    ``command`` is what to publish of the command. ``lasting`` says that the lease outlives this process. The time is by
    this machine's clock, until the record is written: then it is the service's.

    Raises:
        UsageError: the reason is empty, too long or not plain text.
    """
    secrets, run = redaction.handed(env.shared, env.environ), _ci_run(env)
    return Owner(
        who=_user(),
        host=socket.gethostname(),
        pid=None if lasting else os.getpid(),
        command=redaction.redacted(command, secrets),
        since=iso(datetime.now(UTC).replace(microsecond=0)),
        run=None if run is None else redaction.redacted(run, secrets),
        reason=None if reason is None else redaction.redacted(_checked(reason), secrets),
    )


def _checked(reason: str) -> str:
    if not reason.strip():
        raise UsageError("--reason is empty", hint="an unset shell variable looks like this; leave the option out")
    if len(reason) > _LONGEST_REASON or not reason.isprintable():
        raise UsageError(
            f"--reason takes one line of at most {_LONGEST_REASON} characters",
            hint="--reason 'migration of the schema'",
        )
    return reason


def _user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return str(os.getuid())


def _ci_run(env: Environment) -> str | None:
    """Return the URL of the CI run we are in: GitHub Actions, Azure Pipelines, GitLab or Jenkins."""
    given = env.environ.get
    if given("GITHUB_RUN_ID"):
        return f"{given('GITHUB_SERVER_URL')}/{given('GITHUB_REPOSITORY')}/actions/runs/{given('GITHUB_RUN_ID')}"
    if given("BUILD_BUILDID"):
        collection, project = given("SYSTEM_TEAMFOUNDATIONCOLLECTIONURI", ""), given("SYSTEM_TEAMPROJECT", "")
        return f"{collection}{project}/_build/results?buildId={given('BUILD_BUILDID')}"
    return given("CI_JOB_URL") or given("BUILD_URL")
