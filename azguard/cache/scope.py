"""The scope and the CI job of this process: no script guards with another's reads, or ends another's leases.

Jobs of GitHub Actions, Azure Pipelines, GitLab or Jenkins can share a scope, a machine and a cache. What their
environment tells of them is noted in the records of what they hold. An attempt to run a job again is another job.
Outside of these systems the scope alone says whose a record is.

Not guaranteed: two jobs whose environments are the same count as one. GitHub does not tell the index in a matrix: there
the tracking id of the runner, or the runner's name, tells the jobs apart.

Source: https://docs.github.com/actions/reference/variables-reference,
https://learn.microsoft.com/azure/devops/pipelines/build/variables, https://docs.gitlab.com/ci/variables/
and https://www.jenkins.io/doc/book/pipeline/jenkinsfile/
"""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from azguard.errors import UsageError

VARIABLE = "AZGUARD_SCOPE"
DEFAULT = "default"
# Enough to tell apart the few boots that the cache of one machine lives through.
_BOOT_CHARACTERS = 8

_GITHUB = (
    "GITHUB_SERVER_URL",
    "GITHUB_REPOSITORY",
    "GITHUB_RUN_ID",
    "GITHUB_RUN_ATTEMPT",
    "GITHUB_JOB",
    "RUNNER_NAME",
    "RUNNER_TRACKING_ID",
)
# The id of a job is the same in every run of a pipeline, and in every pipeline whose job has the same name.
_AZURE_PIPELINES = (
    "SYSTEM_COLLECTIONURI",
    "BUILD_BUILDID",
    "RELEASE_DEPLOYMENTID",
    "SYSTEM_JOBID",
    "SYSTEM_JOBATTEMPT",
)
_GITLAB = ("CI_SERVER_URL", "CI_JOB_ID")
_JENKINS = ("JENKINS_URL", "BUILD_TAG")
# The runner's own ids begin so. A step sets another one to keep the runner from ending what it leaves.
_TRACKING_ID = "github_"
_TAG = "jenkins-"
#: How a record calls a job, by the variable that tells it best.
_WORDS = {
    "GITHUB_JOB": "job {}",
    "GITHUB_RUN_ID": "run {}",
    "GITHUB_RUN_ATTEMPT": "attempt {}",
    "BUILD_BUILDID": "build {}",
    "SYSTEM_JOBID": "job {}",
    "SYSTEM_JOBATTEMPT": "attempt {}",
    "CI_JOB_ID": "job {}",
    "BUILD_TAG": "build {}",
    "RUNNER_NAME": "on {}",
}


def find_scope(
    option: str | None,
    environ: Mapping[str, str],
    *,
    session: Callable[[], int | None] | None = None,
    proc: Path = Path("/proc"),
) -> str:
    """Return the scope: the option, else ``AZGUARD_SCOPE``, else the POSIX session, else ``default``.

    A session is named by its leader's pid, start time and boot (``session-4711-98765-1f3a9c02``), so that
    neither a pid nor a reboot makes two sessions one.

    When the leader has exited (a script left behind by a closed terminal), its start time cannot be learnt
    any more. The kernel keeps its number from being given away while the session has members, so every
    process of the session still gets the same name, ``session-4711-leaderless-1f3a9c02``. That differs from
    the name while the leader lived: what was read before it exited no longer guards, and a write is refused
    as never read, which is the safe side. Not guaranteed: two leaderless sessions of one number, one after
    the other within one boot, share a scope. A script that outlives its terminal sets ``AZGUARD_SCOPE``.

    ``session`` tells the session's number, ``proc`` is where the kernel tells about processes.

    Raises:
        UsageError: the option or the variable is given and empty, or has characters that cannot be shown.
    """
    named = find_named(option, environ)
    if named is not None:
        return named
    number = (session or _find_session)()
    if not number:
        # This system has no sessions; or the leader is outside this container (0), where numbers are not unique.
        return DEFAULT
    from azguard.processes import identity

    start = identity.find_start(number, proc) or "leaderless"
    boot = (identity.find_boot(proc) or "")[:_BOOT_CHARACTERS]
    return "-".join(filter(None, ("session", str(number), start, boot)))


