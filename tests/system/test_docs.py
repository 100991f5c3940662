"""The README is right: its commands run, and what azguard has is in it."""

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from azguard import errors
from docs import generate
from docs.generate import commands
from tests.support import table_world
from tests.support.cli_world import CliWorld
from tests.support.emulator_world import World
from tests.support.page_shell import PageShell
from tests.support.pages import Page, Step, agrees, every_page, replace_shown
from tests.support.places import REPOSITORY

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
_SPECIAL = {"130": "130, 143", "126": "126, 127", "127": "126, 127"}


def block(marker: str) -> list[str]:
    """Return the lines of the code block below a marker of the README."""
    found = re.search(rf"^<!-- {marker} -->\n```sh\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    assert found is not None, f"README.md has no <!-- {marker} -->"
    return found[1].splitlines()


def table(marker: str) -> list[str]:
    """Return the lines of the table below a marker of the README."""
    found = re.search(rf"^<!-- {marker} -->\n((?:\|.*\n)+)", README, re.MULTILINE)
    assert found is not None, f"README.md has no <!-- {marker} -->"
    return found[1].splitlines()


def on_path(folder: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with an ``azguard`` on PATH that is this checkout's."""
    folder.mkdir(exist_ok=True)
    script = folder / "azguard"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m azguard "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    return {**environ, "PATH": f"{folder}:{environ['PATH']}"}


def statuses(lines: list[str], cwd: Path, environ: Mapping[str, str]) -> list[tuple[str, int]]:
    """Run lines in one shell, one after the other, and return each with its exit status."""
    script = "".join(f"{line}\necho $? >> statuses\n" for line in lines)
    done = subprocess.run(
        ["bash", "-c", script], cwd=cwd, env=environ, stdin=subprocess.DEVNULL, capture_output=True, timeout=100
    )
    sys.stderr.write(done.stderr.decode())
    return list(zip(lines, map(int, (cwd / "statuses").read_text().split()), strict=True))


def stated(line: str) -> int:
    """Return the exit status that a line's remark states."""
    remark = re.search(r"# exit (\d+)", line)
    return int(remark[1]) if remark else 0


def test_the_walk_through_ends_as_it_says(world: World) -> None:
    lines = block("walk-through")
    environ = on_path(world.bin, world.environ)
    assert statuses(lines, world.root, environ) == [(line, stated(line)) for line in lines]


def test_the_locks_end_as_they_say(world: World) -> None:
    lines = block("locks")
    environ = on_path(world.bin, world.environ)
    assert statuses(lines, world.root, environ) == [(line, stated(line)) for line in lines]


def test_the_edits_run(cli: CliWorld) -> None:
    lines = block("edits")
    assert cli.call("container", "create", "site").code in (0, 45)
    cli.file("patch.json", '{"owner": null}')
    content = cli.file("config.json", '{"replicas": 1, "version": 1, "draft": true}')
    assert cli.call("blob", "put", "site/config.json", "-f", str(content), "--last-writer-wins").code == 0
    environ = on_path(cli.root / "bin", cli.environ(env={"VERSION": "1.2"}))
    assert statuses(lines, cli.root, environ) == [(line, 0) for line in lines]


def test_the_fences_end_as_they_say(cli: CliWorld) -> None:
    assert cli.call("container", "create", "site").code in (0, 45)
    cli.file("config.json", '{"replicas": 1}')
    lines, environ = block("fences"), on_path(cli.root / "bin", cli.environ())
    assert cli.call("blob", "put", "site/config.json", "--last-writer-wins", stdin=b"{}").code == 0
    assert statuses(lines, cli.root, environ) == [(line, stated(line)) for line in lines]


def test_the_reads_of_tables_end_as_they_say(cli: CliWorld) -> None:
    table_world.orders(cli)
    assert cli.call("table", "delete", "Orders", "--last-writer-wins", "--with-contents").code == 0
    lines, environ = block("reading-tables"), on_path(cli.root / "bin", cli.environ())
    assert statuses(lines, cli.root, environ) == [(line, stated(line)) for line in lines]


def test_the_updates_of_entities_end_as_they_say(cli: CliWorld) -> None:
    cli.call("table", "create", "Orders")
    assert cli.call("entity", "upsert", "Orders/eu/1007", "n:int64=5", "--last-writer-wins").code == 0
    cli.call("entity", "delete", "Orders/eu/1", "--last-writer-wins")
    lines, environ = block("updating-entities"), on_path(cli.root / "bin", cli.environ(env={"RUN": "7"}))
    assert statuses(lines, cli.root, environ) == [(line, stated(line)) for line in lines]


def test_the_leases_end_as_they_say(cli: CliWorld) -> None:
    lines = block("leases")
    assert cli.call("container", "create", "site").code in (0, 45)
    content = cli.file("config.json", "{}")
    assert cli.call("blob", "put", "site/config.json", "-f", str(content), "--last-writer-wins").code == 0
    environ = on_path(cli.root / "bin", cli.environ())
    assert statuses(lines, cli.root, environ) == [(line, stated(line)) for line in lines]


def test_the_tables_end_as_they_say(cli: CliWorld) -> None:
    lines = block("tables")
    cli.call("table", "delete", "Orders", "--last-writer-wins", "--with-contents")
    found = re.search(r"^```json\n(\{\"op\".*?)^```$", README, re.DOTALL | re.MULTILINE)
    assert found is not None
    cli.file("orders.jsonl", found[1])
    environ = on_path(cli.root / "bin", cli.environ())
    assert statuses(lines, cli.root, environ) == [(line, stated(line)) for line in lines]


# The pages, run from top to bottom

#: What pages make. A page begins without it, whatever ran before.
_CONTAINERS, _TABLES = ("site", "locks", "ops", "releases"), ("Orders", "Settings")


@pytest.fixture
def page_shell(request: pytest.FixtureRequest, tmp_path: Path) -> PageShell:
    """Return a shell in an empty folder, before an emulator that has nothing of the pages in it."""
    page: Page = request.getfixturevalue("page")
    if page.has_own_emulator:
        world: World = request.getfixturevalue("world")
        return PageShell(world.root, on_path(world.bin, world.environ | {"AZGUARD_SCOPE": "docs"}))
    cli: CliWorld = request.getfixturevalue("cli")
    for name in _CONTAINERS:
        cli.call("container", "delete", name, "--last-writer-wins", "--with-contents")
    for name in _TABLES:
        cli.call("table", "delete", name, "--last-writer-wins", "--with-contents")
    return PageShell(tmp_path, on_path(tmp_path / ".bin", cli.environ("docs")))


@pytest.mark.parametrize("page", every_page()[1:], ids=lambda page: page.name)
def test_a_page_is_right_from_top_to_bottom(page: Page, page_shell: PageShell, request: pytest.FixtureRequest) -> None:
    wrong: list[str] = []
    changed: list[tuple[Step, list[str]]] = []
    for step in page.steps:
        if step.content is not None:
            (page_shell.folder / step.text).write_text(step.content, encoding="utf-8")
            continue
        status, shown = page_shell.run(step.text)
        agreed = step.shown is None or agrees(step.shown, shown)
        if not agreed:
            changed.append((step, shown))
        if status != step.status or not agreed:
            wrong += [f"{page.name}:{step.line} $ {step.text}", f"  exit {status}, and shows:", *shown]
    if request.config.getoption("--write-docs"):
        for step, shown in reversed(changed):
            replace_shown(page, step, shown)
    assert not wrong, "\n".join(wrong)


def test_the_tables_that_the_code_knows_are_up_to_date() -> None:
    assert [path.name for path in generate.stale()] == [], "run: python -m docs.generate"


def test_the_table_of_commands_has_every_command() -> None:
    section = README.split("\n## Commands\n")[1].split("\n### ")[0]
    table = []
    for row in re.findall(r"^\| (`azguard .*?`) \|", section, re.MULTILINE):
        first, *others = re.findall(r"`(?:azguard )?(.*?)`", row)
        noun = first.partition(" ")[0]
        table += [first, *(f"{noun} {other}" for other in others)]
    assert table == [name for name, _ in commands()]


def test_every_option_is_in_its_help_or_in_the_readme() -> None:
    missing = []
    for name, command in commands():
        shown = get_help(command, name) + README
        offered = [param for param in command.params if not getattr(param, "hidden", False)]
        options = [option for param in offered for option in param.opts if option.startswith("--")]
        missing += [f"{name} {option}" for option in options if not re.search(rf"{option}\b", shown)]
    assert missing == []


def get_help(command: Any, name: str) -> str:
    with command.make_context(f"azguard {name}", [], resilient_parsing=True) as context:
        text: str = context.get_help()
    return text


def test_every_exit_status_is_in_the_table() -> None:
    table = dict(re.findall(r"^\| (\d+|\d+, \d+) \| (`[^|]*`) \|", README, re.MULTILINE))
    known = {str(each.exit_code): f"`{each.kind}`" for each in classes(errors.AzguardError)} | {"0": "`ok`"}
    assert {code: kind for code, kind in known.items() if kind not in table.get(_SPECIAL.get(code, code), "")} == {}
    assert set(table) == {_SPECIAL.get(code, code) for code in known}


def classes(root: type[errors.AzguardError]) -> Iterator[type[errors.AzguardError]]:
    yield root
    for each in root.__subclasses__():
        yield from classes(each)


def test_every_link_leads_somewhere() -> None:
    targets = [target for target in re.findall(r"\]\(([^)]+)\)", README) if not target.startswith("https://")]
    headings = {f"#{heading.lower().replace(' ', '-')}" for heading in re.findall(r"^#+ (.+)$", README, re.MULTILINE)}
    assert [target for target in targets if not (target in headings or (REPOSITORY / target).exists())] == []


def test_ci_runs_the_commands_of_the_readme() -> None:
    shown = subprocess.run([REPOSITORY / ".ci" / "run", "--dry-run"], capture_output=True, text=True, check=True)
    assert shown.stdout.splitlines() == [*block("try"), *block("test")]
