"""Copies that take time, and what the live service says of both sides, by a scripted service.

Azurite ends every copy at once. The headers are those of the recording
``test_common_blob.test_copy_blob_with_existing_blob`` of the live service; the codes of a failed condition are those
of its documentation.
"""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support import scripted_service
from tests.support.cases import cases
from tests.support.cli_world import CliWorld, Ran
from tests.support.scripted_service import Answer, Service

COPY_ID, OTHER_ID = "a3af951c-b689-4cd8-bbb9-1f471637cff1", "6dd2b9e3-5c17-4a0e-a2f1-8f4c1b7d9e01"
BEGUN, ENDED = '"0x8D6D4189B860AD9"', '"0x8D6D418B6C08663"'
COPY = ("blob", "copy", "site/copy", "--source", "site/source")


def shown(etag: str = BEGUN, **headers: str) -> Answer:
    """Return the properties of a blob, with headers such as ``x_ms_copy_status``."""
    base = {"ETag": etag, "Last-Modified": "Thu, 09 May 2019 00:52:27 GMT", "x-ms-blob-type": "BlockBlob",
            "x-ms-lease-state": "available", "x-ms-lease-status": "unlocked"}  # fmt: skip
    return Answer(200, headers={**base, **{name.replace("_", "-"): value for name, value in headers.items()}})


def copied(status: str, etag: str = BEGUN, copy_id: str = COPY_ID, **headers: str) -> Answer:
    """Return the properties of the destination of a copy."""
    return shown(etag, x_ms_copy_id=copy_id, x_ms_copy_status=status, **headers)


def accepted(status: str) -> Answer:
    """Return the answer to a copy that is begun."""
    found = copied(status)
    return Answer(202, headers=found.headers)


SOURCE = shown('"0x8D6D4189B7FC7BC"')
PENDING = copied("pending", x_ms_copy_progress="12/40")


@dataclass(frozen=True)
class Live:
    """A scripted service, and a folder to run command lines in."""

    root: Path

    def run(self, words: tuple[str, ...], *script: Answer) -> tuple[Ran, Service]:
        with scripted_service.running(*script) as service:
            return CliWorld(self.root, service.connection_string).call(*words, "-o", "json"), service


@pytest.fixture
def live(tmp_path: Path) -> Live:
    return Live(tmp_path)


def methods(service: Service) -> list[str]:
    return [method for method, _ in service.asked]


def test_without_wait_the_result_names_the_copy_that_is_pending(live: Live) -> None:
    ran, service = live.run(COPY, SOURCE, accepted("pending"))
    assert (ran.code, ran.json["copy_status"], ran.json["copy_id"]) == (0, "pending", COPY_ID)
    assert methods(service) == ["HEAD", "PUT"]


def test_a_pending_copy_guards_nothing_because_it_gets_another_version(live: Live) -> None:
    with scripted_service.running(SOURCE, accepted("success"), SOURCE, accepted("pending")) as service:
        cli = CliWorld(live.root, service.connection_string)
        assert [cli.call(*COPY).code, len(cli.call("cache", "list").json)] == [0, 1]
        assert [cli.call(*COPY).code, cli.call("cache", "list").json] == [0, []]


def test_wait_ends_with_the_copy_and_tells_the_version_then(live: Live) -> None:
    ran, service = live.run((*COPY, "--wait"), SOURCE, accepted("pending"), PENDING, PENDING, copied("success", ENDED))
    assert (ran.code, ran.json["copy_status"], ran.json["etag"]) == (0, "success", ENDED)
    assert methods(service) == ["HEAD", "PUT", "HEAD", "HEAD", "HEAD"]


def test_what_was_waited_for_guards_the_next_write(live: Live) -> None:
    script = (SOURCE, accepted("pending"), copied("success", ENDED), SOURCE, accepted("success"))
    with scripted_service.running(*script) as service:
        cli = CliWorld(live.root, service.connection_string)
        assert [cli.call(*COPY, *more).code for more in (("--wait",), ())] == [0, 0]
    assert service.asked[4][1]["if-match"] == ENDED


