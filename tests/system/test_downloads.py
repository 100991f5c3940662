"""A large blob is read in several ranges at once, and never becomes a mixture of two versions."""

import hashlib
import io
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import BinaryIO

import pytest

from azguard.accounts.account import SINGLE_BYTES, Account, Auth, Target
from azguard.address import Address, Kind
from azguard.blobs.content.download import BlobDownload
from azguard.errors import AzguardError, Changed, NotFound, Unavailable
from azguard.files.guarding import Guarding
from azguard.files.updates import FileContent
from azguard.guards.resolve import Conditions
from azguard.requests.deadline import Deadline
from azguard.resources import delivery, ranges
from azguard.resources.delivery import Progress
from azguard.resources.downloads import Got
from azguard.resources.ranges import RANGE_BYTES
from tests.support.cases import cases
from tests.support.emulator_world import until
from tests.support.no_records import NoRecords
from tests.support.ranged_service import RangeAnswer, RangedService, Spoil, serving

#: Five ranges of 8 MiB, the last of them short.
LENGTH = 4 * SINGLE_BYTES + 5
SECOND = 2 * SINGLE_BYTES
LEASE = "0f3c1111-2222-3333-4444-555566667777"


@cache
def content() -> bytes:
    """Return what the blob holds."""
    return (os.urandom(999_983) * 34)[:LENGTH]


@cache
def newer() -> bytes:
    """Return what another writer puts there meanwhile."""
    return (os.urandom(999_983) * 26)[: 3 * SINGLE_BYTES + 7]


def admit(_: str) -> None:
    """Let whatever was read take the place of the file."""


def to_stream(service: RangedService, conditions: Conditions, stream: BinaryIO) -> None:
    begin = partial(BlobDownload, service.target, conditions, Deadline)
    delivery.to_stream(service.target, begin, stream, lambda *_: None)


def to_file(
    service: RangedService,
    file: Path,
    deadline: Deadline,
    progress: Progress = lambda *_: None,
    *,
    validates: bool = False,
) -> Got:
    begin = partial(BlobDownload, service.target, Conditions(), deadline.fresh, validates=validates)
    return delivery.to_file(service.target, begin, file, deadline, progress, admit)[0]


def read(service: RangedService, conditions: Conditions | None = None) -> bytes:
    stream = io.BytesIO()
    to_stream(service, conditions or Conditions(), stream)
    return stream.getvalue()


def read_file(service: RangedService, file: Path, progress: Callable[[int, int], None] = lambda *_: None) -> str:
    return to_file(service, file, Deadline(), progress).content_hash


def in_reverse() -> Spoil:
    """Keep each range back until the one after it was answered, the last one first."""
    answered: dict[int, threading.Event] = {
        begin: threading.Event() for begin in range(SINGLE_BYTES, LENGTH, SINGLE_BYTES)
    }

    def spoil(begin: int, answer: RangeAnswer) -> RangeAnswer:
        if (after := answered.get(begin + SINGLE_BYTES)) is not None and begin:
            after.wait(60)
        if begin in answered:
            answered[begin].set()
        return answer

    return spoil


def test_every_further_range_is_pinned_to_the_first_answer_and_carries_the_lease_but_no_other_condition() -> None:
    asked = Conditions({"If-None-Match": '"0x2"', "x-ms-if-tags": "a = 'b'"}, lease_id=LEASE)
    names = ("if-match", "if-none-match", "x-ms-if-tags", "x-ms-lease-id")
    with serving(content()) as service:
        read(service, asked)
    sent = [tuple(headers.get(name) for name in names) for headers in service.asked]
    assert (sent[0], set(sent[1:])) == (
        (None, '"0x2"', "a = 'b'", LEASE),
        {('"0x1"', None, None, LEASE)},
    )


def test_each_byte_is_asked_for_once() -> None:
    with serving(content()) as service:
        read(service)
    begins = [0, *range(SINGLE_BYTES, LENGTH, SINGLE_BYTES)]
    assert sorted(int(each[len("bytes=") :].partition("-")[0]) for each in service.ranges) == begins


@cases("size", 1, RANGE_BYTES, SINGLE_BYTES)
def test_a_small_blob_costs_one_request(size: int) -> None:
    with serving(content()[:size]) as service:
        assert (read(service) == content()[:size], len(service.asked)) == (True, 1)


def test_a_stream_gets_the_content_in_order_whatever_the_order_of_the_answers() -> None:
    with serving(content(), in_reverse()) as service:
        assert read(service) == content()


def test_a_file_gets_each_piece_at_its_place_whatever_the_order_of_the_answers(tmp_path: Path) -> None:
    with serving(content(), in_reverse()) as service:
        content_hash = read_file(service, tmp_path / "copy")
    assert ((tmp_path / "copy").read_bytes() == content(), content_hash) == (
        True,
        "sha256:" + hashlib.sha256(content()).hexdigest(),
    )


