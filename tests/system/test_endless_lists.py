"""Lists whose last page is never reached, because a page names an earlier one as the next."""

from pathlib import Path

import pytest

from tests.support import scripted_service
from tests.support.cli_world import CliWorld

_PAGE = b"<EnumerationResults><%b/><NextMarker>m</NextMarker></EnumerationResults>"
_NEXT = {"x-ms-continuation-NextPartitionKey": "p", "x-ms-continuation-NextTableName": "t"}


@pytest.mark.parametrize(
    ("words", "body"),
    [
        ("blob list site", _PAGE % b"Blobs"),
        ("blob get site/ down -r", _PAGE % b"Blobs"),
        ("container list", _PAGE % b"Containers"),
        ("container delete site --last-writer-wins", _PAGE % b"Blobs"),
        ("lease list site", _PAGE % b"Blobs"),
        ("queue list", _PAGE % b"Queues"),
        ("share list", _PAGE % b"Shares"),
        ("file list docs", _PAGE % b"Entries"),
        ("file handle list docs/a", _PAGE % b"Entries"),
        ("blob page ranges site/a", b"<PageList><NextMarker>m</NextMarker></PageList>"),
        ("table list", b'{"value": []}'),
        ("entity query jobs", b'{"value": []}'),
    ],
)
def test_a_list_that_leads_back_to_an_earlier_page_is_a_fault_of_the_service(
    tmp_path: Path, words: str, body: bytes
) -> None:
    kind = "application/json" if body.startswith(b"{") else "application/xml"
    head = {"Content-Type": kind, "ETag": '"1"', "Last-Modified": "Sat, 21 Nov 2026 10:00:00 GMT", **_NEXT}
    page = scripted_service.Answer(200, headers={**head, "x-ms-blob-type": "PageBlob"}, body=body)
    with scripted_service.running(page) as service:
        ran = CliWorld(tmp_path, service.connection_string).call(*words.split(), "-o", "json")
        assert (ran.code, ran.error["message"].partition(": ")[0][-10:]) == (53, "never ends"), ran.err
