"""``lease release`` tells whether the lease was held until then."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from azure.storage.blob import BlobLeaseClient

from azguard.cache.etag_cache import EtagCache
from azguard.cache.records import Key
from tests.support.blob_world import client as sdk
from tests.support.cli_world import CliWorld

A, B = (f"{letter * 8}-0000-4000-8000-000000000000" for letter in "ab")


@pytest.fixture
def blob(cli: CliWorld) -> str:
    """Return a blob that this scope has leased with a term."""
    address = f"{cli.container()}/a.json"
    assert cli.call("blob", "put", address, stdin=b"{}").code == 0
    assert cli.call("lease", "acquire", f"blob:{address}", "--proposed-lease-id", A).code == 0
    return address


def nothing(cli: CliWorld, blob: str) -> None: ...


def release_by_id(cli: CliWorld, blob: str) -> None:
    BlobLeaseClient(sdk(cli, blob), A).release()


def break_now(cli: CliWorld, blob: str) -> None:
    BlobLeaseClient(sdk(cli, blob)).break_lease(0)


def break_later(cli: CliWorld, blob: str) -> None:
    BlobLeaseClient(sdk(cli, blob)).break_lease(60)


def take(cli: CliWorld, blob: str) -> None:
    break_now(cli, blob)
    sdk(cli, blob).acquire_lease(-1, B)


def write(cli: CliWorld, blob: str) -> None:
    break_now(cli, blob)
    sdk(cli, blob).upload_blob(b"theirs", overwrite=True)


def end_term(cli: CliWorld, blob: str) -> None:
    """Let the term that is recorded have ended some time ago."""
    cache = EtagCache.open(cli.root / ".cache", "test", warn=print, now=lambda: datetime.now(UTC))
    key = Key(sdk(cli, blob).url.removesuffix(f"/{blob}"), f"blob:{blob}")
    cache.confirm(key, A, since=datetime.now(UTC) - timedelta(seconds=90))
    cache.close()


def write_after_the_term(cli: CliWorld, blob: str) -> None:
    end_term(cli, blob)
    write(cli, blob)


def write_it_here_after_the_term(cli: CliWorld, blob: str) -> None:
    end_term(cli, blob)
    break_now(cli, blob)
    assert cli.call("blob", "put", blob, "--last-writer-wins", stdin=b"mine").code == 0


def write_before_the_end_of_the_term(cli: CliWorld, blob: str) -> None:
    write(cli, blob)


def end_the_term_alone(cli: CliWorld, blob: str) -> None:
    end_term(cli, blob)
    release_by_id(cli, blob)


HELD_NO_MORE = "was held no more: it was released before, or it was lost"


@pytest.mark.parametrize(
    ("under_it", "code", "outcome", "words"),
    [
        (nothing, 0, "committed", ""),
        (break_later, 0, "committed", ""),
        (break_now, 77, None, "was not held until its release: it was broken"),
        (take, 77, None, "was not held until its release: another holds it now"),
        (write_after_the_term, 77, None, "its term was over, and another has written since"),
        (write_it_here_after_the_term, 0, "gone", HELD_NO_MORE),
        (write_before_the_end_of_the_term, 0, "gone", HELD_NO_MORE),
        (release_by_id, 0, "gone", HELD_NO_MORE),
        (end_the_term_alone, 0, "gone", HELD_NO_MORE),
    ],
)
def test_a_release_tells_whether_the_lease_was_held_until_then(
    cli: CliWorld, blob: str, under_it: Callable[[CliWorld, str], None], code: int, outcome: str | None, words: str
) -> None:
    under_it(cli, blob)
    ran = cli.call("lease", "release", f"blob:{blob}")
    assert (ran.code, ran.json["outcome"] if code == 0 else None) == (code, outcome)
    assert words in ran.err
    assert words or not ran.err
    # What was released is so the second time; what was lost, or may be, is told once.
    again = cli.call("lease", "release", f"blob:{blob}")
    assert (again.code, again.json["outcome"] if again.code == 0 else None) == (
        (0, "already_released") if outcome == "committed" else (2, None)
    )


@pytest.mark.parametrize(
    ("lease_id", "ends"),
    [(A, [(0, "committed"), (0, "already_released"), (0, "already_released")]), (B, [(49, None), (49, None)])],
)
def test_a_second_release_with_an_id_is_none_of_another_lease(
    cli: CliWorld, blob: str, lease_id: str, ends: list[tuple[int, str | None]]
) -> None:
    ran = [cli.call("lease", "release", f"blob:{blob}", "--lease-id", lease_id) for _ in ends]
    assert [(each.code, each.json["outcome"] if each.code == 0 else None) for each in ran] == ends


def test_a_release_that_was_sent_before_is_no_loss(cli: CliWorld, blob: str) -> None:
    assert cli.call("lease", "release", f"blob:{blob}").code == 0
    sdk(cli, blob).acquire_lease(-1, B)
    assert cli.call("lease", "release", f"blob:{blob}").json["outcome"] == "already_released"


def test_a_new_lease_that_is_lost_is_not_taken_for_the_one_released_before(cli: CliWorld, blob: str) -> None:
    address = f"blob:{blob}"
    assert cli.call("lease", "release", address).code == 0
    assert cli.call("lease", "acquire", address).code == 0
    break_now(cli, blob)
    assert cli.call("lease", "list", "--mine").code == 0
    assert cli.call("lease", "release", address).code == 2
