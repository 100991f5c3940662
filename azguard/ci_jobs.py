"""The CI job that we are in, as its environment tells: GitHub Actions, Azure Pipelines, GitLab or Jenkins.

Jobs can share a scope, a machine and a cache. What tells one job from another is noted in the records of what it holds.
An attempt to run a job again is another job. Outside of these systems the scope alone says whose a record is.

Not guaranteed: two jobs whose environments are the same count as one. GitHub does not tell the index in a matrix: there
the tracking id of the runner, or the runner's name, tells the jobs apart.

Source: https://docs.github.com/actions/reference/variables-reference,
https://learn.microsoft.com/azure/devops/pipelines/build/variables, https://docs.gitlab.com/ci/variables/
and https://www.jenkins.io/doc/book/pipeline/jenkinsfile/
"""

from collections.abc import Mapping

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


def is_same(one: str | None, other: str | None) -> bool:
    """Return whether two records of jobs are of one job: both tell the same run of it, and contradict nowhere."""
    if one is None or other is None:
        return False
    this, that = _parse(one), _parse(other)
    common = this.keys() & that.keys()
    return bool(common) and all(this[name] == that[name] for name in common)


def is_own(recorded: str | None, own: str | None) -> bool:
    """Return whether what a job recorded in our scope is ours: without a job of our own, the scope says so alone."""
    return own is None or is_same(recorded, own)


def describe(job: str | None) -> str:
    """Return a job for people."""
    if job is None:
        return "a process outside of CI"
    known = _parse(job)
    words = [text.format(known[name]) for name, text in _WORDS.items() if name in known]
    return ", ".join(words) or "another job"


def find_run(environ: Mapping[str, str]) -> str | None:
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
