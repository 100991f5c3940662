"""Appends and pages whose content the service takes from another blob.

The emulator does not do that, so a scripted service answers as the live one did in the recordings of
``test_append_block_from_url_with_source_if_match`` and its siblings, and as documented for pages.
"""

from tests.support import scripted_service
from tests.support.cases import cases
from tests.support.cli_world import CliWorld
from tests.support.scripted_service import Answer

_TIMES = {"Last-Modified": "Sun, 21 Nov 2026 23:00:00 GMT", "x-ms-creation-time": "Sun, 21 Nov 2026 23:00:00 GMT"}
SOURCE = Answer(200, headers={**_TIMES, "x-ms-blob-type": "BlockBlob", "ETag": '"0x5"', "Content-Length": "512"})
LOG = Answer(200, headers={**_TIMES, "x-ms-blob-type": "AppendBlob", "ETag": '"0x1"', "Content-Length": "4"})
DISK = Answer(200, headers={**_TIMES, "x-ms-blob-type": "PageBlob", "ETag": '"0x1"', "Content-Length": "1024"})
LEASED = Answer(201, headers={**_TIMES, "ETag": '"0x1"', "x-ms-lease-id": "6dd2b9e3-5c17-4a0e-a2f1-8f4c1b7d9e01"})
APPENDED = Answer(201, headers={**_TIMES, "ETag": '"0x2"', "x-ms-blob-append-offset": "4"})
WRITTEN = Answer(201, headers={**_TIMES, "ETag": '"0x2"', "x-ms-blob-sequence-number": "0"})
RELEASED = Answer(200, headers={**_TIMES, "ETag": '"0x2"'})
APPEND = ("blob", "append", "logs/a", "--source", "site/part", "-o", "json")
PUT_NEW = ("blob", "page", "put", "disks/a", "--source", "site/part", "--create", "1KiB", "-o", "json")
PUT = ("blob", "page", "put", "disks/a", "--source", "site/part", "--etag", '"0x1"', "-o", "json")


@cases(
    ("words", "script", "written"),
    (APPEND, (SOURCE, LOG, LEASED, APPENDED, RELEASED), "appended_bytes"),
     (PUT, (SOURCE, DISK, LEASED, WRITTEN, RELEASED), "written_bytes"),
)  # fmt: skip
def test_one_version_of_the_source_is_taken_under_a_lease(
    offline: CliWorld, words: tuple[str, ...], script: tuple[Answer, ...], written: str
) -> None:
    with scripted_service.running(*script) as service:
        ran = offline.call(*words, "--connection-string", service.connection_string)
    sent = service.asked[3][1]
    assert (ran.code, ran.json[written]) == (0, 512), ran.err
    assert (sent["x-ms-source-if-match"], sent["x-ms-source-range"], sent["content-length"]) == (
        '"0x5"', "bytes=0-511", "0",
    )  # fmt: skip
    assert sent["x-ms-copy-source"].endswith("/acc/site/part")
    assert sent["x-ms-lease-id"] == service.asked[2][1]["x-ms-proposed-lease-id"]


@cases(("status", "code"), (412, "CannotVerifyCopySource"), (304, "CannotVerifyCopySource"))
@cases(("words", "there"), (APPEND, LOG), (PUT, DISK))
def test_a_source_that_changed_is_told_as_the_source(
    offline: CliWorld, words: tuple[str, ...], there: Answer, status: int, code: str
) -> None:
    script = [SOURCE, there, LEASED, Answer(status, code), there, RELEASED]
    with scripted_service.running(*script) as service:
        ran = offline.call(*words, "--connection-string", service.connection_string)
    assert (ran.code, ran.error["side"], ran.error["address"]) == (42, "source", "blob:site/part"), ran.err


@cases("words", APPEND, PUT_NEW)
def test_a_condition_on_the_source_is_asked_of_the_source(offline: CliWorld, words: tuple[str, ...]) -> None:
    with scripted_service.running(Answer(412, "ConditionNotMet")) as service:
        ran = offline.call(*words, "--source-if-match", '"0x9"', "--connection-string", service.connection_string)
    assert (ran.code, ran.error["side"], service.asked[0][1]["if-match"]) == (42, "source", '"0x9"'), ran.err
    assert {method for method, _ in service.asked} == {"HEAD"}
