"""Blobs that are encrypted with a key, or in a scope, of their writer's."""

import json
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from azguard.wire.connections import Reply
from azguard.wire.failures import Broken, BrokenAnswer
from tests.support import keyed_service, scripted_service
from tests.support.blob_world import client
from tests.support.cases import cases
from tests.support.cli_world import CliWorld, Ran
from tests.support.keyed_service import KeyedService
from tests.support.live_like import Asked, Forward, LiveLike
from tests.support.scripted_service import Answer

_RAW = bytes(range(200, 232))
_KEY = b64encode(_RAW).decode()
_OTHER = b64encode(b"j" * 32).decode()
_WITH_KEY = ("--encryption-key", "@key")
_WITH_OTHER = ("--encryption-key", _OTHER)
_ABSENT = "is encrypted with a key or in a scope that its writer gave"
_ANOTHER = "is encrypted with another key or in another scope"


@pytest.fixture
def keyed(cli: CliWorld) -> Iterator[KeyedService]:
    """Return a service that knows keys, in the place of the emulator."""
    cli.file("key", f"{_KEY}\n")
    cli.file("raw", _RAW)
    cli.file("a.json", '{"n":1}')
    cli.file("pages", b"p" * 512)
    with keyed_service.running(cli) as service:
        yield service


def run(cli: CliWorld, line: str, *more: str, **env: str) -> Ran:
    """Run a command line, whose words have no blanks; no word of a key is in what it leaves."""
    ran = cli.call(*line.split(), *more, env=env)
    assert not {_KEY, _OTHER} & set(f"{ran.out} {ran.err}".replace('"', " ").split())
    return ran


# Each writes a blob; then each line reads or writes it again.
_STORIES = {
    "blob put {} -f a.json": (
        "blob get {}",
        "blob show {}",
        "blob metadata set {} --metadata a=1",
        "blob snapshot {}",
        "blob put {} -f a.json --snapshot-first",
        "blob set-properties {} --content-type text/plain",
        "safe-update blob:{} --increment n",
        'safe-update blob:{} --metadata --set b="2"',
        "safe-update blob:{} --increment n --guard lease",
        "blob tags get {}",
        "lease show blob:{}",
    ),
    "blob append {} --create -f a.json": ("blob append {} -f a.json", "blob get {}"),
    "blob page put {} --create 512 -f pages": (
        "blob page put {} -f pages",
        "blob page clear {} --offset 0 --length 512",
    ),
}


@cases("first", *list(_STORIES))
def test_a_blob_is_read_and_written_with_its_key_alone(first: str, cli: CliWorld, keyed: KeyedService) -> None:
    blob = f"{cli.container()}/a"
    assert run(cli, first.format(blob), *_WITH_KEY).code == 0
    for line in (each.format(blob) for each in _STORIES[first]):
        for given, words in (((), _ABSENT), (_WITH_OTHER, _ANOTHER)):
            refused = run(cli, line, *given)
            assert (line, refused.code, words in refused.err) == (line, 40, True)
        assert (line, run(cli, line, *_WITH_KEY).code) == (line, 0)
    sent = [each.headers for each in keyed.asked if "x-ms-encryption-key" in each.headers]
    told = {(each["x-ms-encryption-key"], each["x-ms-encryption-key-sha256"]) for each in sent}
    assert told == {(key, b64encode(sha256(raw).digest()).decode()) for key, raw in ((_KEY, _RAW), (_OTHER, b"j" * 32))}


@cases(
    ("given", "code", "words"),
    ({"AZGUARD_ENCRYPTION_KEY": _KEY}, 0, ""),
    ({"AZGUARD_ENCRYPTION_KEY": "@raw"}, 0, ""),
    ({"AZGUARD_ENCRYPTION_KEY": ""}, 78, "AZGUARD_ENCRYPTION_KEY is set but empty"),
    ({"AZGUARD_ENCRYPTION_KEY": "@none"}, 78, "the secret's file 'none' cannot be read"),
    ({"AZGUARD_ENCRYPTION_KEY": "@a.json"}, 78, "which is 32 bytes in base64: it is not base64"),
    ({"AZGUARD_ENCRYPTION_KEY": _KEY[:-4]}, 78, "it is base64 of 30 bytes"),
    ({"AZGUARD_ENCRYPTION_KEY": f"{_KEY}é"}, 78, "it is not base64"),
)
def test_a_key_is_base64_or_a_file_of_it_or_of_its_bytes(
    given: dict[str, str], code: int, words: str, cli: CliWorld, keyed: KeyedService
) -> None:
    blob = f"{cli.container()}/a"
    assert run(cli, f"blob put {blob} -f a.json", *_WITH_KEY).code == 0
    ran = run(cli, f"blob get {blob}", **given)
    assert (ran.code, words in ran.err) == (code, True)


