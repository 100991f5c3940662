"""Every command's help has an example, which runs as it is printed."""

import json
import re

import pytest

from azguard.cli.registry import COMMANDS
from docs.generate import commands
from tests.support.cli_world import CliWorld
from tests.support.emulator_world import World
from tests.system.test_docs import get_help, on_path, statuses

# The demo has tests of its own; the emulator's commands need a world without an emulator.
GROUPS = [name for name in COMMANDS if name not in ("demo", "emulator")]


def examples(group: str) -> dict[str, str]:
    """Return the example of each command of a group, or of a command that stands for itself."""
    found = {}
    for name, command in commands():
        if name.split()[0] == group and not hasattr(command, "commands"):
            # What stands on one line in the source may be wrapped in the help.
            example = re.search(r"^  Example: (.*?)\n\n", get_help(command, name), re.MULTILINE | re.DOTALL)
            found[name] = " ".join(example[1].split()) if example else "no example"
    return found


ORDERS = "".join(
    json.dumps({"op": op, "address": f"Orders/eu/{row}", "entity": {"status": "shipped"}}) + "\n"
    for op, row in (("merge", "1007"), ("insert", "1009"))
)
DEPLOY = "blob:locks/deploy-prod"
# Of commands whose examples speak of more: what there is besides, and is not with the others.
BEFORE: dict[str, tuple[tuple[str, ...], ...]] = {
    "container create": (("container", "delete", "site", "--with-contents"),),
    "container delete": (("blob", "delete", "site/config.json"),),
    "table delete": (("entity", "delete", "Orders/eu/1007"),),
    "table create": (("table", "delete", "Orders", "--last-writer-wins", "--with-contents"),),
    **dict.fromkeys(
        ("lease renew", "lease change", "lease release", "lease break"),
        (("lease", "acquire", "blob:site/config.json"),),
    ),
    "lock show": (("lock", "run", DEPLOY, "--", "true"),),
    "lock list": (("lock", "run", DEPLOY, "--", "true"),),
    "lock break": (("lock", "run", DEPLOY, "--", "true"), ("lease", "acquire", DEPLOY)),
}


def prepare(cli: CliWorld) -> None:
    """Make what the examples speak of: a blob and an entity that were read here, a profile, and files."""
    cli.call("container", "delete", "site", "--last-writer-wins", "--with-contents")
    cli.call("table", "delete", "Orders", "--last-writer-wins", "--with-contents")
    cli.call("cache", "clear")
    content = str(cli.file("config.json", '{"replicas": 1}'))
    for line in (
        ("container", "create", "site"),
        ("blob", "put", "site/config.json", "-f", content),
        ("table", "create", "Orders"),
        ("entity", "insert", "Orders/eu/1007", "status=new", "n:int64=5"),
        ("profile", "set", "prod", "--account-name", "contoso", "--auth-mode", "login"),
    ):
        assert cli.call(*line).code == 0
    cli.file("order.json", '{"status": "packed"}')
    cli.file("orders.jsonl", ORDERS)
    cli.file("deploy.sh", "#!/bin/sh\n").chmod(0o755)


@pytest.mark.parametrize("group", GROUPS)
def test_the_example_in_a_help_runs(group: str, cli: CliWorld) -> None:
    environ = on_path(cli.root / "bin", cli.environ())
    failed = []
    for name, line in examples(group).items():
        prepare(cli)
        for words in BEFORE.get(name, ()):
            assert cli.run(*words).code == 0
        (cli.root / "statuses").unlink(missing_ok=True)
        failed += [(name, each) for each in statuses([line], cli.root, environ) if each[1] != 0]
    assert failed == []


def test_the_examples_of_the_emulator_run(world: World) -> None:
    known = examples("emulator")
    lines = [known[f"emulator {name}"] for name in ("start", "env", "status", "run", "stop")]
    assert len(lines) == len(known)
    assert statuses(lines, world.root, on_path(world.bin, world.environ)) == [(line, 0) for line in lines]
