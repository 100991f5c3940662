"""The README and the pages of docs/ are right: commands, sample outputs, tables, pictures and links."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from docs import generate, manual
from docs.pictures.__main__ import FOLDER, PICTURES
from tests.support.cases import cases
from tests.support.cli_world import CliWorld
from tests.support.page_shell import PageShell, on_path
from tests.support.pages import Page, Step, agrees, every_page, replace_shown
from tests.support.places import REPOSITORY
from tests.support.smb_emulator import need_samba

if TYPE_CHECKING:
    from tests.support.emulator_world import World

README = Page(REPOSITORY / "README.md")
#: What pages make. A page begins without it, whatever ran before.
_CONTAINERS, _TABLES = ("site", "locks", "disks", "logs", "videos"), ("Orders", "Settings", "Once")
_QUEUES = ("jobs", "jobs-poison", "mails", "orders", "thumbnails")
_SHARES = ("team", "shop")
_CREATED = re.compile(r"azguard (?:-o \w+ )?(?:container|table|queue|share) create ([\w-]+)")
#: Words that a reader whose first language is not English stumbles over.
_HARD = ("whoever", "nobody", "somebody", "anybody", "everybody", "in so many letters", "what becomes of")


@pytest.fixture
def page_shell(page: Page, request: pytest.FixtureRequest, tmp_path: Path) -> PageShell:
    """Return a shell in an empty folder, before an emulator that has nothing of the pages in it."""
    created = {name for step in page.steps for name in _CREATED.findall(step.text)}
    assert created <= {*_CONTAINERS, *_TABLES, *_QUEUES, *_SHARES}
    if page.has_own_emulator:
        world: World = request.getfixturevalue("world")
        return PageShell(world.root, on_path(world.bin, world.environ | {"AZGUARD_SCOPE": "docs"}))
    if page.is_about_files or page.is_about_smb:
        cli: CliWorld = request.getfixturevalue("smb_cli" if page.is_about_smb else "files_cli")
        _delete_shares(cli)
        return PageShell(tmp_path, on_path(tmp_path / ".bin", cli.environ("docs")))
    cli = request.getfixturevalue("cli")
    if page.is_about_files_too:
        files = request.getfixturevalue("files_connection_string").rpartition(";")[2]
        cli = replace(cli, connection_string=f"{cli.connection_string};{files}")
        _delete_shares(cli)
    for name in _CONTAINERS:
        cli.call("container", "delete", name, "--last-writer-wins", "--with-contents")
    for name in _TABLES:
        cli.call("table", "delete", name, "--last-writer-wins", "--with-contents")
    for name in _QUEUES:
        cli.call("queue", "delete", name, "--last-writer-wins", "--with-contents")
    return PageShell(tmp_path, on_path(tmp_path / ".bin", cli.environ("docs")))


def _delete_shares(cli: CliWorld) -> None:
    for name in _SHARES:
        cli.call("share", "delete", name, "--last-writer-wins", "--with-contents", "--delete-snapshots", "include")


@pytest.mark.parametrize("page", every_page(), ids=lambda page: page.name)
def test_a_page_is_right_from_top_to_bottom(page: Page, page_shell: PageShell, request: pytest.FixtureRequest) -> None:
    if any("--smb" in step.text for step in page.steps):
        need_samba()
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


@pytest.mark.skipif(shutil.which("groff") is None, reason="needs groff")
def test_the_manual_pages_are_laid_out_without_a_warning() -> None:
    pages = sorted(manual.FOLDER.iterdir())
    done = subprocess.run(["groff", "-man", "-ww", "-z", *pages], capture_output=True, text=True, check=True)
    assert done.stderr == ""


@cases("name", *PICTURES)
def test_a_picture_is_as_its_script_draws_it(name: str) -> None:
    assert (FOLDER / f"{name}.svg").read_text(encoding="utf-8") == PICTURES[name](), "run: python -m docs.pictures"


@cases("page", *every_page(), ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Page) -> None:
    targets = re.findall(r"\]\(([^)\s]+)\)", page.text)
    inside = [target for target in targets if not target.startswith("https://")]
    assert [target for target in inside if not _leads_somewhere(page.path, target)] == []


def _leads_somewhere(page: Path, target: str) -> bool:
    name, _, anchor = target.partition("#")
    path = page.parent / name if name else page
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE) if anchor else []
    return path.exists() and (not anchor or anchor in {_anchor(heading) for heading in headings})


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


@cases("page", *every_page(), ids=lambda page: page.name)
def test_a_page_has_no_hard_words(page: Page) -> None:
    written = re.sub(r"<!-- generated: .*?<!-- end -->", "", page.text, flags=re.DOTALL)
    assert [word for word in _HARD if re.search(rf"\b{word}\b", written, re.IGNORECASE)] == []


def test_the_readme_is_short() -> None:
    assert README.text.count("\n") <= 150


def test_ci_runs_the_commands_of_the_readme() -> None:
    shown = subprocess.run([REPOSITORY / ".ci" / "run", "--dry-run"], capture_output=True, text=True, check=True)
    assert shown.stdout == README.block("try") + README.block("test")
