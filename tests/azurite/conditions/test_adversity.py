"""Each command of blobs, containers and queues where nothing is, and where what answers is not the service."""

import pytest

from azguard.emulators.state import Azurite
from tests.support.cli_world import CliWorld
from tests.support.condition_stage import find_flaws
from tests.support.scenarios import PLAYED, Scenario
from tests.support.staging import staged

_MAKES = {each.operation for each in PLAYED if each.expected.write == "puts"} | {"blob.put_block"}
_NEEDS_BLOB = [each for each in PLAYED if each.noun == "blob" and each.operation not in _MAKES]
_NEEDS_CONTAINER = [
    each for each in PLAYED if each.noun in ("blob", "container") and each.operation != "container.create"
]
_NEEDS_QUEUE = [each for each in PLAYED if each.noun == "queue" and each.operation != "queue.create"]
_HTML = {"content-type": "text/html", "server": "nginx", "etag": '"0x8D0000000000000"'}


@pytest.mark.parametrize("scenario", _NEEDS_BLOB, ids=str)
def test_a_blob_that_is_missing_is_said_to_be(scenario: Scenario, cli: CliWorld, azurite: Azurite) -> None:
    with staged(scenario, cli, azurite.ports) as stage:
        stage.facts["blob"] = stage.facts["missing"]
        ran = stage.run(*scenario.anyhow)
    is_question = scenario.line.split()[1] == "exists"
    assert (ran.code, is_question or find_flaws(ran) == []) == (44, True), ran.err


@pytest.mark.parametrize("scenario", _NEEDS_CONTAINER, ids=str)
def test_a_container_that_is_missing_is_said_to_be(scenario: Scenario, cli: CliWorld, azurite: Azurite) -> None:
    with staged(scenario, cli, azurite.ports) as stage:
        stage.facts["container"], stage.facts["blob"] = "no-such-container", "no-such-container/b"
        ran = stage.run(*scenario.anyhow)
    is_question = scenario.line.split()[1] == "exists"
    assert (ran.code, is_question or find_flaws(ran) == []) == (44, True), ran.err


@pytest.mark.parametrize("scenario", _NEEDS_QUEUE, ids=str)
def test_a_queue_that_is_missing_is_said_to_be(scenario: Scenario, cli: CliWorld, azurite: Azurite) -> None:
    with staged(scenario, cli, azurite.ports) as stage:
        stage.facts["queue"], stage.facts["message"] = "no-such-queue", "no-such-queue/1"
        ran = stage.run(*scenario.anyhow)
    is_question = scenario.line.split()[1] == "exists"
    assert (ran.code, is_question or find_flaws(ran) == []) == (44, True), ran.err


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
