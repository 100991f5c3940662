"""The examples of locks and leases do what they say."""

import base64
import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from azure.storage.blob import BlobClient, BlobLeaseClient

from tests.support.cli_world import CliWorld, Ran
from tests.support.emulator_world import until
from tests.support.page_shell import on_path
from tests.system.test_examples import EXAMPLES, content, example

DEPLOY = "blob:locks/deploy-prod"
OLD = "2020-01-01T00:00:00Z"
INFO = {"ID": "", "Operation": "OperationTypeApply", "Info": "", "Who": "ci@runner-7", "Version": "1.9.8", "Path": "x"}


@pytest.fixture
def locks(cli: CliWorld) -> Iterator[CliWorld]:
    """Yield a world whose locks no other test uses; the names in the examples are fixed."""
    _delete_locks(cli)
    yield cli
    _delete_locks(cli)


def _delete_locks(cli: CliWorld) -> None:
    # Another test may have left one with a lease of a minute.
    assert cli.call("container", "delete", "locks", "--last-writer-wins", "--with-contents").code in (0, 44)


def step(name: str) -> str:
    """Return the line that the deploying step of a pipeline runs."""
    found = yaml.safe_load((EXAMPLES / name).read_text(encoding="utf-8"))
    steps: list[dict[str, Any]] = found["jobs"]["deploy"]["steps"] if "jobs" in found else found["steps"]
    (deploy,) = (each for each in steps if "Deploy" in (each.get("name"), each.get("displayName")))
    return str(deploy.get("run") or deploy["inputs"]["inlineScript"])


def run_step(world: CliWorld, line: str, **env: str) -> Ran:
    environ = on_path(world.root / "bin", world.environ(env=env))
    done = subprocess.run(["bash", "-e", "-c", line], cwd=world.root, env=environ, capture_output=True, timeout=60)
    return Ran(done.returncode, done.stdout, done.stderr.decode())


def script(world: CliWorld, name: str, *lines: str) -> Path:
    path = world.file(name, "\n".join(("#!/bin/sh", *lines, "")))
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("name", "env", "run"),
    [
        (
            "github-deploy.yml",
            {"GITHUB_RUN_ID": "71", "GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "contoso/shop"},
            "https://github.com/contoso/shop/actions/runs/71",
        ),
        (
            "azure-pipelines-deploy.yml",
            {
                "BUILD_BUILDID": "72",
                "SYSTEM_TEAMFOUNDATIONCOLLECTIONURI": "https://dev.azure.com/contoso/",
                "SYSTEM_TEAMPROJECT": "shop",
            },
            "https://dev.azure.com/contoso/shop/_build/results?buildId=72",
        ),
    ],
)
def test_a_pipeline_deploys_under_the_lock_and_says_so(
    locks: CliWorld, name: str, env: dict[str, str], run: str
) -> None:
    script(locks, "deploy.sh", "azguard lock show $AZGUARD_LOCK > seen.json", "exit 5")
    assert run_step(locks, step(name), **env).code == 5
    seen = json.loads((locks.root / "seen.json").read_text())
    assert (seen["held"], seen["owner"]["run"], seen["owner"]["command"]) == (True, run, "deploy.sh")
    assert locks.call("lock", "show", DEPLOY).json["held"] is False


def test_a_pipeline_that_finds_the_lock_held_says_by_whom(locks: CliWorld) -> None:
    script(locks, "deploy.sh", "touch deployed")
    nested = step("github-deploy.yml").replace("--wait 20m", "--no-wait")
    held = ("lock", "run", DEPLOY, "--", "env", "-u", "AZGUARD_LOCK", "bash", "-c", nested)
    environ = on_path(locks.root / "bin", {"PATH": "/usr/bin:/bin"})
    refused = locks.run(*held, env={"PATH": environ["PATH"]})
    assert (refused.code, (locks.root / "deployed").exists()) == (75, False)
    assert "is held by" in refused.err


def test_one_machine_runs_the_job_and_the_others_are_quiet(locks: CliWorld) -> None:
    script(locks, "job", "echo ran", "env -u AZGUARD_LOCK $EXAMPLE nightly $PWD/job")
    environ = {"EXAMPLE": str(EXAMPLES / "one-machine-a-night.sh")}
    ran = example(locks, "one-machine-a-night.sh", "nightly", "./job", **environ)
    assert (ran.code, ran.out, ran.err) == (0, "ran\n", "")
    failing = script(locks, "failing", "exit 9")
    assert example(locks, "one-machine-a-night.sh", "nightly", str(failing)).code == 9


