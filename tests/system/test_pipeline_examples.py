"""The action for GitHub and the template for Azure Pipelines, run as a runner and an agent run them."""

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from azguard.emulators import azurite_install
from tests.support.cli_world import CliWorld, Ran
from tests.support.page_shell import on_path
from tests.support.places import REPOSITORY
from tests.system.test_examples import EXAMPLES

ACTION = EXAMPLES / "github-action"
TEMPLATE = EXAMPLES / "azure-pipelines-lock.yml"
RUN = "https://github.com/contoso/shop/actions/runs/"
# What of the tests' own runner must not be taken for the simulated one's.
_FILES = ("GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_STATE", "GITHUB_STEP_SUMMARY", "GITHUB_PATH")


@cache
def _node() -> str:
    """Return the Node.js of this machine; without one, that of the emulator extra."""
    return azurite_install.find_node(os.environ).program


@dataclass
class Job:
    """A job on a runner: its files, and what its steps left in them."""

    folder: Path
    environ: dict[str, str]
    state: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)

    @classmethod
    def begin(cls, cli: CliWorld, number: str) -> "Job":
        """Return a job of a workflow's run."""
        folder = cli.root / f"job-{number}"
        folder.mkdir()
        github = {
            "GITHUB_ACTIONS": "true", "GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "contoso/shop",
            "GITHUB_RUN_ID": number, "RUNNER_TEMP": str(folder), "RUNNER_TRACKING_ID": "github_1",
            **{name: str(folder / name) for name in _FILES},
        }  # fmt: skip
        for name in _FILES:
            (folder / name).touch()
        return cls(folder, {**on_path(cli.root / ".bin", cli.environ(f"run-{number}")), **github})

    def main(self, **given: str) -> Ran:
        """Run the action's step; ``on_busy`` is the input on-busy."""
        inputs = {f"INPUT_{name.upper().replace('_', '-')}": value for name, value in given.items()}
        done = self.run(_node(), str(ACTION / "main.js"), env=inputs)
        self.state = self._read("GITHUB_STATE")
        self.outputs = self._read("GITHUB_OUTPUT")
        self.environ.update(self._read("GITHUB_ENV"))
        return done

    def post(self) -> Ran:
        """Run what the action does at the end of the job."""
        return self.run(_node(), str(ACTION / "post.js"), env={f"STATE_{key}": it for key, it in self.state.items()})

    def run(self, *words: str, env: dict[str, str] | None = None) -> Ran:
        """Run a program as a step."""
        done = subprocess.run(
            words, cwd=self.folder, env={**self.environ, **(env or {})}, stdin=subprocess.DEVNULL,
            capture_output=True, timeout=60,
        )  # fmt: skip
        return Ran(done.returncode, done.stdout, done.stderr.decode())

    @property
    def summary(self) -> str:
        """Return the job's summary."""
        return (self.folder / "GITHUB_STEP_SUMMARY").read_text(encoding="utf-8")

    def _read(self, name: str) -> dict[str, str]:
        """Read a file as the runner does: ``name=value``, or ``name<<END``, lines, END."""
        text, found = (self.folder / name).read_text(encoding="utf-8"), {}
        for key, _, several, one in re.findall(r"([\w-]+)(?:<<(.+)\n([\s\S]*?)\n\2\n|=(.*)\n)", text):
            found[key] = several or one
        return found


@pytest.fixture
def job(cli: CliWorld) -> Job:
    """Return a job that has azguard."""
    return Job.begin(cli, "71")


@pytest.fixture
def lock(request: pytest.FixtureRequest) -> str:
    """Return the name of a lock of this test's only."""
    return re.sub(r"[^a-z0-9]+", "-", request.node.name)[-50:].strip("-")


def state(cli: CliWorld, lock: str) -> str:
    return str(cli.call("lock", "show", lock).json["state"])