def test_a_copy_that_outlasts_the_wait_goes_on(live: Live) -> None:
    ran, _ = live.run((*COPY, "--wait", "0.3s"), SOURCE, accepted("pending"), PENDING)
    assert (ran.code, ran.error["copy_id"], ran.error["copy_progress"]) == (75, COPY_ID, "12/40")
    assert f"azguard blob abort-copy site/copy --copy-id {COPY_ID}" in ran.error["hint"]


@pytest.mark.parametrize(
    ("description", "code"),
    [
        ('412 PreconditionFailed "The source was changed."', 42), ('404 BlobNotFound "Copy failed."', 44),
        ('403 AuthenticationFailed "Copy failed when reading the source."', 43),
        ('500 OperationCancelled "Copy failed when reading the source."', 53), ("", 53),
    ],
)  # fmt: skip
def test_a_copy_that_fails_ends_by_what_the_service_met(live: Live, description: str, code: int) -> None:
    failed = copied("failed", ENDED, x_ms_copy_status_description=description)
    ran, _ = live.run((*COPY, "--wait"), SOURCE, accepted("pending"), failed)
    assert (ran.code, ran.error["copy_status"], ran.error["current_etag"]) == (code, "failed", ENDED)
    assert "is now an empty blob" in ran.error["message"]


def test_a_copy_that_is_aborted_meanwhile_is_told_as_changed(live: Live) -> None:
    ran, _ = live.run((*COPY, "--wait"), SOURCE, accepted("pending"), copied("aborted", ENDED))
    assert (ran.code, ran.error["copy_status"]) == (42, "aborted")


@pytest.mark.parametrize("meanwhile", [copied("pending", ENDED, OTHER_ID), shown(ENDED)])
def test_another_write_on_the_destination_is_known_by_the_id_of_the_copy(live: Live, meanwhile: Answer) -> None:
    ran, _ = live.run((*COPY, "--wait"), SOURCE, accepted("pending"), meanwhile)
    assert (ran.code, ran.error["copy_id"], ran.error["current_etag"]) == (42, COPY_ID, ENDED)
    assert ran.error["current_copy_id"] == meanwhile.headers.get("x-ms-copy-id")


def test_a_destination_that_is_deleted_meanwhile_is_told_as_gone(live: Live) -> None:
    ran, _ = live.run((*COPY, "--wait"), SOURCE, accepted("pending"), Answer(404, "BlobNotFound"))
    assert (ran.code, ran.error["copy_id"]) == (42, COPY_ID)


@pytest.mark.parametrize(
    ("refusal", "code", "side"),
    [
        (Answer(412, "TargetConditionNotMet"), 45, "destination"), (Answer(412, "SourceConditionNotMet"), 42, "source"),
        (Answer(412, "CannotVerifyCopySource"), 42, "source"), (Answer(304, "CannotVerifyCopySource"), 42, "source"),
        (Answer(404, "CannotVerifyCopySource"), 44, "source"), (Answer(403, "CannotVerifyCopySource"), 43, "source"),
        (Answer(409, "BlobAlreadyExists"), 45, "destination"),
    ],
)  # fmt: skip
def test_the_sides_of_a_refusal_are_told_apart(live: Live, refusal: Answer, code: int, side: str) -> None:
    ran, _ = live.run((*COPY, "--source-if-match", "0x8D6D4189B7FC7BC"), SOURCE, refusal, Answer(404, "BlobNotFound"))
    assert (ran.code, ran.error["side"]) == (code, side), ran.err
    assert ran.error["address"] == ("blob:site/source" if side == "source" else "blob:site/copy")


def test_an_infinite_lease_is_asked_for_where_the_service_needs_one(live: Live) -> None:
    words = (*COPY, "--lease-id", OTHER_ID, "--last-writer-wins")
    ran, _ = live.run(words, SOURCE, Answer(412, "InfiniteLeaseDurationRequired"), shown())
    assert (ran.code, "--infinite" in ran.error["hint"]) == (49, True)


def test_a_destination_with_a_pending_copy_is_busy(live: Live) -> None:
    ran, _ = live.run(COPY, SOURCE, Answer(409, "PendingCopyOperation"), PENDING)
    assert ran.code == 49


def test_show_says_how_far_a_copy_is(live: Live) -> None:
    told = live.run(("blob", "show", "site/copy"), PENDING)[0].json
    assert [told[name] for name in ("copy_id", "copy_status", "copy_progress")] == [COPY_ID, "pending", "12/40"]