def test_a_migration_that_lost_its_lock_cannot_overwrite_the_next(locks: CliWorld) -> None:
    container = locks.container()
    blob = f"{container}/config.json"
    assert locks.call("blob", "put", blob, stdin=b"1").code == 0
    script(locks, "plain", "cat > /dev/null", "echo second")
    assert example(locks, "migrate-with-fence.sh", blob, "./plain").code == 0
    fence = str(locks.call("lock", "show", "blob:locks/migrate").json["fence"])
    # The first goes on after a pause, with its fence and without its lock: the second has it, and writes.
    second = f"env -u AZGUARD_LOCK {EXAMPLES / 'migrate-with-fence.sh'} {blob} ./plain > /dev/null"
    script(locks, "slow", "cat > /dev/null", second, "echo first")
    environ = {"AZGUARD_LOCK": "blob:locks/migrate", "AZGUARD_FENCE": fence}
    late = example(locks, "migrate-with-fence.sh", blob, "./slow", **environ)
    assert (late.code, content(locks, blob)) == (77, "second\n")
    assert example(locks, "migrate-with-fence.sh", blob, "./plain").code == 0


def test_only_a_stale_lock_of_terraforms_is_broken(locks: CliWorld) -> None:
    """Its time is by the clock of a machine that may be wrong: what counts is when the service saw it write."""
    container = locks.container()
    assert locks.call("blob", "put", f"{container}/state", stdin=b"{}").code == 0
    client = BlobClient.from_connection_string(str(locks.connection_string), container, "state")
    lease = BlobLeaseClient(client)
    lease.acquire(-1)
    info = base64.b64encode(json.dumps({**INFO, "ID": lease.id, "Created": OLD}).encode()).decode()
    client.set_blob_metadata({"terraformlockid": info}, lease=lease)

    ran = example(locks, "break-stale-terraform-lock.sh", f"{container}/state", "2h")
    assert (ran.code, client.get_blob_properties().lease.state) == (42, "leased")
    assert "ci@runner-7" in ran.err
    until(lambda: example(locks, "break-stale-terraform-lock.sh", f"{container}/state", "1s").code == 0)
    assert client.get_blob_properties().lease.state == "broken"


def test_the_shared_environment_is_used_by_three_at_most(locks: CliWorld) -> None:
    again = f"env -u AZGUARD_LOCK {EXAMPLES / 'share-test-environment.sh'} ./run"
    script(locks, "run", "echo in >> log", '[ "$(wc -l < log)" -ge 3 ] || exec ' + again)
    assert example(locks, "share-test-environment.sh", "./run").code == 0
    assert (locks.root / "log").read_text() == "in\nin\nin\n"
    shown = locks.call("lock", "show", "blob:locks/test-environment").json
    assert [each["address"].removeprefix("blob:locks/test-environment") for each in shown] == ["", ".slot2", ".slot3"]


def test_a_leader_that_fails_leads_again_until_it_ends_well(locks: CliWorld) -> None:
    lead = 'echo "$AZGUARD_FENCE" >> terms; test $(wc -l < terms) -eq 3'
    ran = example(locks, "leader.sh", "leader", "sh", "-c", lead, PAUSE="0")
    assert (ran.code, (locks.root / "terms").read_text()) == (0, "1\n2\n3\n")
    assert ran.err.count("the leader ended with status 1\n") == 2


@pytest.mark.parametrize("status", [75, 77])
def test_a_leader_with_a_status_of_azguards_pauses_before_it_leads_again(locks: CliWorld, status: int) -> None:
    lead = f"echo >> terms; [ $(wc -l < terms) -eq 2 ] || exit {status}"
    began = time.monotonic()
    ran = example(locks, "leader.sh", "leader", "sh", "-c", lead, PAUSE="3")
    assert (ran.code, f"the leader ended with status {status}\n" in ran.err) == (0, True)
    assert time.monotonic() - began >= 3


def test_a_leader_that_is_no_command_is_not_tried_again(locks: CliWorld) -> None:
    assert example(locks, "leader.sh", "leader", "./missing").code == 127


@pytest.mark.timeout(200)
def test_five_waiters_are_served_in_order_although_two_of_them_are_killed(locks: CliWorld) -> None:
    environ = on_path(locks.root / "bin", locks.environ())
    line = ["bash", str(EXAMPLES / "five-waiters.sh")]
    # Twelve processes start one after the other, and the dead are passed over after 15 s.
    ran = subprocess.run(line, cwd=locks.root, env=environ, capture_output=True, timeout=180, check=True)
    assert ran.stdout.decode().splitlines() == ["served: job 1", "served: job 3", "served: job 5"]
    shown = locks.call("lock", "show", "blob:locks/order-of-service").json
    # The holder was the first, and those that were killed never had it.
    assert (shown["state"], shown["waiters"], shown["fence"]) == ("free", [], 4)