def hold(cli: CliWorld, lock: str, *words: str) -> None:
    held = cli.call("lock", "hold", lock, "--sticky", "--reason", *(words or ("incident 4711",)),
                    scope="other", env={"GITHUB_SERVER_URL": "https://github.com",
                                        "GITHUB_REPOSITORY": "contoso/shop", "GITHUB_RUN_ID": "70"})  # fmt: skip
    assert held.code == 0, held.err


def test_the_action_holds_the_lock_for_later_steps_and_releases_it(job: Job, cli: CliWorld, lock: str) -> None:
    taken = job.main(lock=lock, reason="release 5", sequence="7")
    assert (taken.code, job.outputs) == (
        0, {"acquired": "true", "fence": "1", "waited-seconds": job.outputs["waited-seconds"],
            "holder": "", "holder-url": ""},
    )  # fmt: skip
    assert job.run("azguard", "lock", "check").code == 0
    assert cli.call("lock", "show", lock).json["owner"]["reason"] == "release 5"
    assert (job.post().code, state(cli, lock), job.post().code) == (0, "free", 0)
    assert (job.summary.count("held with fence 1"), job.summary.count("released")) == (1, 2)


@pytest.mark.parametrize(
    ("on_busy", "wait", "code", "said"),
    [("fail", "", 75, "::error::"), ("skip", "", 0, "::notice::skipped"), ("wait", "1s", 75, "::error::")],
)
def test_a_lock_of_others_is_told_with_its_run(
    job: Job, cli: CliWorld, lock: str, on_busy: str, wait: str, code: int, said: str
) -> None:
    hold(cli, lock)
    refused = job.main(lock=lock, on_busy=on_busy, wait=wait)
    assert (refused.code, job.outputs["acquired"], job.outputs["holder-url"]) == (code, "false", f"{RUN}70")
    assert said in refused.out
    assert "incident 4711" in refused.out.split(said)[1]
    assert (job.state, "incident 4711" in job.summary) == ({}, True)
    assert (job.post().code, state(cli, lock)) == (0, "held")


def test_a_later_step_and_the_end_of_the_job_fail_after_the_lock_was_broken(job: Job, cli: CliWorld, lock: str) -> None:
    assert job.main(lock=lock).code == 0
    assert cli.call("lock", "break", lock, "--yes").code == 0
    assert job.run("azguard", "lock", "check").code == 77
    ended = job.post()
    assert (ended.code, f"::error::the lock {lock} was lost" in ended.out, "**lost**" in job.summary) == (1, True, True)


def test_a_step_that_finds_the_lock_held_by_its_own_job_leaves_it_to_the_first(
    job: Job, cli: CliWorld, lock: str
) -> None:
    assert job.main(lock=lock).code == 0
    first = dict(job.state)
    (job.folder / "GITHUB_STATE").write_text("")
    assert (job.main(lock=lock).code, job.outputs["acquired"], job.state) == (0, "true", {})
    assert (job.post().code, state(cli, lock)) == (0, "held")
    job.state = first
    assert (job.post().code, state(cli, lock)) == (0, "free")


def test_a_command_runs_under_the_lock_and_its_status_is_the_steps(job: Job, cli: CliWorld, lock: str) -> None:
    lines = f'azguard lock show {lock} --query state -o tsv\necho "::notice::it\'s $AZGUARD_FENCE"\nfalse\necho never'
    ran = job.main(lock=lock, run=lines)
    assert (ran.code, job.outputs["acquired"], job.outputs["fence"], job.state) == (1, "true", "1", {})
    # The job's own commands to the runner count again once the lock is held.
    token = re.findall(r"::stop-commands::(.*)", ran.out)[0]
    before, after = ran.out.split(f"\n::{token}::\n")[:2]
    assert ("::notice::it's 1" in before, "::notice::it's 1" in after, "never" in after) == (False, True, False)
    assert (state(cli, lock), job.post().code) == ("free", 0)


def test_a_command_does_not_run_under_the_lock_of_others(job: Job, cli: CliWorld, lock: str) -> None:
    hold(cli, lock)
    refused = job.main(lock=lock, run="touch ran", on_busy="fail")
    assert (refused.code, job.outputs["acquired"], (job.folder / "ran").exists()) == (75, "false", False)