def test_progress_grows_to_the_size(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    with serving(content(), in_reverse()) as service:
        read_file(service, tmp_path / "copy", lambda *at: told.append(at))
    done = [each for each, _ in told]
    assert (done == sorted(set(done)), told[-1]) == (True, (LENGTH, LENGTH))


def test_no_more_is_asked_for_than_is_written_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "AT_ONCE", 2)
    third = threading.Event()

    def spoil(begin: int, answer: RangeAnswer) -> RangeAnswer:
        if begin > SECOND:
            third.set()
        return answer

    with serving(content(), spoil) as service:
        pieces = iter(BlobDownload(service.target, Conditions(), Deadline))
        next(pieces)
        next(pieces)
        was_early = third.wait(0.3)
        rest = b"".join(pieces)
    assert (was_early, len(rest)) == (False, LENGTH - 2 * SINGLE_BYTES)


def test_several_downloads_at_once_share_what_is_in_memory() -> None:
    asked: list[int] = []

    def read(offset: int, length: int) -> bytes:
        asked.append(offset)
        return bytes(length)

    many = [ranges.Ranges(read, 0, 100 * RANGE_BYTES) for _ in range(8)]
    until(lambda: len(asked) == 6 + 3 + 2 + 5)
    for each in many:
        each.close()
    alone = ranges.Ranges(read, 0, 100 * RANGE_BYTES)
    until(lambda: len(asked) == 16 + 6)
    alone.close()


def whole(_: int, answer: RangeAnswer) -> RangeAnswer:
    return replace(answer, status=200, body=content(), content_range=None)


def whole_behind_first(begin: int, answer: RangeAnswer) -> RangeAnswer:
    return whole(begin, answer) if begin else answer


def of_another_version(begin: int, answer: RangeAnswer) -> RangeAnswer:
    return replace(answer, etag='"0x2"') if begin == SECOND else answer


def another_range(begin: int, answer: RangeAnswer) -> RangeAnswer:
    if begin != SECOND:
        return answer
    return replace(answer, content_range=f"bytes {SINGLE_BYTES}-{SECOND - 1}/{LENGTH}")


def without_a_range(begin: int, answer: RangeAnswer) -> RangeAnswer:
    return replace(answer, content_range=None) if begin == SECOND else answer


def of_another_length(begin: int, answer: RangeAnswer) -> RangeAnswer:
    return replace(answer, body=answer.body[1:]) if begin == SECOND else answer


def short_in_chunks(begin: int, answer: RangeAnswer) -> RangeAnswer:
    return replace(of_another_length(begin, answer), chunked=True)


@pytest.mark.parametrize(
    "spoil",
    [whole, whole_behind_first, of_another_version, another_range, without_a_range, of_another_length, short_in_chunks],
    ids=lambda spoil: str(spoil.__name__),
)
def test_an_answer_that_is_not_the_range_of_that_version_is_refused_and_the_file_stays(
    tmp_path: Path, spoil: Spoil
) -> None:
    file = tmp_path / "copy"
    file.write_bytes(b"old")
    with serving(content(), spoil) as service, pytest.raises(Unavailable) as refused:
        read_file(service, file)
    assert (refused.value.reason, [each.name for each in tmp_path.iterdir()], file.read_bytes()) == (
        "wrong_range",
        ["copy"],
        b"old",
    )


def test_an_update_of_a_file_takes_no_shorter_answer_for_its_content() -> None:
    with serving(b"0123456789", lambda _, answer: replace(answer, body=answer.body[:5])) as service:
        account = Account("acc", {"file": f"http://127.0.0.1:{service.port}/acc"}, Auth.KEY, "a2V5")
        file = FileContent(Target(account, Address(Kind.FILE, ("team", "a"))), Guarding(NoRecords(), None))
        with pytest.raises(Unavailable) as refused:
            file.read(Deadline())
    assert refused.value.reason == "wrong_range"


@cases("size", RANGE_BYTES, LENGTH)
def test_answers_in_chunks_are_as_good(size: int) -> None:
    with serving(content()[:size], lambda _, answer: replace(answer, chunked=True)) as service:
        assert read(service) == content()[:size]


def test_a_range_that_ends_too_soon_is_asked_for_again() -> None:
    cuts = [1, 1]

    def spoil(begin: int, answer: RangeAnswer) -> RangeAnswer:
        return replace(answer, cut=cuts.pop()) if begin == SECOND and cuts else answer

    with serving(content(), spoil) as service:
        assert (read(service) == content(), len(service.asked)) == (True, 1 + 4 + 2)


