"""The examples that run a worker: their command lines do what they say, against the emulator."""

import json
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import queue_world, table_world
from tests.support.cases import cases
from tests.support.cli_world import CliWorld
from tests.support.emulator_world import until
from tests.support.page_shell import on_path
from tests.support.places import REPOSITORY

EXAMPLES = REPOSITORY / "examples"
HANDLE = """#!/bin/sh
body=$(cat)
echo "begun $body" >> handled
case $body in *bad*) exit 65 ;; *slow*) sleep 2 ;; esac
echo "handled $body" >> handled
"""


@pytest.fixture
def jobs(cli: CliWorld) -> Iterator[CliWorld]:
    """Yield a world with the queue, the table and the command that the examples name."""
    for queue in ("jobs", "jobs-poison"):
        cli.call("queue", "delete", queue, "--last-writer-wins", "--with-contents")
        assert cli.call("queue", "create", queue).code == 0
    cli.call("table", "create", "Once", "--if-exists", "skip")
    cli.file("handle.sh", HANDLE).chmod(0o755)
    yield cli
    for queue in ("jobs", "jobs-poison"):
        assert cli.call("queue", "delete", queue, "--last-writer-wins", "--with-contents").code == 0
    assert cli.call("table", "delete", "Once", "--last-writer-wins", "--with-contents").code == 0


def put(cli: CliWorld, *bodies: str) -> None:
    for each in bodies:
        queue_world.sdk(cli, "jobs").send_message(each)


def handled(cli: CliWorld) -> list[str]:
    path = cli.root / "handled"
    lines = path.read_text().splitlines() if path.exists() else []
    return sorted(each.removeprefix("handled ") for each in lines if each.startswith("handled"))


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((EXAMPLES / name).read_text(encoding="utf-8")))


def find_container(name: str) -> dict[str, Any]:
    """Return the one container of an example."""
    last = documents(name)[-1]
    template = last["properties"]["template"] if "properties" in last else last["spec"]["jobTargetRef"]["template"]
    (found,) = template.get("spec", template)["containers"]
    return dict(found)


def find_trigger(name: str) -> dict[str, Any]:
    last = documents(name)[-1]
    if "properties" in last:
        (rule,) = last["properties"]["configuration"]["eventTriggerConfig"]["scale"]["rules"]
    else:
        (rule,) = last["spec"]["triggers"]
    return dict(rule)


@pytest.mark.parametrize("name", ["keda-scaledjob.yaml", "container-apps-job.yaml"])
def test_a_job_takes_one_message_and_ends(jobs: CliWorld, name: str) -> None:
    put(jobs, "one", "two")
    args = [str(jobs.root / "handle.sh") if each == "/app/handle.sh" else each for each in find_container(name)["args"]]
    seen = []
    for _ in range(3):
        assert jobs.fork(*args).code == 0
        seen.append(len(handled(jobs)))
    assert (seen, handled(jobs)) == ([1, 2, 2], ["one", "two"])


@cases("name", "keda-scaledjob.yaml", "container-apps-job.yaml")
def test_a_job_is_started_by_the_queue_that_it_works_on(name: str) -> None:
    trigger, container = find_trigger(name), find_container(name)
    known = {each["name"]: each["value"] for each in container["env"]}
    assert (trigger["type"], trigger["metadata"]["queueName"]) == ("azure-queue", container["args"][2])
    assert trigger["metadata"]["accountName"] == known["AZURE_STORAGE_ACCOUNT"]


def test_a_drain_from_cron_is_silent_unless_a_message_could_not_be_handled(jobs: CliWorld) -> None:
    def drain() -> tuple[int, str, str]:
        environ = on_path(jobs.root / "bin", jobs.environ())
        words = [str(EXAMPLES / "drain-queue.sh"), "jobs", "./handle.sh"]
        done = subprocess.run(words, cwd=jobs.root, env=environ, stdin=subprocess.DEVNULL, capture_output=True)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    put(jobs, "one", "two")
    assert drain() == (0, "", "")
    put(jobs, "bad", "three")
    code, out, err = drain()
    assert (code, err, "Messages of jobs could not be handled" in out, "data_error" in out) == (20, "", True, True)
    assert handled(jobs) == ["one", "three", "two"]


def unit(folder: Path) -> str:
    """Return the unit with folders and programs that are there."""
    text = (EXAMPLES / "queue-worker.service").read_text(encoding="utf-8")
    text = text.replace("/usr/local/bin/handle.sh", str(folder / "handle.sh"))
    return text.replace("%S/queue-worker", str(folder)).replace("%t/queue-worker", str(folder))


def test_a_unit_finishes_what_runs_when_systemd_stops_it(jobs: CliWorld) -> None:
    put(jobs, "slow")
    joined = unit(jobs.root).replace("\\\n", " ").splitlines()
    (line,) = (each.removeprefix("ExecStart=") for each in joined if each.startswith("ExecStart="))
    program, *words = shlex.split(line)
    worker = jobs.begin_fork(*words, stdin=subprocess.DEVNULL)
    until((jobs.root / "handled").exists)
    put(jobs, "later")
    worker.terminate()
    out, err = worker.communicate(timeout=60)
    # Four commands may run at once, so the second message may have been taken before TERM came.
    assert (program, worker.returncode, "slow" in handled(jobs)) == ("/usr/local/bin/azguard", 0, True), err
    assert json.loads(out)["stopped_by"] == "signal"
    assert (jobs.root / "events.jsonl").exists()
    assert (jobs.root / "jobs.prom").exists()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_takes_the_unit(cli: CliWorld) -> None:
    cli.file("handle.sh", HANDLE).chmod(0o755)
    text = unit(cli.root).replace("/usr/local/bin/azguard", "/bin/true")
    path = cli.file("queue-worker.service", text)
    done = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, timeout=60)
    assert (done.returncode, [each for each in done.stderr.decode().splitlines() if "queue-worker" in each]) == (0, [])


def test_keys_that_were_done_long_ago_are_forgotten_and_no_others(cli: CliWorld) -> None:
    from azure.data.tables import TableClient

    table = table_world.table(cli)
    client = TableClient.from_connection_string(str(cli.connection_string), table)
    for number in range(120):
        client.create_entity({"PartitionKey": "jobs", "RowKey": f"~7e{number}", "state": "done"})
    for queue, state in (("jobs", "claimed"), ("jobs", "failed"), ("jobs", "poisoned"), ("mails", "done")):
        client.create_entity({"PartitionKey": queue, "RowKey": f"{state}:1", "state": state})

    def forget(days: str, of: str = table, code: int = 0) -> list[str]:
        environ = on_path(cli.root / "bin", cli.environ())
        words = [str(EXAMPLES / "forget-done-keys.sh"), of, "jobs", days]
        done = subprocess.run(words, cwd=cli.root, env=environ, stdin=subprocess.DEVNULL, capture_output=True)
        assert done.returncode == code, done.stderr.decode()
        return sorted(str(each["RowKey"]) for each in client.list_entities())

    assert len(forget("8")) == 124
    forget("8", of="NoSuchTable", code=44)
    # Before tomorrow.
    assert forget("-1") == ["claimed:1", "done:1", "failed:1", "poisoned:1"]