def test_what_is_made_without_the_key_is_refused_with_it(cli: CliWorld, keyed: KeyedService) -> None:
    blob = f"{cli.container()}/a"
    ran = run(cli, f"blob copy {blob} {blob}2", AZGUARD_ENCRYPTION_KEY=_KEY)
    assert (ran.code, "Copy Blob takes no encryption key" in ran.err, keyed.asked) == (2, True, [])


def test_a_key_goes_over_https_only(cli: CliWorld) -> None:
    there = "AccountName=acc;AccountKey=a2V5;BlobEndpoint=http://acc.example"
    ran = run(cli, "blob get site/a", "--connection-string", there, *_WITH_OTHER)
    assert (ran.code, "an encryption key needs https" in ran.err) == (78, True)


def test_a_source_is_read_with_its_own_key(cli: CliWorld) -> None:
    """The emulator reads nothing from a URL."""
    cli.file("raw", _RAW)
    told = {"ETag": '"0x1"', "Last-Modified": "Thu, 09 May 2019 00:53:12 GMT", "Content-Length": "512"}
    found = Answer(200, headers={**told, "x-ms-blob-type": "AppendBlob"}, body=b"")
    with scripted_service.running(found, Answer(201, headers={**told, "Content-Length": "0"})) as service:
        there = replace(cli, connection_string=service.connection_string)
        words = ("--source", "site/b", "--source-encryption-key", "@raw", "--last-writer-wins", *_WITH_OTHER)
        ran = run(there, "blob append site/a", *words)
    names = ("x-ms-encryption-key", "x-ms-source-encryption-key")
    sent = [(verb, *(headers.get(name) for name in names)) for verb, headers in service.asked]
    assert (ran.code, sent) == (0, [("HEAD", _KEY, None), ("PUT", _OTHER, _KEY)])


def test_a_blob_without_its_key_is_told_to_exist(cli: CliWorld, keyed: KeyedService) -> None:
    blob = f"{cli.container()}/a"
    assert run(cli, f"blob put {blob} -f a.json", *_WITH_KEY).code == 0
    assert [run(cli, f"blob exists {blob}", *given).code for given in ((), _WITH_OTHER)] == [0, 0]


def test_a_key_is_for_blobs_alone(cli: CliWorld, keyed: KeyedService) -> None:
    for line in ("safe-update container:site --metadata --allow-race --set a=1", "lease show container:site"):
        assert (run(cli, line, *_WITH_KEY).code, keyed.asked) == (2, [])


def test_a_create_over_another_key_finds_that_it_exists(cli: CliWorld, keyed: KeyedService) -> None:
    blob = f"{cli.container()}/a"
    assert run(cli, f"blob put {blob} -f a.json", *_WITH_KEY).code == 0
    assert run(cli, f"blob put {blob} -f a.json --if-none-match *", *_WITH_OTHER).code == 45
    assert run(cli, f"blob put {blob} -f a.json --if-exists skip", *_WITH_OTHER).json["outcome"] == "exists"


@pytest.mark.usefixtures("small_blocks")
def test_a_put_changes_the_key(cli: CliWorld, keyed: KeyedService) -> None:
    blob = f"{cli.container()}/a"
    for size in (9, 70_000):
        cli.file("content", b"x" * size)
        for given in (_WITH_KEY, _WITH_OTHER):
            assert run(cli, f"blob put {blob} -f content", *given).code == 0
        assert run(cli, f"blob get {blob}", *_WITH_OTHER).stdout == b"x" * size


def test_a_blob_is_deleted_without_its_key(cli: CliWorld, keyed: KeyedService) -> None:
    blob = f"{cli.container()}/a"
    assert run(cli, f"blob put {blob} -f a.json", *_WITH_KEY).code == 0
    assert run(cli, f"blob delete {blob}").code == 0


def test_status_asks_for_what_has_no_key_without_one(cli: CliWorld, keyed: KeyedService) -> None:
    container = cli.container()
    assert run(cli, f"blob put {container}/a -f a.json", *_WITH_KEY).code == 0
    assert run(cli, f"blob put {container}/b -f a.json").code == 0
    assert {each["state"] for each in run(cli, "status", *_WITH_KEY).json} == {"unchanged"}


