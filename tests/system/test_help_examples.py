"""Every command's help has examples, which run as they are printed."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from azure.storage.blob import BlobServiceClient
from azure.storage.fileshare import ShareServiceClient
from azure.storage.queue import QueueServiceClient

from azguard.cli.help.pages import HelpText
from azguard.cli.registry import COMMANDS
from tests.support import table_world
from tests.support.cases import cases
from tests.support.cli_world import CliWorld
from tests.support.command_tree import COMMANDS as EVERY
from tests.support.emulator_world import World
from tests.support.page_shell import on_path, plain_words
from tests.support.smb_emulator import open_file

# The demo and the scripts of completion have tests of their own; the emulator's commands need a world without one.
GROUPS = [name for name in COMMANDS if name not in ("demo", "emulator", "completion")]
# Whose examples are alternatives: each finds what the others change.
ALTERNATIVES = (
    "message get",
    "blob delete", "container delete", "table delete", "queue delete", "entity delete", "entity transaction",
    "share delete", "dir delete", "file delete", "lease acquire", "lease release", "lease break",
    "lock break", "file lock break", "profile delete",
)  # fmt: skip


def statuses(lines: list[str], cwd: Path, environ: Mapping[str, str]) -> list[tuple[str, int]]:
    """Run lines in one shell, one after the other, and return each with its exit status."""
    script = "".join(f"{line}\necho $? >> statuses\n" for line in lines)
    done = subprocess.run(
        ["bash", "-c", script], cwd=cwd, env=environ, stdin=subprocess.DEVNULL, capture_output=True, timeout=100
    )
    sys.stderr.write(done.stderr.decode())
    written = cwd / "statuses"
    found = list(map(int, written.read_text().split()))
    written.unlink()
    return list(zip(lines, found, strict=True))


def status(line: str, cli: CliWorld, environ: Mapping[str, str]) -> int:
    """Run a line and return its exit status: in the test if it is azguard alone, else in a shell."""
    words = plain_words(line)
    if words is None:
        return statuses([line], cli.root, environ)[0][1]
    ran = cli.call(*words.arguments, stdin=words.stdin, env={**environ, **words.environ})
    if words.into is not None:
        cli.file(words.into, ran.stdout)
    sys.stderr.write(ran.err)
    return ran.code


EXAMPLES = {name: HelpText(command.help).examples for name, command in EVERY}


def examples(group: str) -> dict[str, list[str]]:
    """Return the examples of each command of a group, or of a command that stands for itself."""
    return {name: lines for name, lines in EXAMPLES.items() if name.split()[0] == group}


# What the emulators cannot do: no copy of theirs is pending by then, nothing is kept that was deleted, and no version.
NOT_THERE = (
    *("blob legal-hold set", "blob immutability set", "blob abort-copy", "blob undelete", "container undelete"),
    *("share undelete", "file abort-copy"),
)
# What they end with where not all is as on a live account.
DIFFERENT = {"doctor": 20}

ORDERS = "".join(
    json.dumps({"op": op, "address": f"Orders/eu/{row}", "entity": {"status": "shipped"}}) + "\n"
    for op, row in (("merge", "1007"), ("insert", "1009"))
)
DEPLOY = "blob:locks/deploy-prod"
CONTAINERS = {"site", "disks", "logs", "backups", "locks"}
# Groups whose examples speak of one service.
_OF_BLOBS, _OF_TABLES = ("blob", "container", "lock"), ("entity", "table")
_OF_QUEUES = ("queue", "message")
_OF_FILES = ("share", "dir", "file")
NO_SITE = ("container", "delete", "site", "--with-contents", "--last-writer-wins")
NO_TEAM = ("share", "delete", "team", "--with-contents", "--last-writer-wins")
NO_REPORTS = ("dir", "delete", "team/reports", "--last-writer-wins")
# Of commands whose examples speak of more: what there is besides, and is not with the others.
BEFORE: dict[str, tuple[tuple[str, ...], ...]] = {
    "container create": (NO_SITE,),
    "container delete": (NO_SITE, ("container", "create", "site")),
    "container metadata set": (("container", "metadata", "get", "site"),),
    "container acl set": (("container", "acl", "get", "site"),),
    "table delete": (("entity", "delete", "Orders/eu/1007"),),
    "table create": (("table", "delete", "Orders", "--last-writer-wins", "--with-contents"),),
    **dict.fromkeys(
        ("lease renew", "lease change", "lease release", "lease break"),
        (("lease", "acquire", "blob:site/config.json"),),
    ),
    "blob page put": (("container", "create", "disks", "--if-exists", "skip"),),
    **dict.fromkeys(
        ("blob page clear", "blob page resize", "blob page set-sequence-number", "blob page ranges"),
        (
            ("container", "create", "disks", "--if-exists", "skip"),
            ("blob", "page", "put", "disks/a", "-f", "boot.img", "--create", "1MiB"),
        ),
    ),
    "blob block list": (("blob", "block", "stage", "site/big", "-f", "config.json"),),
    "blob block commit": (("blob", "block", "stage", "site/big", "-f", "config.json", "--block-id", "cGFydC0wMDAx"),),
    "blob append": (("container", "create", "logs", "--if-exists", "skip"),),
    "blob append seal": (
        ("container", "create", "logs", "--if-exists", "skip"),
        ("blob", "append", "logs/night", "--line", "all is well", "--create"),
    ),
    **dict.fromkeys(
        ("file delete", "file metadata set", "file properties set"),
        (("file", "get", "team/plan.txt", "-f", "plan.txt"),),
    ),
    "share create": (NO_TEAM,),
    "share delete": (NO_TEAM, ("share", "create", "team")),
    "dir create": (NO_REPORTS,),
    "dir delete": (NO_REPORTS, ("dir", "create", "team/reports")),
    "queue move": (("queue", "create", "jobs-poison"),),
    "queue poison list": (
        ("queue", "create", "jobs-poison", "--if-exists", "skip"),
        ("table", "create", "Once", "--if-exists", "skip"),
    ),
    **dict.fromkeys(
        ("profile list", "profile show", "profile delete"),
        (("profile", "set", "prod", "--account-name", "contoso", "--auth-mode", "login"),),
    ),
    "blob restore": (("blob", "snapshot", "site/config.json"),),
    **dict.fromkeys(("lock check", "lock release"), (("lock", "hold", DEPLOY),)),
    "lock log": (("lock", "run", DEPLOY, "--", "true"),),
    "lock show": (("lock", "run", DEPLOY, "--", "true"),),
    "lock list": (("lock", "run", DEPLOY, "--", "true"),),
    "lock break": (("lock", "run", DEPLOY, "--", "true"), ("lease", "acquire", DEPLOY)),
}


def prepare(cli: CliWorld, group: str) -> None:
    """Make what the examples of a group speak of: a blob and an entity that were read here, and files."""
    if (cli.root / ".cache").exists():
        cli.call("cache", "clear")
    else:
        cli.with_cache()
    cli.file("config.json", '{"replicas": 1}')
    cli.file("ids", "cGFydC0wMDAx\n")
    cli.file("boot.img", bytes(4096))
    cli.file("permission.sddl", b"O:SYG:SYD:(A;;FA;;;WD)")
    cli.file("order.json", '{"status": "packed"}')
    cli.file("orders.jsonl", ORDERS)
    cli.file("events.jsonl")
    cli.file("lines.txt", "blob show site/config.json")
    (cli.root / "dist").mkdir(exist_ok=True)
    cli.file("dist/index.html", "<p>")
    cli.file("deploy.sh", "#!/bin/sh\n").chmod(0o755)
    cli.file("handle.sh", "#!/bin/sh\n").chmod(0o755)
    if group in _OF_QUEUES:
        prepare_queues(cli)
        return
    if group in _OF_FILES:
        prepare_files(cli)
        return
    if group not in _OF_TABLES:
        prepare_blobs(cli)
    if group not in _OF_BLOBS:
        table_world.orders(cli)


def prepare_blobs(cli: CliWorld) -> None:
    """Make the container anew, with a blob; the others are gone."""
    with BlobServiceClient.from_connection_string(str(cli.connection_string)) as service:
        for container in {each.name for each in service.list_containers()} & CONTAINERS:
            service.delete_container(container)
        service.create_container("site")
    assert cli.call("blob", "put", "site/config.json", "-f", str(cli.root / "config.json")).code == 0


def prepare_queues(cli: CliWorld) -> None:
    """Make the queue anew; the others are gone."""
    with QueueServiceClient.from_connection_string(str(cli.connection_string)) as service:
        for queue in {each.name for each in service.list_queues()} & {"jobs", "orders", "mails", "jobs-poison"}:
            service.delete_queue(queue)
        service.create_queue("jobs")


def prepare_files(cli: CliWorld) -> None:
    """Make the share anew, with a directory and a file that another tool wrote; the others are gone."""
    with ShareServiceClient.from_connection_string(str(cli.connection_string)) as service:
        for share in {each.name for each in service.list_shares()} & {"team", "archive"}:
            service.delete_share(share, delete_snapshots=True)
        team = service.create_share("team")
        team.create_directory("reports")
        for path, content in (("plan.txt", b"ship it"), ("disk.img", bytes(8192))):
            team.get_file_client(path).upload_file(content)


def world_of(name: str) -> str:
    """Return the fixture with the emulator that a command's examples speak of."""
    if name.startswith("file lock"):
        return "smb_cli"
    return "files_cli" if name.split(maxsplit=1)[0] in _OF_FILES else "cli"


