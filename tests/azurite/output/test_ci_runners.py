"""In a job of a CI system no name is a command to the runner that reads what azguard prints."""

import json
import re

import pytest

from tests.support.cases import cases
from tests.support.cli_world import CliWorld

# Azure Pipelines finds its commands anywhere in a line, GitHub Actions the others where a line begins.
_COMMAND = re.compile(r"##(?:vso)?\[|^\s*::|\r\s*::", re.IGNORECASE | re.MULTILINE)
_NAMES = ["##VSO[task.complete]x", "##vso[task.prependpath]evil", "::add-mask::x", "a ##[error]b"]
_RUNNERS = [{"TF_BUILD": "True"}, {"GITHUB_ACTIONS": "true"}]


@pytest.fixture
def site(cli: CliWorld) -> str:
    made = cli.container()
    for name in _NAMES:
        cli.call("blob", "put", f"{made}/{name}", stdin=b"x")
    return made


@pytest.mark.parametrize("environ", _RUNNERS)
@cases(
    "words",
    *(f"blob list {{site}} -o {each}" for each in ("json", "table", "tsv", "yaml")),
    *(f"blob list {{site}} --query [].name -o {each}" for each in ("json", "table", "tsv", "yaml")),
    "blob show {site}/##vso[task.prependpath]evi",
    "blob show {site}/##vso[task.prependpath]evi -o json",
    "blob get {site}/::add-mask::x --if-match 0x1 --debug",
    "blob delete {site}/::add-mask::x -v --etag 0x1",
    "blob get {site}/##vso[task.complete] -f ##vso[task.complete]",
    "lock run {site}/##vso[task.complete]x --no-create -v -- true",
    "lock run ##vso[task.complete]x ::a:: --slots ::b:: -- true",
    "##vso[task.complete]x",
    "status {site}/::add-mask::x",
    "cache list",
)
def test_no_printed_name_commands_the_runner(cli: CliWorld, site: str, words: str, environ: dict[str, str]) -> None:
    ran = cli.call(*words.format(site=site).split(), env=environ)
    assert _COMMAND.findall(ran.out + ran.err) == [], ran


def test_in_json_the_name_is_the_same(cli: CliWorld, site: str) -> None:
    shown = cli.call("blob", "list", site, "--query", "[].name", env=_RUNNERS[0]).out
    assert (json.loads(shown), shown.count(r"\u0023#")) == (_NAMES, 3)


def test_content_and_what_is_printed_elsewhere_are_as_they_are(cli: CliWorld, site: str) -> None:
    content = b"##vso[task.complete]x\n::add-mask::x\n"
    cli.call("blob", "put", f"{site}/a", stdin=content)
    got = cli.call("blob", "get", f"{site}/a", env=_RUNNERS[0]).stdout
    names = cli.call("blob", "list", site, "--query", "[?name != 'a'].name", "-o", "tsv").out.splitlines()
    assert (got, names) == (content, _NAMES)


def test_a_variable_for_the_steps_that_follow_is_still_a_command(cli: CliWorld) -> None:
    lock = f"{cli.container()}/lock"
    ran = cli.call("lock", "hold", lock, env={"TF_BUILD": "True"})
    cli.call("lock", "release", lock, env={"TF_BUILD": "True"})
    assert f"##vso[task.setvariable variable=AZGUARD_LOCK]blob:{lock}\n" in ran.err