def test_the_wait_says_what_becomes_of_the_copy(live: Live) -> None:
    words = ("blob", "copy", "site/copy", "--source", "site/source", "--wait")
    with scripted_service.running(SOURCE, accepted("pending"), copied("success", ENDED)) as service:
        ran = CliWorld(live.root, service.connection_string).call(*words)
    assert f"waiting for copy {COPY_ID} to site/copy; it goes on if you stop waiting" in ran.err


def test_an_abort_stops_the_copy_that_is_shown(live: Live) -> None:
    ran, service = live.run(("blob", "abort-copy", "site/copy"), PENDING, Answer(204), copied("aborted", ENDED))
    assert (ran.code, ran.json["copy_id"], ran.json["copy_status"]) == (0, COPY_ID, "aborted")
    assert service.asked[1][1]["x-ms-copy-action"] == "abort"


def test_an_abort_after_an_abort_changes_nothing(live: Live) -> None:
    ran, service = live.run(("blob", "abort-copy", "site/copy", "--copy-id", COPY_ID), copied("aborted"))
    assert (ran.code, ran.json["outcome"], methods(service)) == (0, "unchanged", ["HEAD"])


@pytest.mark.parametrize("status", ["success", "failed"])
def test_a_copy_that_has_ended_cannot_be_stopped(live: Live, status: str) -> None:
    ran, _ = live.run(("blob", "abort-copy", "site/copy"), copied(status))
    assert (ran.code, ran.error["copy_status"]) == (42, status)


@pytest.mark.parametrize(
    ("refusal", "found", "code"),
    [
        (Answer(409, "NoPendingCopyOperation"), copied("success"), 42),
        (Answer(409, "NoPendingCopyOperation"), copied("aborted"), 0),
        (Answer(409, "CopyIdMismatch"), copied("pending", copy_id=OTHER_ID), 42),
        (Answer(412, "LeaseIdMissing"), PENDING, 49),
        (Answer(503, "ServerBusy"), copied("aborted"), 0), (Answer(503, "ServerBusy"), copied("success"), 42),
    ],
)  # fmt: skip
def test_an_abort_without_success_is_settled_by_the_copy(live: Live, refusal: Answer, found: Answer, code: int) -> None:
    ran, _ = live.run(("blob", "abort-copy", "site/copy"), PENDING, refusal, found)
    assert ran.code == code, ran.err


def test_an_abort_that_was_not_done_is_sent_again(live: Live) -> None:
    words = ("blob", "abort-copy", "site/copy")
    ran, service = live.run(words, PENDING, Answer(503, "ServerBusy"), PENDING, Answer(204), copied("aborted"))
    assert (ran.code, ran.json["attempts"], methods(service).count("PUT")) == (0, 2, 2)


def test_another_id_than_that_of_the_pending_copy_stops_nothing(live: Live) -> None:
    ran, service = live.run(("blob", "abort-copy", "site/copy", "--copy-id", OTHER_ID), PENDING)
    assert (ran.code, ran.error["current_copy_id"], methods(service)) == (42, COPY_ID, ["HEAD"])


def test_a_blob_that_is_no_copy_has_none_to_stop(live: Live) -> None:
    assert live.run(("blob", "abort-copy", "site/copy"), shown())[0].code == 44


def test_a_version_is_restored_by_its_id(live: Live) -> None:
    version = "2026-11-21T10:00:00.0000000Z"
    words = ("blob", "restore", "site/a", "--from", f"versionid={version}")
    ran, service = live.run(words, SOURCE, accepted("success"))
    url = str(service.asked[1][1]["x-ms-copy-source"])
    assert (ran.code, url.endswith("/site/a?versionid=2026-11-21T10%3A00%3A00.0000000Z")) == (0, True), url


def test_an_undelete_tells_the_version_that_is_back(live: Live) -> None:
    ran, service = live.run(("blob", "undelete", "site/a"), Answer(200), shown(ENDED))
    assert (ran.code, ran.json["etag"], methods(service)) == (0, ENDED, ["PUT", "HEAD"])