def find_named(option: str | None, environ: Mapping[str, str]) -> str | None:
    """Return the scope that the option names, else ``AZGUARD_SCOPE``; None if neither is given.

    Raises:
        UsageError: the one that counts is empty, or has characters that cannot be shown.
    """
    if option is not None:
        return _check(option, "the scope", argument="scope")
    if VARIABLE in environ:
        return _check(environ[VARIABLE], VARIABLE)
    return None


def _check(text: str, where: str, argument: str | None = None) -> str:
    if not text.strip():
        raise UsageError(f"{where} is empty", argument=argument, reason="scope_empty")
    if not text.isprintable():
        raise UsageError(
            f"{where}: {text!r} has characters that cannot be shown",
            argument=argument,
            reason="scope_malformed",
        )
    return text


def _find_session() -> int | None:
    return os.getsid(0) if sys.platform != "win32" else None


def is_azure_pipelines(environ: Mapping[str, str]) -> bool:
    """Return whether this is a job of Azure Pipelines, whose agent reads logging commands."""
    return environ.get("TF_BUILD") == "True"


def find_job(environ: Mapping[str, str]) -> str | None:
    """Return the lines ``NAME=value`` that tell this job from others; None outside of a known CI system."""
    names = _choose_names(environ)
    known = {name: value for name in names if (value := environ.get(name, "")) and "\n" not in value}
    if not known.get("RUNNER_TRACKING_ID", _TRACKING_ID).startswith(_TRACKING_ID):
        del known["RUNNER_TRACKING_ID"]
    return "\n".join(f"{name}={value}" for name, value in known.items()) or None


def is_same_job(one: str | None, other: str | None) -> bool:
    """Return whether two records of jobs are of one job: both tell the same run of it, and contradict nowhere."""
    if one is None or other is None:
        return False
    this, that = _parse(one), _parse(other)
    common = this.keys() & that.keys()
    return bool(common) and all(this[name] == that[name] for name in common)


def is_own_job(recorded: str | None, own: str | None) -> bool:
    """Return whether what a job recorded in our scope is ours: without a job of our own, the scope says so alone."""
    return own is None or is_same_job(recorded, own)


def describe_job(job: str | None) -> str:
    """Return a job for people."""
    if job is None:
        return "a process outside of CI"
    known = _parse(job)
    words = [text.format(known[name]) for name, text in _WORDS.items() if name in known]
    return ", ".join(words) or "another job"


def find_ci_run(environ: Mapping[str, str]) -> str | None:
    """Return the URL of the CI run we are in; None if it is none, or not told."""
    given = environ.get
    if given("GITHUB_RUN_ID"):
        server, repository = given("GITHUB_SERVER_URL"), given("GITHUB_REPOSITORY")
        # A run can be run again, under the same number.
        attempt = f"/attempts/{number}" if (number := given("GITHUB_RUN_ATTEMPT")) else ""
        run = f"{server}/{repository}/actions/runs/{given('GITHUB_RUN_ID')}{attempt}"
        return run if server and repository else None
    if given("BUILD_BUILDID"):
        collection, project = given("SYSTEM_TEAMFOUNDATIONCOLLECTIONURI", ""), given("SYSTEM_TEAMPROJECT", "")
        return f"{collection}{project}/_build/results?buildId={given('BUILD_BUILDID')}"
    return given("CI_JOB_URL") or given("BUILD_URL")


def _choose_names(environ: Mapping[str, str]) -> tuple[str, ...]:
    if environ.get("GITHUB_RUN_ID"):
        return _GITHUB
    if is_azure_pipelines(environ):
        return _AZURE_PIPELINES
    if environ.get("CI_JOB_ID"):
        return _GITLAB
    if environ.get("BUILD_TAG", "").startswith(_TAG):
        return _JENKINS
    return ()


def _parse(job: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in job.split("\n") if "=" in line)
