"""A service that asks to be left alone for a while: it is, and where that is too long azguard ends at once."""

from itertools import pairwise
from pathlib import Path

import pytest

from tests.support import scripted_service
from tests.support.cli_world import CliWorld
from tests.support.scripted_service import Answer

DATES = {"Date": "Sat, 21 Nov 2026 10:00:00 GMT", "Last-Modified": "Sat, 21 Nov 2026 10:00:00 GMT"}
VERSION = {**DATES, "ETag": '"0x1"', "x-ms-blob-type": "BlockBlob", "x-ms-lease-state": "available"}
FOUND = Answer(200, headers=VERSION)
CONTENT = Answer(206, headers={**VERSION, "Content-Range": "bytes 0-2/3"}, body=b"old")
CREATED = Answer(201, headers=VERSION)
GONE = Answer(404, "BlobNotFound")
LIST = Answer(
    200, headers={"Content-Type": "application/xml"}, body=b"<EnumerationResults><Blobs/></EnumerationResults>"
)
SOON = Answer(503, "ServerBusy", {"Retry-After": "1"})
AT = Answer(503, "ServerBusy", {**DATES, "Retry-After": "Sat, 21 Nov 2026 10:00:01 GMT"})
BY_GATEWAY = Answer(429, headers={"Retry-After": "1"})
LATE = Answer(503, "ServerBusy", {"Retry-After": "120"})
FAILING = "the service answered 503 ServerBusy and asks to be left alone for 2m"


def pauses(service: scripted_service.Service) -> list[float]:
    return [after - before for before, after in pairwise(service.moments)]


@pytest.mark.parametrize(
    ("words", "script"),
    [
        ("blob show site/a --timeout 30s", (SOON, FOUND)),
        ("blob show site/a --timeout 30s", (AT, FOUND)),
        ("blob show site/a --timeout 30s", (BY_GATEWAY, FOUND)),
        ("blob put site/a --timeout 30s", (SOON, GONE, CREATED)),
        ("lock run l --wait 30s -- true", (SOON, FOUND)),
        ("queue work jobs --timeout 30s --drain -- true", (SOON, GONE)),
    ],
)
def test_it_is_asked_again_when_it_says(tmp_path: Path, words: str, script: tuple[Answer, ...]) -> None:
    with scripted_service.running(*script) as service:
        CliWorld(tmp_path, service.connection_string).call(*words.split(), stdin=b"new")
    assert 0.95 < pauses(service)[0] < 3


def test_one_answer_slows_all_files_of_a_tree(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / "tree").mkdir(exist_ok=True)
        (tmp_path / f"tree/f{number}").write_text("new")
    with scripted_service.running(LIST, SOON, CREATED) as service:
        CliWorld(tmp_path, service.connection_string).call("blob", "put", "tree", "site/", "-r", "--jobs", "2")
    asked = [number for number, pause in enumerate(pauses(service), 1) if pause > 0.8]
    # The list, the file that was refused, and what the other job sent until the refusal was read: at most two files.
    assert asked[0] <= 4


@pytest.mark.parametrize(
    ("words", "script", "code"),
    [
        ("blob show site/a --timeout 20s", (LATE,), 53),
        ("blob list site --timeout 20s", (LATE,), 53),
        ("blob put tree site/ -r --timeout 20s", (LATE,), 53),
        ("blob wait site/a --until exists --wait 20s", (LATE,), 53),
        ("safe-update blob:site/a --append x --timeout 20s", (LATE,), 53),
        ("lock run l --wait 20s -- true", (LATE,), 53),
        ("lock run l --no-wait -- true", (LATE,), 53),
        ("queue show jobs --timeout 20s", (LATE,), 53),
        ("share show docs --timeout 20s", (LATE,), 53),
        ("entity get jobs/p/r --timeout 20s", (LATE,), 53),
        # These were sent, so that their outcome is asked for once, and cannot be known.
        ("blob put site/a --timeout 20s", (LATE,), 74),
        ("safe-update blob:site/a --append x --timeout 20s", (CONTENT, FOUND, LATE), 74),
        ("queue work jobs --timeout 20s -- true", (LATE,), 74),
    ],
)
def test_what_would_come_too_late_is_not_waited_for(
    tmp_path: Path, words: str, script: tuple[Answer, ...], code: int
) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/f").write_text("new")
    with scripted_service.running(*script) as service:
        ran = CliWorld(tmp_path, service.connection_string).call(*words.split(), stdin=b"new")
    assert (ran.code, FAILING in ran.err) == (code, True), ran.err
    assert sum(pauses(service)) < 5
