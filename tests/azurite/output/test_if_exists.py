"""``--if-exists skip``: what is there is left alone, and told with the outcome ``exists``."""

import uuid
from dataclasses import replace

import pytest

from tests.support import scripted_service, table_world
from tests.support.cli_world import CliWorld, Ran
from tests.support.scripted_service import Answer

SKIP = ("--if-exists", "skip")
ETAG = '"0x8D6D418B6C08663"'
SHOWN = {
    "ETag": ETAG, "Last-Modified": "Thu, 09 May 2019 00:53:12 GMT", "x-ms-blob-type": "BlockBlob",
    "x-ms-lease-state": "leased", "x-ms-lease-status": "locked",
}  # fmt: skip
# A create-only put onto a leased blob, as the live service refuses it.
LEASED = Answer(412, "LeaseIdMissing")


@pytest.fixture(params=["blob", "container", "table", "entity"])
def create(cli: CliWorld, request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Return the command line that creates something new of each kind."""
    name = f"t{uuid.uuid4().hex[:20]}"
    if request.param == "blob":
        return ("blob", "put", f"{cli.container()}/a")
    if request.param == "entity":
        return ("entity", "insert", f"{table_world.table(cli)}/eu/1")
    return (request.param, "create", name)


def test_what_is_missing_is_created_and_what_is_there_is_left_alone(cli: CliWorld, create: tuple[str, ...]) -> None:
    runs = [cli.call(*create, *SKIP, stdin=content) for content in (b'{"n": 1}', b'{"n": 2}')]
    assert [(ran.code, ran.json["outcome"], ran.json["guard"]) for ran in runs] == [
        (0, "committed", "if-none-match"), (0, "exists", "if-none-match"),
    ]  # fmt: skip
    assert runs[0].json["etag"] == runs[1].json["etag"]


def test_what_is_there_was_not_read(cli: CliWorld, create: tuple[str, ...]) -> None:
    assert cli.call(*create, stdin=b'{"n": 1}', scope="other").code == 0
    before = cli.call("cache", "list").json
    assert cli.call(*create, *SKIP, stdin=b'{"n": 2}').json["outcome"] == "exists"
    assert cli.call("cache", "list").json == before


def test_a_blob_that_was_read_here_is_left_alone_too(cli: CliWorld) -> None:
    blob = f"{cli.container()}/a"
    cli.call("blob", "put", blob, stdin=b"1")
    assert cli.call("blob", "put", blob, *SKIP, stdin=b"2").json["outcome"] == "exists"
    assert cli.call("blob", "get", blob).out == "1"


def test_create_only_says_the_same(cli: CliWorld) -> None:
    put = ("blob", "put", f"{cli.container()}/a", *SKIP, "--if-none-match", "*")
    assert [cli.call(*put, stdin=b"1").json["outcome"] for _ in range(2)] == ["committed", "exists"]


@pytest.mark.parametrize("words", [
    ("blob", "put", "{site}/a"), ("blob", "copy", "{site}/a", "--source", "{site}/source"),
    ("entity", "insert", "{table}/eu/1"),
])  # fmt: skip
def test_what_equals_ours_and_tells_not_whose_it_is_exists(cli: CliWorld, words: tuple[str, ...]) -> None:
    """Without a lineage a copy of our own request may have made it, which matters only to a caller who must know."""
    site, table = cli.container(), table_world.table(cli)
    cli.call("blob", "put", f"{site}/source", stdin=b'{"n": 1}')
    line = [word.format(site=site, table=table) for word in words]

    def create(scope: str, *skip: str) -> Ran:
        return cli.call(*line, "--no-lineage", *skip, "-o", "json", scope=scope, stdin=b'{"n": 1}')

    runs = [create("one", *SKIP), create("two", *SKIP), create("two")]
    assert [ran.code for ran in runs] == [0, 0, 74]
    assert [ran.json["outcome"] for ran in runs[:2]] == ["committed", "exists"]


# The order of checks: the live service looks at the lease first, the emulator at what exists.


def test_a_leased_blob_never_read_here_is_locked_on_azure(cli: CliWorld) -> None:
    with scripted_service.running(LEASED, Answer(200, headers=SHOWN)) as service:
        ran = replace(cli, connection_string=service.connection_string).call("blob", "put", "site/a", stdin=b"x")
    method, headers = service.asked[0]
    assert (method, headers["if-none-match"]) == ("PUT", "*")
    first, *others = ran.err.splitlines()
    assert (ran.code, first, "  and it was never read here: read it before you write" in others) == (
        49, "error: site/a is leased, and no lease id was given", True,
    )  # fmt: skip


def test_a_leased_blob_never_read_here_exists_on_the_emulator(cli: CliWorld) -> None:
    blob = f"{cli.container()}/a"
    cli.call("blob", "put", blob, stdin=b"theirs", scope="other")
    cli.call("lease", "acquire", f"blob:{blob}", scope="other")
    assert cli.call("blob", "put", blob, stdin=b"mine").code == 45


def test_a_leased_blob_exists_and_is_left_alone(cli: CliWorld) -> None:
    with scripted_service.running(LEASED, Answer(200, headers=SHOWN)) as service:
        ran = replace(cli, connection_string=service.connection_string).call("blob", "put", "site/a", *SKIP, stdin=b"x")
    assert (ran.code, ran.json["outcome"], ran.json["etag"]) == (0, "exists", ETAG)


def test_a_create_that_is_refused_by_412_means_that_it_exists(cli: CliWorld) -> None:
    with scripted_service.running(Answer(412, "ConditionNotMet"), Answer(200, headers=SHOWN)) as service:
        ran = replace(cli, connection_string=service.connection_string).call("blob", "put", "site/a", *SKIP, stdin=b"x")
    assert (ran.code, ran.json["outcome"]) == (0, "exists")