def test_a_status_of_75_of_the_command_itself_is_not_taken_for_a_lock_of_others(job: Job, lock: str) -> None:
    assert (job.main(lock=lock, run="exit 75", on_busy="skip").code, job.outputs["acquired"]) == (75, "true")


def test_a_step_that_is_cancelled_while_it_waits_leaves_the_queue(job: Job, cli: CliWorld, lock: str) -> None:
    hold(cli, lock)
    environ = on_path(cli.root / ".signalled", job.environ, started="lock")
    with subprocess.Popen(
        [_node(), str(ACTION / "main.js")], cwd=job.folder, env={**environ, "INPUT_LOCK": lock},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
    ) as step:  # fmt: skip
        assert step.stdout is not None
        assert any(b"waiting for" in line for line in step.stdout)
        step.send_signal(signal.SIGINT)
        step.stdout.read()
    assert (step.returncode, cli.call("lock", "show", lock).json["waiters"]) == (130, [])
    assert (job.post().code, state(cli, lock)) == (0, "held")


def test_an_older_run_is_superseded(job: Job, cli: CliWorld, lock: str) -> None:
    assert cli.call("lock", "run", lock, "--sequence", "9", "--", "true").code == 0
    refused = job.main(lock=lock, sequence="8", on_busy="skip")
    assert (refused.code, job.outputs["acquired"], "::error::superseded" in refused.out) == (42, "false", True)
    # People read it: neither JSON, nor a holder where there is none.
    assert "\nerror: run 8 is superseded" in refused.out
    assert ("held by" in job.summary, "exited with 42" in job.summary) == (False, True)


def test_no_input_is_read_by_a_shell_or_as_an_option(job: Job, cli: CliWorld, lock: str) -> None:
    reason = "--sticky '\"$(touch shell)`touch shell`%0A::x::"
    assert job.main(lock=lock, reason=f"{reason}\nAZGUARD_LOCK=x").code == 2
    assert job.main(lock=lock, reason=reason).code == 0
    assert (job.folder / "shell").exists() is False
    assert cli.call("lock", "show", lock).json["owner"]["reason"] == reason
    assert job.post().code == 0
    for given in ({"lock": "--sticky"}, {"lock": lock, "on_busy": "x"}, {"lock": lock, "account": "a;b"}, {"lock": ""}):
        refused = job.main(**given)
        assert (refused.code, refused.out.count("::error::"), refused.err) == (1, 1, ""), given


def test_words_of_a_holder_are_no_commands_to_the_runner(job: Job, cli: CliWorld, lock: str) -> None:
    hold(cli, lock, "::set-env name=A::<b>|**x** ##[add-path]/tmp")
    refused = job.main(lock=lock, on_busy="fail")
    token = re.findall(r"::stop-commands::(.*)", refused.out)[0]
    after = refused.out.split(f"\n::{token}::\n")[1].strip()
    assert (after.count("\n"), after.startswith("::error::"), "<b>" in job.summary, "**" in job.summary) == (
        0, True, False, False
    )  # fmt: skip


def test_parts_of_a_secret_are_masked_before_all_else(job: Job, lock: str) -> None:
    key = re.findall("AccountKey=([^;]+)", job.environ["AZURE_STORAGE_CONNECTION_STRING"])[0]
    refused = job.main(lock="")
    assert refused.out.index(f"::add-mask::{key}\n") < refused.out.index("::error::")
    assert lock not in refused.out


