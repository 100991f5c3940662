"""The workflow on the page about pipelines, as a runner runs it: steps one after the other, with files between them."""

import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.cli_world import CliWorld
from tests.support.page_shell import on_path
from tests.support.places import REPOSITORY

PAGE = (REPOSITORY / "docs" / "ci.md").read_text(encoding="utf-8")
WORKFLOW = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)[0]
LOCK = "blob:locks/deploy-prod"


@dataclass
class Runner:
    """A machine that runs the steps of a job."""

    folder: Path
    environ: dict[str, str]
    #: What the steps printed, and the status of each by its name.
    printed: str = ""
    statuses: dict[str, int] = field(default_factory=dict)

    def run(self, step: Mapping[str, Any]) -> None:
        """Run one step as the runner does, unless one before has failed."""
        if any(self.statuses.values()) and step.get("if") != "always()":
            return
        done = subprocess.run(
            ["bash", "-e", "-c", step["run"].replace("${{ github.workflow }}", "deploy")],
            cwd=self.folder, env=self.environ, capture_output=True, text=True, timeout=100,
        )  # fmt: skip
        self.printed += done.stdout + done.stderr
        self.statuses[step["name"]] = done.returncode
        lines = Path(self.environ["GITHUB_ENV"]).read_text().splitlines()
        self.environ.update({name: value for name, _, value in (line.partition("=") for line in lines)})


@pytest.fixture
def runner(cli: CliWorld) -> Runner:
    """Return a runner that has azguard."""
    file = cli.file("github_env")
    cli.call("lease", "break", LOCK, "--yes", "--lease-break-period", "0")
    github = {"GITHUB_ENV": str(file), "RUNNER_TRACKING_ID": "github_1"}
    return Runner(cli.root, {**on_path(cli.root / ".bin", cli.environ("run-1")), **github})


def deploy(runner: Runner, after: Callable[[str], None]) -> Runner:
    """Run both jobs of the page; ``after`` is told each step that has ended."""
    for job in yaml.safe_load(WORKFLOW)["jobs"].values():
        for step in job["steps"]:
            runner.run(step)
            after(step["name"])
    return runner


def test_a_pipeline_runs_to_its_end_under_its_lock(runner: Runner, cli: CliWorld) -> None:
    ran = deploy(runner, lambda name: None)
    assert (ran.statuses, "switched" in ran.printed, cli.call("lock", "show", LOCK).json["state"]) == (
        dict.fromkeys(("Build", "Hold the lock", "Migrate", "Switch", "Release the lock"), 0), True, "free"
    )  # fmt: skip


@pytest.mark.parametrize(("broken_after", "ran_not"), [("Hold the lock", "migrated"), ("Migrate", "switched")])
def test_a_later_step_does_not_run_after_the_lock_was_broken(
    runner: Runner, cli: CliWorld, broken_after: str, ran_not: str
) -> None:
    def break_lock(name: str) -> None:
        if name == broken_after:
            assert cli.call("lock", "break", LOCK, "--yes").code == 0

    ran = deploy(runner, break_lock)
    failed = {name: status for name, status in ran.statuses.items() if status}
    step = "Migrate" if broken_after == "Hold the lock" else "Switch"
    assert (failed, ran_not in ran.printed) == ({step: 77, "Release the lock": 77}, False)


def test_a_frozen_environment_refuses_a_pipeline_with_its_reason(runner: Runner, cli: CliWorld) -> None:
    assert cli.call("lock", "hold", LOCK, "--sticky", "--reason", "incident 4711").code == 0
    steps = yaml.safe_load(WORKFLOW)["jobs"]["deploy"]["steps"]
    steps[0]["run"] = steps[0]["run"].replace("--wait 20m", "--no-wait")
    for step in steps:
        runner.run(step)
    cli.call("lock", "release", LOCK)
    assert (runner.statuses["Hold the lock"], "incident 4711" in runner.printed, "migrated" in runner.printed) == (
        75, True, False
    )  # fmt: skip
