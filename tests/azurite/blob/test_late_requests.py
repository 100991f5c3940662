"""A request whose answer is lost, and what comes between it and the look at its outcome: its own copy, or a writer."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobClient, BlobServiceClient, ContentSettings

from azguard.blobs.content import page_write
from tests.support import scripted_service
from tests.support.blob_world import client, make
from tests.support.cli_world import CliWorld, Ran
from tests.support.faultproxy import proxy
from tests.support.faultproxy.faults import Fault, Request
from tests.support.scripted_service import Answer

PAGE = 512
LEASE = "6dd2b9e3-5c17-4a0e-a2f1-8f4c1b7d9e01"


@dataclass
class Lost:
    """The first request with ``which`` in it is lost; ``then`` is called at the next one with ``comes_at`` in it."""

    cli: CliWorld
    which: str
    comes_at: str = ""
    then: Callable[[Request], object] = lambda _: None
    fault: Fault = Fault.DROP
    lost: list[Request] = field(default_factory=list)
    came: list[object] = field(default_factory=list)

    def run(self, *words: str, stdin: bytes = b"") -> Ran:
        with proxy.running(self.cli.port, self._decide) as between:
            return self.cli.through(between.port).call(*words, "-o", "json", stdin=stdin)

    def _decide(self, request: Request) -> Fault:
        asked = f"{request.method} {request.path} {request.headers.get('x-ms-range', '')}"
        if not self.lost and self.which in asked:
            self.lost.append(request)
            return self.fault
        if self.lost and not self.came and self.comes_at in asked:
            self.came.append(self.then(self.lost[0]))
        return Fault.NONE


def make_disk(cli: CliWorld) -> BlobClient:
    disk: BlobClient = client(cli, f"{cli.container()}/disk")
    disk.create_page_blob(4 * PAGE)
    return disk


def name(blob: BlobClient) -> str:
    return f"{blob.container_name}/{blob.blob_name}"


def test_pages_that_come_late_prove_nothing_of_the_next_ones(cli: CliWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """The network sent the first piece twice; its condition holds for the copy too, and the lease is still held."""
    monkeypatch.setattr(page_write, "PIECE_BYTES", PAGE)
    disk, content = make_disk(cli), b"a" * PAGE + b"b" * PAGE

    def deliver(late: Request) -> int | None:
        try:
            disk.upload_page(content[:PAGE], 0, PAGE, lease=late.headers["x-ms-lease-id"])
        except HttpResponseError as error:
            return error.status_code
        return 201

    lost = Lost(cli, "comp=page bytes=0-", f"comp=page bytes={PAGE}-", deliver, Fault.NONE)
    ran = lost.run("blob", "page", "put", name(disk), "--if-modified-since", "2020-01-01", stdin=content)
    shown = disk.get_blob_properties()
    assert (ran.code, lost.came, disk.download_blob().readall()[: 2 * PAGE]) == (0, [412], content)
    assert (shown.etag, shown.lease.state, cli.call("lease", "list", "--mine").json) == (
        ran.json["etag"], "available", [],
    )  # fmt: skip


def test_a_new_page_blob_is_another_writers_once_it_has_pages(cli: CliWorld) -> None:
    disk = client(cli, f"{cli.container()}/disk")
    theirs = b"t" * PAGE
    lost = Lost(cli, "PUT ", "HEAD ", lambda _: disk.upload_page(theirs, 0, PAGE))
    ran = lost.run("blob", "page", "put", name(disk), "--create", "512", stdin=b"o" * PAGE)
    assert (ran.code, disk.download_blob().readall()) == (45, theirs)
    empty = Lost(cli, "PUT ").run("blob", "page", "put", f"{name(disk)}2", "--create", "512", stdin=b"o" * PAGE)
    assert (empty.code, empty.json["created"]) == (0, True)


@pytest.mark.parametrize(
    "words", [("metadata", "set", "--metadata", "a=1"), ("set-properties", "--content-type", "a/b")]
)
def test_what_could_undo_the_next_write_of_the_holder_is_not_sent_again(cli: CliWorld, words: tuple[str, ...]) -> None:
    blob = make(cli, tags={"a": "1"})
    condition = ("--if-tags", "\"a\"='1'")
    of_own_lease = Lost(cli, "PUT ", fault=Fault.RESET)
    of_own_lease.which = "comp=metadata" if "metadata" in words else "comp=properties"
    assert of_own_lease.run("blob", *words, blob, *condition).code == 0
    lease = cli.call("lease", "acquire", f"blob:{blob}", "--infinite").json["lease_id"]
    of_the_callers = Lost(cli, of_own_lease.which, fault=Fault.RESET)
    assert of_the_callers.run("blob", *words, blob, *condition, "--lease-id", lease).code == 74


def test_an_update_of_tags_is_not_sent_again_under_a_lease_that_lasts(cli: CliWorld) -> None:
    blob = make(cli)
    words = ("safe-update", f"blob:{blob}", "--tags", "--set-string", "a=1")
    of_own_lease = Lost(cli, "PUT ", fault=Fault.RESET)
    of_own_lease.which = f"PUT /devstoreaccount1/{blob}?comp=tags"
    assert (of_own_lease.run(*words).code, len(of_own_lease.lost)) == (0, 1)
    lease = cli.call("lease", "acquire", f"blob:{blob}", "--infinite").json["lease_id"]
    of_the_callers = Lost(cli, of_own_lease.which, fault=Fault.RESET)
    ran = of_the_callers.run(*words[:-1], "a=2", "--lease-id", lease)
    assert (ran.code, client(cli, blob).get_blob_tags(lease=lease)) == (74, {"a": "1"})


def test_a_delete_of_snapshots_is_not_sent_again(cli: CliWorld) -> None:
    """It would come late to snapshots that are made meanwhile: they move no ETag."""
    blob = make(cli)
    etag = client(cli, blob).get_blob_properties().etag
    ran = Lost(cli, "DELETE ").run("blob", "delete", blob, "--delete-snapshots", "only", "--if-match", etag)
    assert (ran.code, len(ran.error["hint"]) > 0) == (74, True)


@pytest.mark.parametrize(
    "words", [("put",), ("metadata", "set", "--metadata", "a=1"), ("copy", "--source", "{source}")]
)
def test_a_version_of_another_tool_is_not_taken_for_ours(cli: CliWorld, words: tuple[str, ...]) -> None:
    """The tool keeps the lineage, by which our write is known to be committed."""
    theirs = client(cli, make(cli))
    etag = theirs.get_blob_properties().etag

    def change(_: object) -> Any:
        theirs.set_http_headers(ContentSettings(content_type="their/own"))
        theirs.set_blob_metadata({**theirs.get_blob_properties().metadata, "their": "own"})

    lost = Lost(cli, "PUT ", "HEAD ", change)
    source = make(cli) if "copy" in words else ""
    typed = [word.format(source=source) for word in words]
    ran = lost.run("blob", *typed, name(theirs), "--if-match", etag, stdin=b"" if len(words) > 1 else b"new")
    assert (ran.code, ran.json["outcome"], ran.json["etag"]) == (0, "committed", None)


def test_a_copy_that_another_writer_replaced_unseen_has_not_failed(cli: CliWorld) -> None:
    source, theirs = make(cli), client(cli, make(cli))
    etag = theirs.get_blob_properties().etag

    def replace(_: object) -> Any:
        theirs.upload_blob(b"theirs", overwrite=True, metadata=theirs.get_blob_properties().metadata)

    lost = Lost(cli, "PUT ", "HEAD ", replace)
    ran = lost.run("blob", "copy", name(theirs), "--source", source, "--if-match", etag, "--wait")
    assert (ran.code, ran.error["kind"]) == (42, "changed")


def test_a_container_that_another_tool_changed_is_not_the_one_that_was_made(cli: CliWorld) -> None:
    blobs = BlobServiceClient.from_connection_string(str(cli.connection_string))
    container = blobs.get_container_client(f"t{uuid.uuid4().hex[:20]}")

    def change(_: object) -> Any:
        container.set_container_metadata({**container.get_container_properties().metadata, "their": "own"})

    ran = Lost(cli, "PUT ", "GET ", change).run("container", "create", container.container_name)
    assert (ran.code, ran.json["etag"]) == (0, None)
    again = Lost(cli, "comp=metadata", "GET ", change)
    words = ("metadata", "set", container.container_name, "--metadata", "a=1", "--last-writer-wins")
    ran = again.run("container", *words)
    assert (ran.code, ran.json["etag"]) == (0, None)


def test_policies_of_a_container_that_was_deleted_in_between_are_not_unknown(cli: CliWorld) -> None:
    name = cli.container()
    blobs = BlobServiceClient.from_connection_string(str(cli.connection_string))
    lost = Lost(cli, "GET ", "PUT ", lambda _: blobs.delete_container(name), Fault.NONE)
    assert lost.run("container", "acl", "set", name, "--last-writer-wins", stdin=b"{}").code == 44


def test_a_seal_after_an_append_of_another_is_not_the_one_that_was_meant(cli: CliWorld) -> None:
    log = f"{cli.container()}/log"
    cli.call("blob", "append", log, "--line", "one", "--create")
    assert cli.call("blob", "get", log, "-f", "log").code == 0
    client(cli, log).append_block(b"two\n")
    client(cli, log).seal_append_blob()
    assert cli.call("blob", "append", "seal", log).code == 42
    theirs = client(cli, log)
    lost = Lost(cli, "comp=seal", "HEAD ", lambda _: theirs.set_blob_metadata({"their": "own"}))
    ran = lost.run("blob", "append", "seal", log, "--append-position", "8")
    assert (ran.code, ran.json["etag"]) == (0, None)


def test_tags_that_were_there_before_are_no_proof(offline: CliWorld) -> None:
    """The emulator compares no tags here, so a scripted service answers as the live one is documented to."""
    head = {"ETag": '"0x1"', "Last-Modified": "Mon, 02 Jan 2023 03:04:05 GMT", "x-ms-blob-type": "BlockBlob"}
    found = Answer(200, headers=head)
    lease = Answer(201, headers={**head, "x-ms-lease-id": LEASE})
    body = b"<Tags><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tags>"
    # It answers to a HEAD as well, after whose body no other answer can be read.
    tags = Answer(200, headers={**head, "Content-Type": "application/xml", "Connection": "close"}, body=body)
    with scripted_service.running(lease, found, tags, Answer(412, "ConditionNotMet"), found, tags, found) as service:
        cli = CliWorld(offline.root, service.connection_string)
        ran = cli.call("blob", "tags", "set", "site/a", "--tags", "a=1", "--if-tags", "\"b\"='2'", "-o", "json")
    assert (ran.code, "ConditionNotMet" in ran.err) == (42, True)