@contextmanager
def held_open(name: str, request: pytest.FixtureRequest) -> Iterator[None]:
    """Hold the file open over SMB that ``file lock break`` is to close."""
    if name != "file lock break":
        yield
        return
    with request.getfixturevalue("smb_emulator").connect("team") as tree:
        open_file(tree, "plan.txt")
        yield


@pytest.mark.parametrize(
    ("name", "lines"),
    [each for group in GROUPS for each in examples(group).items() if each[0] not in NOT_THERE],
)
def test_the_examples_in_a_help_run(name: str, lines: list[str], request: pytest.FixtureRequest) -> None:
    group, failed = name.split(maxsplit=1)[0], []
    cli: CliWorld = request.getfixturevalue(world_of(name))
    # A person's editor, for the examples that open one.
    environ = on_path(cli.root / "bin", cli.environ(env={"VISUAL": "", "EDITOR": "true"}))
    for together in [[line] for line in lines] if name in ALTERNATIVES else [lines]:
        prepare(cli, group)
        for words in BEFORE.get(name, ()):
            assert (cli.fork if words[0] == "lock" else cli.call)(*words).code == 0
        if group == "message":
            environ = {**environ, "ID": cli.call("message", "put", "jobs", "--content", "x").json["id"]}
        with held_open(name, request):
            found = [(line, status(line, cli, environ)) for line in together]
            failed += [each for each in found if each[1] != DIFFERENT.get(name, 0)]
    assert failed == []


@cases(("name", "lines"), *[(name, lines) for group in COMMANDS for name, lines in examples(group).items()])
def test_a_help_has_examples_that_fit_a_terminal(name: str, lines: list[str]) -> None:
    assert f"azguard {name}" in lines[0]
    assert [line for line in lines if len(line) > 78] == []


def test_the_examples_of_the_emulator_run(world: World) -> None:
    known = examples("emulator")
    lines = [line for name in ("start", "env", "status", "run", "stop") for line in known[f"emulator {name}"]]
    assert statuses(lines, world.root, on_path(world.bin, world.environ)) == [(line, 0) for line in lines]
