"""The scope: whose reads guard whose writes."""

from pathlib import Path

import pytest

from azguard.cache import scope
from azguard.cache.scope import find_scope
from azguard.errors import UsageError
from tests.support.cases import cases


def _proc(folder: Path, leader: int, stat: str) -> Path:
    (folder / "self").mkdir(parents=True)
    (folder / "sys/kernel/random").mkdir(parents=True)
    (folder / "sys/kernel/random/boot_id").write_text("1f3a9c02-aaaa-bbbb-cccc-000000000000\n")
    (folder / str(leader)).mkdir()
    (folder / str(leader) / "stat").write_text(stat)
    return folder


def test_the_option_wins_over_the_variable() -> None:
    assert find_scope("mine", {"AZGUARD_SCOPE": "other"}) == "mine"


def test_the_variable_wins_over_the_session() -> None:
    assert find_scope(None, {"AZGUARD_SCOPE": "run 4711"}) == "run 4711"


@cases(("option", "environ"), ("", {}), ("  ", {}), (None, {"AZGUARD_SCOPE": ""}), ("", {"AZGUARD_SCOPE": "x"}))
def test_an_empty_scope_is_refused(option: str | None, environ: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="is empty"):
        find_scope(option, environ)


@cases("text", "a\nb", "a\0b", "\udcff")
def test_a_scope_that_cannot_be_shown_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="cannot be shown"):
        find_scope(text, {})


def test_a_session_is_named_by_its_leader_start_and_boot(tmp_path: Path) -> None:
    fields = "S 1 4711 4711 34816 4711 4194304 0 0 0 0 0 0 0 0 20 0 1 0 98765 0 0"
    proc = _proc(tmp_path, 4711, f"4711 (a ) strange (name) {fields}\n")
    assert find_scope(None, {}, session=lambda: 4711, proc=proc) == "session-4711-98765-1f3a9c02"


def test_a_session_whose_leader_has_exited_has_a_name_of_its_own(tmp_path: Path) -> None:
    proc = _proc(tmp_path, 1, "")
    assert find_scope(None, {}, session=lambda: 4711, proc=proc) == "session-4711-leaderless-1f3a9c02"


@cases("number", None, 0)
def test_without_a_session_to_tell_the_scope_is_default(number: int | None) -> None:
    assert find_scope(None, {}, session=lambda: number) == "default"


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
    return scope.is_own_job(scope.find_job(recorded), scope.find_job(own))


@cases(
    ("one", "other"),
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
)
def test_what_the_same_job_took_is_its_own(one: dict[str, str], other: dict[str, str]) -> None:
    assert is_own(one, other)


@cases(
    ("one", "other"),
    *(
        (GITHUB, {**GITHUB, name: "another"})
        for name in ("GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT", "GITHUB_JOB", "RUNNER_NAME")
    ),
    (GITHUB, {**GITHUB, "GITHUB_REPOSITORY": "contoso/other"}),
    # The legs of a matrix have one name, on one machine.
    (GITHUB, {**GITHUB, "RUNNER_TRACKING_ID": "github_b2"}),
    *((PIPELINES, {**PIPELINES, name: "another"}) for name in ("BUILD_BUILDID", "SYSTEM_JOBID", "SYSTEM_JOBATTEMPT")),
    (GITLAB, {**GITLAB, "CI_JOB_ID": "4712"}),
    (JENKINS, {**JENKINS, "BUILD_TAG": "jenkins-shop-13"}),
    (GITLAB, GITHUB),
    # An operator's freeze with the scope of the runner.
    ({}, GITHUB),
)
def test_what_another_job_took_is_not_its_own(one: dict[str, str], other: dict[str, str]) -> None:
    assert not is_own(one, other)


@cases(
    ("environ", "words"),
    (GITHUB, "job deploy, run 71, attempt 1, on runner 3"),
    (PIPELINES, "build 9, job 12f1170f-54f2-53f3-20dd-22fc7dff55f9, attempt 1"),
    (GITLAB, "job 4711"),
    (JENKINS, "build jenkins-shop-12"),
    ({}, "a process outside of CI"),
    ({"TF_BUILD": "True", "SYSTEM_COLLECTIONURI": "https://dev.azure.com/contoso/"}, "another job"),
)
def test_a_job_is_told_to_people(environ: dict[str, str], words: str) -> None:
    assert scope.describe_job(scope.find_job(environ)) == words


@cases(
    ("environ", "url"),
    (GITHUB, "https://github.com/contoso/shop/actions/runs/71/attempts/1"),
    ({"GITHUB_RUN_ID": "71"}, None),
    ({}, None),
)
def test_a_run_is_named_by_a_url_where_all_of_it_is_told(environ: dict[str, str], url: str | None) -> None:
    assert scope.find_ci_run(environ) == url