def test_azguard_is_installed_from_the_checkout_of_the_action_if_it_is_missing(job: Job, lock: str) -> None:
    """The Python here only notes what it is told, and leaves the tests' azguard where pip would."""
    tools = job.folder / "tools"
    tools.mkdir()
    real = next(Path(each) / "azguard" for each in job.environ["PATH"].split(":") if each.endswith(".bin"))
    python = tools / "python3"
    python.write_text(
        f'#!/bin/sh\necho "$@" >> {tools}/told\n'
        f'case "$2" in venv) mkdir -p "$3/bin"; cp "$0" "$3/bin/python";; pip) cp {real} "${{0%/*}}/azguard";; esac\n'
    )
    python.chmod(0o755)
    (tools / "node").symlink_to(os.path.realpath(_node()))
    job.environ["PATH"] = f"{tools}:/usr/bin:/bin"
    job.environ["GITHUB_ACTION_REPOSITORY"] = "contoso/azguard"
    assert job.main(lock=lock).code == 0
    venv = job.folder / "azguard-venv" / "bin"
    assert (tools / "told").read_text().splitlines()[-1].endswith(f" {EXAMPLES.parent}")
    assert (job.folder / "GITHUB_PATH").read_text() == f"{venv}\n"
    assert job.post().code == 0
    (venv / "azguard").unlink()
    wheel = job.folder / "azguard-1.2-py3-none-any.whl"
    wheel.touch()
    job.environ["GITHUB_WORKSPACE"] = str(job.folder)
    for version, from_ in (
        ("v1.2", "git+https://github.com/contoso/azguard@v1.2"),
        (wheel.name, str(wheel)),
        ("azguard==1.2", "azguard==1.2"),
    ):
        assert job.main(lock=lock, version=version).code == 0
        assert (tools / "told").read_text().splitlines()[-1].endswith(f" {from_}")
        assert job.post().code == 0
        (venv / "azguard").unlink()
    for version in ("--editable .", "no.whl", "azguard==1.2 --pre"):
        assert job.main(lock=lock, version=version).code == 1


def test_the_action_declares_what_it_reads_and_leaves() -> None:
    declared = yaml.safe_load((ACTION / "action.yml").read_text(encoding="utf-8"))
    source = (ACTION / "main.js").read_text(encoding="utf-8")
    read = re.findall(r"'([a-z-]+)'", re.findall(r"names = \[(.*?)\]", source)[0])
    assert (sorted(declared["inputs"]), set(declared["outputs"]), declared["runs"]["post-if"]) == (
        sorted(read), {"acquired", "fence", "waited-seconds", "holder", "holder-url"}, "always()"
    )  # fmt: skip
    assert all((ACTION / declared["runs"][each]).exists() for each in ("main", "post"))


@dataclass
class Agent:
    """An agent of Azure Pipelines that runs the steps of the template."""

    folder: Path
    environ: dict[str, str]
    parameters: dict[str, str]
    statuses: dict[str, int] = field(default_factory=dict)

    def run(self, between: str = "true") -> dict[str, int]:
        """Run the steps, with ``between`` as the caller's own, and return the status of each that ran."""
        for step in yaml.safe_load(TEMPLATE.read_text(encoding="utf-8"))["steps"]:
            if (name := step.get("displayName")) is None:
                name, line, condition = "own", between, "succeeded()"
            else:
                line, condition = step.get("bash") or step["inputs"]["inlineScript"], step.get("condition", "")
            if condition == "always()" or (not any(self.statuses.values()) and self._allows(condition)):
                self._bash(name, line, step.get("env", {}))
        return self.statuses

    def _allows(self, condition: str) -> bool:
        return "AZGUARD_ACQUIRED" not in condition or self.environ["AZGUARD_ACQUIRED"] == "true"

    def _bash(self, name: str, line: str, env: dict[str, Any]) -> None:
        given = {key: re.sub(r"\$\{\{ parameters\.(\w+) \}\}", lambda it: self.parameters[it[1]], value)
                 for key, value in env.items()}  # fmt: skip
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-c", line], cwd=self.folder, env={**self.environ, **given},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
        )  # fmt: skip
        self.statuses[name] = done.returncode
        self.environ.update(re.findall(r"##vso\[task\.setvariable variable=(\w+)\](.*)", done.stdout))