def test_an_undelete_that_is_not_answered_is_sent_again(live: Live) -> None:
    ran, _ = live.run(("blob", "undelete", "site/a"), Answer(503, "ServerBusy"), Answer(200), shown(ENDED))
    assert (ran.code, ran.json["attempts"]) == (0, 2)


def test_an_undelete_of_nothing_that_is_kept_is_not_found(live: Live) -> None:
    assert live.run(("blob", "undelete", "site/a"), Answer(404, "BlobNotFound"))[0].code == 44


def test_an_undelete_that_leaves_no_current_version_says_how_to_go_on(live: Live) -> None:
    ran, _ = live.run(("blob", "undelete", "site/a"), Answer(200), Answer(404, "BlobNotFound"))
    assert (ran.code, "--from versionid=ID" in ran.error["hint"]) == (44, True)


def test_an_undelete_takes_no_read_for_granted(live: Live) -> None:
    live.run(("blob", "undelete", "site/a"), Answer(200), shown(ENDED))
    assert CliWorld(live.root, "").call("cache", "list", "-o", "json").json == []


def kept(*versions: str) -> Answer:
    """Return the list of containers of which these versions of ``site`` are kept after they were deleted."""
    items = "".join(
        f"<Container><Name>{name}</Name><Deleted>true</Deleted><Version>{version}</Version><Properties>"
        "<Last-Modified>Thu, 09 May 2019 00:52:27 GMT</Last-Modified><Etag>0x8D6</Etag>"
        "<DeletedTime>Fri, 10 May 2019 00:52:27 GMT</DeletedTime><RemainingRetentionDays>6</RemainingRetentionDays>"
        "</Properties><Metadata><owner>ops</owner></Metadata></Container>"
        for version in versions
        for name in ("site", "site-2")
    )
    return Answer(200, body=f"<EnumerationResults><Containers>{items}</Containers></EnumerationResults>".encode())


UNDELETE = ("container", "undelete", "site")
BACK = shown(ENDED, x_ms_meta_owner="ops")


def test_a_container_comes_back_by_its_version(live: Live) -> None:
    ran, service = live.run(UNDELETE, kept("01D6"), Answer(201), BACK)
    sent = service.asked[1][1]
    assert (ran.code, ran.json["etag"], ran.json["guard"]) == (0, ENDED, "if-none-match")
    assert (sent["x-ms-deleted-container-name"], sent["x-ms-deleted-container-version"]) == ("site", "01D6")
    assert service.paths[1] == "/acc/site?comp=undelete&restype=container"


def test_a_list_of_containers_tells_which_are_kept_and_for_how_long(live: Live) -> None:
    ran, service = live.run(("container", "list", "--include", "deleted"), kept("01D6"))
    told = [ran.json[0][name] for name in ("deleted", "deleted_version", "remaining_retention_days")]
    assert (told, "include=metadata%2Cdeleted" in service.paths[0]) == ([True, "01D6", 6], True)


@cases(
    ("script", "code"),
    ((kept(), Answer(404)), 44),
    ((kept("01D6", "01D7"), Answer(404)), 2),
    ((kept("01D6"), Answer(409, "ContainerAlreadyExists"), kept("01D6")), 45),
    # The network sent it twice, and the second copy was refused.
    ((kept("01D6"), Answer(409, "ContainerAlreadyExists"), kept(), BACK), 0),
    ((kept("01D6"), Answer(409, "ContainerBeingDeleted"), kept("01D6")), 49),
    ((kept("01D6"), Answer(503), kept(), BACK), 0),
    ((kept("01D6"), Answer(503), kept("01D6"), Answer(201), BACK), 0),
    # Another container has the name, or the version went elsewhere.
    ((kept("01D6"), Answer(503), kept(), shown(ENDED)), 74),
    ((kept("01D6"), Answer(503), kept(), Answer(404, "ContainerNotFound")), 74),
    ((kept("01D6"), Answer(201), Answer(403, "AuthorizationPermissionMismatch")), 0),
)
def test_an_undelete_of_a_container_is_settled_by_a_list(tmp_path: Path, script: tuple[Answer, ...], code: int) -> None:
    assert Live(tmp_path).run((*UNDELETE, "--timeout", "5s"), *script)[0].code == code
