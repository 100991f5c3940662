"""Who holds what open over SMB, and closing it.

The answers of the service are recorded, since the emulator of these tests has no SMB.
"""

from pathlib import Path

import pytest

from tests.support import files_world, scripted_service
from tests.support.cli_world import CliWorld
from tests.support.faultproxy.faults import Fault
from tests.support.scripted_service import Answer, Service

_NO_FILE = Answer(404, "ResourceNotFound")
_PENDING = Answer(409, "DeletePending")


def _closed(closed: int, failed: int = 0) -> Answer:
    return Answer(
        200, headers={"x-ms-number-of-handles-closed": str(closed), "x-ms-number-of-handles-failed": str(failed)}
    )


def _world(folder: Path, service: Service) -> CliWorld:
    return CliWorld(folder, service.connection_string)


def test_handles_are_listed_with_their_client_their_access_and_since_when(tmp_path: Path) -> None:
    with scripted_service.running(Answer.recorded("test_handle.test_list_handles_access_rights", 0)) as service:
        ran = _world(tmp_path, service).call("file", "handle", "list", "mytestshare/testdir/testfile.txt")
    assert ran.json == [
        {
            "handle_id": "458773",
            "path": "mytestshare/testdir/testfile.txt",
            "client": "0.0.0.0:0",
            "client_name": "JALAUZON-DEV",
            "access": ["Write"],
            "opened": "2023-11-08T23:35:03Z",
            "reconnected": None,
            "session_id": "36116771572285445",
            "file_id": "9223407221226864640",
            "parent_id": "13835128424026341376",
        }
    ]
    assert [method for method, _ in service.asked] == ["GET"]


def test_handles_of_a_whole_share_are_asked_for_page_by_page(tmp_path: Path) -> None:
    script = [Answer.recorded("test_handle.test_list_handles_with_marker", number) for number in (0, 1)]
    with scripted_service.running(*script) as service:
        ran = _world(tmp_path, service).call("file", "handle", "list", "test", "--recursive", "--num-results", "2")
    assert [(each["handle_id"], each["path"], each["access"]) for each in ran.json] == [
        ("21123954401", "test", []), ("21123954403", "test", []),
    ]  # fmt: skip
    assert [headers["x-ms-recursive"].lower() for _, headers in service.asked] == ["true", "true"]


@pytest.mark.parametrize(
    ("words", "handle", "recursive"),
    [(("--handle-id", "7"), "7", None), (("--close-all",), "*", None), (("--close-all", "--recursive"), "*", "true")],
)
def test_handles_are_closed_by_one_request_and_none_before_it(
    tmp_path: Path, words: tuple[str, ...], handle: str, recursive: str | None
) -> None:
    with scripted_service.running(_closed(2)) as service:
        ran = _world(tmp_path, service).call("file", "handle", "close", "team/plan.txt", *words)
    sent = service.asked[0][1]
    assert (ran.code, ran.json["closed"], ran.json["failed"], ran.json["outcome"]) == (0, 2, 0, "committed")
    assert (len(service.asked), sent["x-ms-handle-id"]) == (1, handle)
    assert sent.get("x-ms-recursive", "").lower() == (recursive or "")


@pytest.mark.parametrize(
    ("answers", "code", "closed", "outcome"),
    [
        ([_closed(0)], 0, 0, "unchanged"),
        ([_closed(1, failed=2)], 20, 1, "committed"),
        # A lost answer may have told of any number, and a file in delete pending goes with its last handle.
        ([Answer(503), _closed(0)], 0, None, "committed"),
        ([Answer(503), _NO_FILE], 0, None, "committed"),
    ],
)
def test_the_result_counts_what_is_known(
    tmp_path: Path, answers: list[Answer], code: int, closed: int | None, outcome: str
) -> None:
    with scripted_service.running(*answers) as service:
        ran = _world(tmp_path, service).call("file", "handle", "close", "team/plan.txt", "--close-all")
    assert (ran.code, ran.json["closed"], ran.json["outcome"]) == (code, closed, outcome)


@pytest.mark.parametrize(("answer", "code"), [(_NO_FILE, 44), (_PENDING, 49), (Answer(503), 74)])
def test_a_refusal_and_a_silence_are_told(tmp_path: Path, answer: Answer, code: int) -> None:
    with scripted_service.running(answer) as service:
        ran = _world(tmp_path, service).call(
            "file", "handle", "close", "team/plan.txt", "--close-all", "--timeout", "1s", "-o", "json"
        )
    assert ran.code == code


@pytest.mark.parametrize("fault", [Fault.DROP, Fault.RESET, Fault.REPLAYED])
def test_a_close_whose_answer_is_lost_is_sent_again(files_cli: CliWorld, fault: Fault) -> None:
    file = files_world.make(files_cli)
    ran, log = files_world.spoilt(
        files_cli, fault, "file", "handle", "close", file, "--close-all", which="comp=forceclosehandles"
    )
    assert (ran.code, log[-1]) == (0, ("PUT", True))


@pytest.mark.parametrize("noun", ["", "share:", "dir:", "file:"])
def test_each_kind_of_path_has_handles(files_cli: CliWorld, noun: str) -> None:
    file = files_world.make(files_cli)
    address = file.partition("/")[0] if noun == "share:" else file
    assert files_cli.call("file", "handle", "list", f"{noun}{address}").json == []
