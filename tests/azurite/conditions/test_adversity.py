"""Each command of blobs, containers and queues where nothing is, and where what answers is not the service."""

import pytest

from azguard.emulators.azurite_process import Azurite
from tests.support.cli_world import CliWorld
from tests.support.condition_stage import find_flaws
from tests.support.scenarios import PLAYED, Scenario
from tests.support.staging import staged

_MAKES = {each.operation for each in PLAYED if each.expected.write == "puts"} | {"blob.put_block"}
_NONE = "no-such-thing"
_HTML = {"content-type": "text/html", "server": "nginx", "etag": '"0x8D0000000000000"'}


def find_missing(scenario: Scenario) -> dict[str, dict[str, str]]:
    """Return what a command needs that can be missing, and the names that then stand in its command line."""
    if scenario.noun == "queue":
        return {} if scenario.operation == "queue.create" else {"queue": {"queue": _NONE, "message": f"{_NONE}/1"}}
    found: dict[str, dict[str, str]] = {}
    if scenario.noun == "blob" and scenario.operation not in _MAKES:
        found["blob"] = {"blob": "{container}/missing"}
    if scenario.operation != "container.create":
        found["container"] = {"container": _NONE, "blob": f"{_NONE}/b"}
    return found


@pytest.mark.parametrize("scenario", [each for each in PLAYED if find_missing(each)], ids=str)
def test_what_is_missing_is_said_to_be(scenario: Scenario, cli: CliWorld, azurite: Azurite) -> None:
    is_question = scenario.line.split()[1] == "exists"
    said = {}
    with staged(scenario, cli, azurite.ports) as stage:
        there = dict(stage.facts)
        for what, names in find_missing(scenario).items():
            stage.facts = {**there, **{name: text.format(**there) for name, text in names.items()}}
            ran = stage.run(*scenario.anyhow)
            said[what] = (ran.code, [] if is_question else find_flaws(ran), ran.err)
    assert {what: each[:2] for what, each in said.items()} == dict.fromkeys(find_missing(scenario), (44, [])), said


@pytest.mark.parametrize("scenario", PLAYED, ids=str)
def test_a_page_of_a_proxy_is_never_an_answer(scenario: Scenario, cli: CliWorld, azurite: Azurite) -> None:
    """A read has then no answer, and a write is in doubt: it was not seen to be applied, nor not to be."""
    with staged(scenario, cli, azurite.ports) as stage:
        before = stage.look()
        with stage.answering(200, _HTML):
            for patience in ("0.3s", "3s", "30s"):
                ran = stage.run(*scenario.anyhow, "--timeout", patience)
                # On a busy machine, the time may be over before anything was asked.
                if stage.scripted:
                    break
        asked, unchanged = len(stage.scripted) > 0, stage.look() == before
    ends = {53, 74} if scenario.expected.writes else {53}
    assert (asked, ran.code in ends, unchanged, find_flaws(ran)) == (True, True, True, []), ran