def overwrite_at(begin_of_it: int) -> tuple[Spoil, Callable[[RangedService], None]]:
    """Return what replaces the blob when a range is asked for, and what tells it the service."""
    services: list[RangedService] = []

    def spoil(begin: int, answer: RangeAnswer) -> RangeAnswer:
        if begin == begin_of_it and services:
            service = services.pop()
            service.content, service.etag = newer(), '"0x2"'
            return RangeAnswer(412, b"", '"0x2"', None, code="ConditionNotMet")
        return answer

    return spoil, services.append


def test_a_file_of_a_blob_that_is_overwritten_meanwhile_gets_the_new_version_alone(tmp_path: Path) -> None:
    spoil, tell = overwrite_at(SECOND)
    with serving(content(), spoil) as service:
        tell(service)
        content_hash = read_file(service, tmp_path / "copy")
    assert ((tmp_path / "copy").read_bytes() == newer(), content_hash) == (
        True,
        "sha256:" + hashlib.sha256(newer()).hexdigest(),
    )


def test_a_stream_of_a_blob_that_is_overwritten_meanwhile_gets_a_beginning_of_the_old_version_alone() -> None:
    spoil, tell = overwrite_at(SECOND)
    stream = io.BytesIO()
    with serving(content(), spoil) as service:
        tell(service)
        with pytest.raises(Changed) as refused:
            to_stream(service, Conditions(), stream)
    assert (refused.value.reason, content().startswith(stream.getvalue())) == ("overwritten_while_read", True)


def test_a_blob_that_is_always_overwritten_is_given_up_after_the_deadline(tmp_path: Path) -> None:
    versions = iter(range(2, 1000))

    def spoil(begin: int, answer: RangeAnswer) -> RangeAnswer:
        if begin == 0:
            return answer
        service.etag = f'"0x{next(versions)}"'
        return RangeAnswer(412, b"", service.etag, None, code="ConditionNotMet")

    with serving(content(), spoil) as service:
        # Each request has time; that of the whole is over at once.
        begin = partial(BlobDownload, service.target, Conditions(), Deadline)
        with pytest.raises(Changed) as refused:
            delivery.to_file(service.target, begin, tmp_path / "copy", Deadline(0.0), lambda *_: None, admit)
    firsts = [each for each in service.ranges if each.startswith("bytes=0-")]
    assert (refused.value.reason, len(firsts), list(tmp_path.iterdir())) == ("overwritten_too_often", 5, [])


@pytest.mark.parametrize(
    ("status", "code", "kind", "seconds"),
    [(404, "BlobNotFound", NotFound, 60.0), (503, "ServerBusy", Unavailable, 0.5)],
)
def test_what_ends_one_range_ends_the_get_and_leaves_no_file(
    tmp_path: Path, status: int, code: str, kind: type[AzguardError], seconds: float
) -> None:
    def spoil(begin: int, answer: RangeAnswer) -> RangeAnswer:
        return RangeAnswer(status, b"", answer.etag, None, code=code) if begin == SECOND else answer

    with serving(content(), spoil) as service, pytest.raises(kind):
        to_file(service, tmp_path / "copy", Deadline(seconds))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size", [0, 1, RANGE_BYTES, RANGE_BYTES + 1, LENGTH])
def test_content_is_compared_with_the_md5_of_each_range_of_4_mib_where_that_is_asked_for(
    tmp_path: Path, size: int
) -> None:
    with serving(content()[:size]) as service:
        to_file(service, tmp_path / "copy", Deadline(), validates=True)
    spans = [
        [int(each) for each in headers["x-ms-range"].removeprefix("bytes=").split("-")]
        for headers in service.asked
        if headers.get("x-ms-range-get-content-md5") == "true"
    ]
    assert (tmp_path / "copy").read_bytes() == content()[:size]
    assert (len(spans), max(end + 1 - begin for begin, end in spans)) == (max(1, -(-size // RANGE_BYTES)), RANGE_BYTES)


@pytest.mark.parametrize("where", [0, SINGLE_BYTES])
@pytest.mark.parametrize("md5", ["1B2M2Y8AsgTpgAmY7PhCfg==", None])
def test_content_that_is_not_of_its_md5_is_refused_and_leaves_no_file(
    tmp_path: Path, where: int, md5: str | None
) -> None:
    def spoil(begin: int, answer: RangeAnswer) -> RangeAnswer:
        return replace(answer, md5=md5) if begin == where else answer

    with serving(content(), spoil) as service, pytest.raises(Unavailable) as refused:
        to_file(service, tmp_path / "copy", Deadline(), validates=True)
    assert (refused.value.reason, list(tmp_path.iterdir())) == ("content_damaged", [])
