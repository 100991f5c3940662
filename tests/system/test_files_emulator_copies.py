"""Copies from another server in the emulator: pending until all is there, as in the service."""

from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from azure.storage.fileshare import ShareClient

from azguard.emulators.files.__main__ import ACCOUNT, KEY
from azguard.emulators.files.server import serve
from tests.support import threaded_server
from tests.support.emulator_world import until
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Chosen, Fault, Request
from tests.support.files_emulator import SECRET, FilesEmulator, Reply

_CONTENT = b"what is copied" * 100


@dataclass
class Source:
    """Another Files server of the same account, whose content comes when the test says so."""

    url: str = ""
    fault: Fault = Fault.NONE
    is_open: bool = False

    def decide(self, request: Request) -> Chosen:
        """Hold the content."""
        if request.method != "GET":
            return Chosen()
        return Chosen(self.fault, until=lambda: self.is_open)


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    running = serve(tmp_path_factory.mktemp("elsewhere"), {ACCOUNT: SECRET}, "127.0.0.1", 0)
    endpoint = f"http://127.0.0.1:{running.port}/{ACCOUNT}"
    share = ShareClient.from_connection_string(f"AccountName={ACCOUNT};AccountKey={KEY};FileEndpoint={endpoint}", "far")
    share.create_share()
    share.get_file_client("f").upload_file(_CONTENT, metadata={"Kind": "big"})
    yield running.port
    running.stop()


@pytest.fixture
def source(elsewhere: int) -> Iterator[Source]:
    found = Source()
    with proxy.running(elsewhere, found.decide) as between:
        found.url = f"http://127.0.0.1:{between.port}/{ACCOUNT}/far/f"
        yield found
        found.is_open = True


@pytest.fixture
def files(tmp_path: Path) -> Iterator[FilesEmulator]:
    found = FilesEmulator(tmp_path)
    yield found
    found.close()


def _begin(files: FilesEmulator, source: Source) -> Reply:
    files.ask("PUT", "work?restype=share")
    return files.ask("PUT", "work/f", {"x-ms-copy-source": source.url})


def _await_end(files: FilesEmulator, path: str = "work/f") -> Reply:
    until(lambda: files.ask("HEAD", path).headers["x-ms-copy-status"] != "pending")
    return files.ask("GET", path)


def _tell(shown: Reply) -> tuple[bytes, str, str]:
    return shown.body, shown.headers["x-ms-copy-status"], shown.headers["x-ms-copy-progress"]


def test_a_copy_from_another_server_is_pending_and_then_has_all_of_its_source(
    files: FilesEmulator, source: Source
) -> None:
    begun = _begin(files, source)
    meanwhile = files.ask("GET", "work/f")
    source.is_open = True
    ended = _await_end(files)

    assert (begun.status, begun.headers["x-ms-copy-status"]) == (202, "pending")
    assert _tell(meanwhile) == (b"", "pending", f"0/{len(_CONTENT)}")
    assert _tell(ended) == (_CONTENT, "success", f"{len(_CONTENT)}/{len(_CONTENT)}")
    assert (ended.headers["x-ms-copy-id"], ended.headers["x-ms-meta-kind"]) == (begun.headers["x-ms-copy-id"], "big")


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("PUT", "work/f", {"x-ms-type": "file", "x-ms-content-length": "1"}),
        ("PUT", "work/f", {"x-ms-copy-source": f"http://127.0.0.1:10004/{ACCOUNT}/work/g"}),
        ("PUT", "work/f?comp=range", {"x-ms-write": "clear", "x-ms-range": "bytes=0-0"}),
        ("PUT", "work/f?comp=metadata", {}),
        ("PUT", "work/f?comp=properties", {}),
        ("DELETE", "work/f", {}),
        ("PUT", "work/h?comp=rename", {"x-ms-file-rename-source": f"http://127.0.0.1:10004/{ACCOUNT}/work/f"}),
        (
            "PUT",
            "work/f?comp=rename",
            {
                "x-ms-file-rename-source": f"http://127.0.0.1:10004/{ACCOUNT}/work/g",
                "x-ms-file-rename-replace-if-exists": "true",
            },
        ),
    ],
)
def test_nothing_else_writes_to_the_destination_of_a_pending_copy(
    files: FilesEmulator, source: Source, method: str, path: str, headers: dict[str, str]
) -> None:
    _begin(files, source)
    files.ask("PUT", "work/g", {"x-ms-type": "file", "x-ms-content-length": "1"})

    assert files.ask(method, path, headers).said == (409, "PendingCopyOperation")


def test_an_aborted_copy_leaves_an_empty_file_that_can_be_written(files: FilesEmulator, source: Source) -> None:
    copy_id = _begin(files, source).headers["x-ms-copy-id"]
    said = [
        files.ask("PUT", f"work/f?comp=copy&copyid={each}", {"x-ms-copy-action": "abort"}).said
        for each in ("another", copy_id, copy_id)
    ]
    source.is_open = True

    assert said == [(409, "CopyIdMismatch"), (204, None), (409, "NoPendingCopyOperation")]
    assert _tell(files.ask("GET", "work/f")) == (b"", "aborted", f"0/{len(_CONTENT)}")
    assert files.ask("DELETE", "work/f").status == 202


def test_a_copy_whose_source_breaks_off_has_failed(files: FilesEmulator, source: Source) -> None:
    source.fault = Fault.HALF
    _begin(files, source)
    source.is_open = True
    shown = _await_end(files)

    assert (shown.body, shown.headers["x-ms-copy-status"]) == (b"", "failed")
    assert shown.headers["x-ms-copy-status-description"].startswith("500 ")


def test_a_source_that_is_not_there_is_refused_at_once(files: FilesEmulator, source: Source) -> None:
    source.url += "-not"

    assert _begin(files, source).said == (404, "CannotVerifyCopySource")
    assert files.ask("HEAD", "work/f").said == (404, "ResourceNotFound")


def test_a_redirected_source_is_not_followed_with_its_credential(files: FilesEmulator, elsewhere: int) -> None:
    asked: list[dict[str, str]] = []

    class Answer(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            asked.append(dict(self.headers))
            self.send_response(302)
            self.send_header("Location", f"http://localhost:{self.server.server_port}/{ACCOUNT}/far/f")  # type: ignore[attr-defined]  # a server over TCP has a port
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with threaded_server.running(HTTPServer(("127.0.0.1", 0), Answer)) as server:
        url = f"http://127.0.0.1:{server.server_port}/{ACCOUNT}/far/f"
        files.ask("PUT", "work?restype=share")
        headers = {"x-ms-copy-source": url, "x-ms-copy-source-authorization": "Bearer secret"}
        said = files.ask("PUT", "work/f", headers).said
    assert (said, len(asked)) == ((400, "CannotVerifyCopySource"), 1)


def test_a_copy_that_was_pending_when_the_emulator_was_killed_has_failed(
    files: FilesEmulator, source: Source, tmp_path: Path
) -> None:
    _begin(files, source)
    files.close()
    again = FilesEmulator(tmp_path)

    assert again.ask("HEAD", "work/f").headers["x-ms-copy-status"] == "failed"
    assert again.ask("DELETE", "work/f").status == 202
    again.close()