@pytest.fixture
def agent(cli: CliWorld, lock: str) -> Agent:
    """Return an agent that has azguard, with the template's defaults."""
    declared = yaml.safe_load(TEMPLATE.read_text(encoding="utf-8"))["parameters"]
    parameters = {each["name"]: each.get("default", "") for each in declared} | {"lock": lock}
    environ = {**on_path(cli.root / ".bin", cli.environ("run-1")), "TF_BUILD": "True"}
    return Agent(cli.root, {**environ, "AGENT_TEMPDIRECTORY": str(cli.root)}, parameters)


HELD, CHECKED, RELEASED = "Hold the lock", "Check that the lock was held to the end", "Release the lock"


def test_the_template_holds_the_lock_around_the_steps(agent: Agent, cli: CliWorld, lock: str) -> None:
    agent.parameters |= {"reason": "it's \"$(touch shell)", "sequence": "4"}
    ran = agent.run(f"azguard lock show {lock} > seen.json")
    assert ran == dict.fromkeys(("Install azguard", HELD, "own", CHECKED, RELEASED), 0)
    assert '"it\'s \\"$(touch shell)"' in (cli.root / "seen.json").read_text()
    assert (state(cli, lock), (cli.root / "shell").exists()) == ("free", False)


def test_the_template_fails_after_the_lock_was_broken(agent: Agent, lock: str) -> None:
    ran = agent.run(f"azguard lock break {lock} --yes")
    assert (ran[CHECKED], ran[RELEASED]) == (77, 77)


@pytest.mark.parametrize(
    ("on_busy", "ran"), [("skip", {HELD: 0, "own": 0, RELEASED: 0}), ("fail", {HELD: 75, RELEASED: 0})]
)
def test_the_template_leaves_the_lock_of_others(
    agent: Agent, cli: CliWorld, lock: str, on_busy: str, ran: dict[str, int]
) -> None:
    # The agent reads commands in the middle of a line too.
    hold(cli, lock, "##vso[task.setvariable variable=EVIL]x")
    agent.parameters["onBusy"] = on_busy
    assert (agent.run(), agent.environ["AZGUARD_ACQUIRED"]) == ({"Install azguard": 0, **ran}, "false")
    assert ("EVIL" in agent.environ, state(cli, lock)) == (False, "held")


def read_workflows(page: Path) -> list[str]:
    """Return the whole workflows that a page shows."""
    blocks = re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    return [block for block in blocks if block.startswith("name:")]


def read_template() -> str:
    """Return the template as the service expands it: the schema knows no expressions in the place of a step."""
    found = yaml.safe_load(TEMPLATE.read_text(encoding="utf-8"))
    found["steps"] = [
        {"script": "true"} if next(iter(step)).startswith("${{ each") else step for step in found["steps"]
    ]
    return json.dumps(found)


def test_workflows_action_and_templates_follow_the_published_schemas(tmp_path: Path) -> None:
    texts = {
        "github-actions": [(ACTION / "action.yml").read_text(encoding="utf-8")],
        "github-workflows": [
            (EXAMPLES / "github-deploy.yml").read_text(encoding="utf-8"),
            *read_workflows(REPOSITORY / "docs" / "ci.md"),
        ],
        "azure-pipelines": [read_template(), (EXAMPLES / "azure-pipelines-deploy.yml").read_text(encoding="utf-8")],
    }
    said = []
    for schema, found in texts.items():
        files = [tmp_path / f"{schema}-{number}.yml" for number in range(len(found))]
        for file, text in zip(files, found, strict=True):
            file.write_text(text, encoding="utf-8")
        words = ["--regex-variant", "python", "--builtin-schema", f"vendor.{schema}", *map(str, files)]
        done = subprocess.run([sys.executable, "-m", "check_jsonschema", *words], capture_output=True, text=True)
        said.append((schema, done.returncode, done.stdout + done.stderr if done.returncode else ""))
    assert said == [(schema, 0, "") for schema in texts]
    assert sum(map(len, texts.values())) == 5