@pytest.mark.parametrize(("is_replaced", "code"), [(False, 0), (True, 74)])
def test_a_lost_answer_is_settled_with_the_key(
    is_replaced: bool, code: int, cli: CliWorld, keyed: KeyedService
) -> None:
    blob = f"{cli.container()}/a"
    assert run(cli, f"blob put {blob} -f a.json", *_WITH_KEY).code == 0
    answer = keyed.answer

    def lose(service: LiveLike, asked: Asked, forward: Forward) -> Reply:
        """Lose the answer to the first write; another writer may then replace it under a key of its own."""
        reply = answer(service, asked, forward)
        if asked.method != "PUT" or len(lost) > 0:
            return reply
        lost.append(asked)
        if is_replaced:
            keyed.kept = dict.fromkeys(keyed.kept, ("another digest", None))
        raise BrokenAnswer(Broken.RESET)

    lost: list[Asked] = []
    keyed.play = lose
    ran = run(cli, f"safe-update blob:{blob} --increment n --timeout 3", *_WITH_KEY)
    assert (ran.code, len(lost)) == (code, 1)
    assert client(cli, blob).download_blob().readall() == b'{"n":2}'


def test_a_tree_goes_there_and_back_with_a_key(cli: CliWorld, keyed: KeyedService) -> None:
    container = cli.container()
    (cli.root / "tree").mkdir()
    cli.file("tree/x", "x")
    assert run(cli, f"blob put tree {container}/ -r", *_WITH_KEY).code == 0
    assert run(cli, f"blob get {container}/ back -r").code == 20
    assert run(cli, f"blob get {container}/ back -r", *_WITH_KEY).code == 0
    assert Path(cli.root, "back/x").read_text() == "x"


def test_a_lock_has_no_key(cli: CliWorld, keyed: KeyedService) -> None:
    assert run(cli, f"lock run blob:{cli.container()}/lock -- true", AZGUARD_ENCRYPTION_KEY=_KEY).code == 0
    assert not any("x-ms-encryption-key" in each.headers for each in keyed.asked)


def test_a_scope_is_sent_with_writes_alone(cli: CliWorld, keyed: KeyedService) -> None:
    blob, scope = f"{cli.container()}/a", ("--encryption-scope", "inner")
    assert run(cli, f"blob put {blob} -f a.json", *scope).err == ""
    assert run(cli, f"blob get {blob}", *scope).code == 0
    assert run(cli, f"blob metadata set {blob} --metadata a=1", *scope).code == 0
    assert run(cli, f"blob put {blob} -f a.json", *scope, *_WITH_KEY).code == 2
    sent = {each.method for each in keyed.asked if "x-ms-encryption-scope" in each.headers}
    assert sent == {"PUT"}


def test_the_emulator_refuses_a_key_and_is_said_to_ignore_a_scope(cli: CliWorld) -> None:
    container = cli.container()
    cli.file("a.json", "{}")
    refused = run(cli, f"blob put {container}/a -f a.json", *_WITH_OTHER)
    assert (refused.code, "the emulator cannot do this" in refused.err) == (40, True)
    ignored = run(cli, f"blob put {container}/b -f a.json --encryption-scope inner")
    assert (ignored.code, "did not encrypt as it was asked to" in ignored.err) == (0, True)


def test_the_key_is_in_no_file_and_no_message(cli: CliWorld, keyed: KeyedService) -> None:
    blob, trace = f"{cli.container()}/a", str(cli.root / "trace")
    given = {"AZGUARD_ENCRYPTION_KEY": _KEY, "AZGUARD_TRACE": trace}
    ran = [
        run(cli, f"blob put {blob} -f a.json -v --debug", **given),
        run(cli, f"safe-update blob:{blob} --increment n --dry-run -v", **given),
        run(cli, f"safe-update blob:{blob} --increment n -v", **given),
        run(cli, f"blob get {blob}?snapshot=2026-01-01T00:00:00.0000000Z --debug", **given),
    ]
    assert [each.code for each in ran] == [0, 0, 0, 44]
    written = b"".join(
        each.read_bytes() for each in cli.root.rglob("*") if each.is_file() and each.name not in ("key", "raw")
    )
    told = "".join(each.out + each.err for each in ran)
    assert (_KEY.encode() in written, _RAW in written, _KEY in told) == (False, False, False)


def test_a_listing_hides_the_metadata(cli: CliWorld, keyed: KeyedService) -> None:
    container = cli.container()
    assert run(cli, f"blob put {container}/a -f a.json --metadata a=1", *_WITH_KEY).code == 0
    assert client(cli, f"{container}/a").get_blob_properties().metadata["a"] == "1"
    assert json.loads(run(cli, f"blob list {container} --include metadata").out)[0]["metadata"] == {}
