"""Which CI job this is, as its environment tells."""

from azguard import ci_jobs
from tests.support.cases import cases

GITHUB = {
    "GITHUB_SERVER_URL": "https://github.com",
    "GITHUB_REPOSITORY": "contoso/shop",
    "GITHUB_RUN_ID": "71",
    "GITHUB_RUN_ATTEMPT": "1",
    "GITHUB_JOB": "deploy",
    "RUNNER_NAME": "runner 3",
    "RUNNER_TRACKING_ID": "github_a1",
}
# The id of a job without a name is the same everywhere.
PIPELINES = {
    "TF_BUILD": "True",
    "SYSTEM_COLLECTIONURI": "https://dev.azure.com/contoso/",
    "BUILD_BUILDID": "9",
    "SYSTEM_JOBID": "12f1170f-54f2-53f3-20dd-22fc7dff55f9",
    "SYSTEM_JOBATTEMPT": "1",
}
GITLAB = {"CI_JOB_ID": "4711", "CI_SERVER_URL": "https://gitlab.com"}
JENKINS = {"BUILD_TAG": "jenkins-shop-12", "JENKINS_URL": "https://ci.example/"}


def is_own(recorded: dict[str, str], own: dict[str, str]) -> bool:
    return ci_jobs.is_own(ci_jobs.find_job(recorded), ci_jobs.find_job(own))


@cases(
    ("one", "other"),
    [
        (GITHUB, GITHUB),
        # A step that keeps what it leaves from being ended by the runner; a container in the job.
        (GITHUB, {**GITHUB, "RUNNER_TRACKING_ID": "0"}),
        (GITHUB, {**GITHUB, "RUNNER_TRACKING_ID": ""}),
        (GITHUB, {**GITHUB, "GITHUB_JOB": "deploy", "RUNNER_TRACKING_ID": "", "RUNNER_NAME": ""}),
        (PIPELINES, PIPELINES),
        (GITLAB, GITLAB),
        (JENKINS, JENKINS),
        # A shell outside of CI names a scope, and means what is held with it.
        (GITHUB, {}),
        ({}, {}),
        ({}, {"BUILD_TAG": "v1.4"}),
    ],
)
def test_what_the_same_job_took_is_its_own(one: dict[str, str], other: dict[str, str]) -> None:
    assert is_own(one, other)


@cases(
    ("one", "other"),
    [
        *(
            (GITHUB, {**GITHUB, name: "another"})
            for name in ("GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT", "GITHUB_JOB", "RUNNER_NAME")
        ),
        (GITHUB, {**GITHUB, "GITHUB_REPOSITORY": "contoso/other"}),
        # The legs of a matrix have one name, on one machine.
        (GITHUB, {**GITHUB, "RUNNER_TRACKING_ID": "github_b2"}),
        *(
            (PIPELINES, {**PIPELINES, name: "another"})
            for name in ("BUILD_BUILDID", "SYSTEM_JOBID", "SYSTEM_JOBATTEMPT")
        ),
        (GITLAB, {**GITLAB, "CI_JOB_ID": "4712"}),
        (JENKINS, {**JENKINS, "BUILD_TAG": "jenkins-shop-13"}),
        (GITLAB, GITHUB),
        # An operator's freeze with the scope of the runner.
        ({}, GITHUB),
    ],
)
def test_what_another_job_took_is_not_its_own(one: dict[str, str], other: dict[str, str]) -> None:
    assert not is_own(one, other)


@cases(
    ("environ", "words"),
    [
        (GITHUB, "job deploy, run 71, attempt 1, on runner 3"),
        (PIPELINES, "build 9, job 12f1170f-54f2-53f3-20dd-22fc7dff55f9, attempt 1"),
        (GITLAB, "job 4711"),
        (JENKINS, "build jenkins-shop-12"),
        ({}, "a process outside of CI"),
        ({"TF_BUILD": "True", "SYSTEM_COLLECTIONURI": "https://dev.azure.com/contoso/"}, "another job"),
    ],
)
def test_a_job_is_told_to_people(environ: dict[str, str], words: str) -> None:
    assert ci_jobs.describe(ci_jobs.find_job(environ)) == words


@cases(
    ("environ", "url"),
    [
        (GITHUB, "https://github.com/contoso/shop/actions/runs/71/attempts/1"),
        ({"GITHUB_RUN_ID": "71"}, None),
        ({}, None),
    ],
)
def test_a_run_is_named_by_a_url_where_all_of_it_is_told(environ: dict[str, str], url: str | None) -> None:
    assert ci_jobs.find_run(environ) == url
