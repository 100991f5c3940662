"""What GitHub and pre-commit read of the repository is well-formed, and runs what .ci/run runs."""

import re

import yaml
from check_jsonschema.cli import main

from tests.support.cases import cases
from tests.support.places import REPOSITORY

GITHUB = REPOSITORY / ".github"


@cases(
    ("schema", "files"),
    ("dependabot", "dependabot.yml"),
    ("github-issue-config", "ISSUE_TEMPLATE/config.yml"),
    ("github-issue-forms", "ISSUE_TEMPLATE/[bw]*.yml"),
    ("github-workflows", "workflows/*.yml"),
)
def test_a_file_is_what_github_reads(schema: str, files: str) -> None:
    names = [str(path) for path in GITHUB.glob(files)]
    assert names
    assert main.main(["--builtin-schema", f"vendor.{schema}", *names], standalone_mode=False) in (None, 0)


def test_pre_commit_runs_what_ci_checks() -> None:
    hooks = yaml.safe_load((REPOSITORY / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"][0]["hooks"]
    checked = re.findall(r"^    beside '(.*)'$", (REPOSITORY / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE)
    assert [hook["entry"] for hook in hooks] == checked
