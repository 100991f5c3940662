"""The emulator as a server of HTTP."""

import dataclasses
import http.client
from datetime import UTC, datetime, timedelta

import pytest
from azure.storage.fileshare import generate_file_sas, generate_share_sas

from azguard.accounts.endpoints import EMULATOR_KEY, EMULATOR_NAME
from tests.support import files_world
from tests.support.cli_world import CliWorld


def test_a_connection_stays_open_unless_its_request_cannot_be_read_to_the_end(files_cli: CliWorld) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", files_world.port(files_cli))
    path, stays = "/devstoreaccount1/nothing/x", []
    for headers in ({}, {}, {"Transfer-Encoding": "chunked"}):
        connection.request("PUT", path, b"content", headers)
        answer = connection.getresponse()
        answer.read()
        stays.append(connection.sock is not None)
        names = [name for name, _ in answer.getheaders()]
        assert len(names) == len(set(names))
    connection.close()
    assert stays == [True, True, False]


def test_a_sas_in_a_url_of_any_port_opens_its_share_and_what_it_lacks_is_told(files_cli: CliWorld) -> None:
    name, _, path = files_world.make(files_cli).partition("/")
    place, key = f"http://127.0.0.1:{files_world.port(files_cli)}/{EMULATOR_NAME}/{name}", EMULATOR_KEY
    ends = datetime.now(UTC) + timedelta(minutes=10)
    whole = f"{place}?{generate_share_sas(EMULATOR_NAME, name, key, permission='rwl', expiry=ends)}"
    no_list = f"{place}?{generate_share_sas(EMULATOR_NAME, name, key, permission='rw', expiry=ends)}"
    one = f"{place}/{path}?{generate_file_sas(EMULATOR_NAME, name, [path], key, permission='rwd', expiry=ends)}"
    alone = dataclasses.replace(files_cli, connection_string=None)
    (files_cli.root / "down").mkdir()

    assert [each["address"] for each in alone.call("file", "list", whole).json] == [f"file:{name}/{path}"]
    assert alone.call("file", "get", whole, "down", "--recursive").code == 0
    refused = [
        alone.call(*words, stdin=b"new").err
        for words in (("file", "list", no_list), ("share", "show", whole), ("file", "put", one, "--last-writer-wins"))
    ]
    said = ("it needs list (l), and has sp=rw", "an account SAS with ss=f", "a SAS of the share (sr=s)")
    assert [words in err for words, err in zip(said, refused, strict=True)] == [True] * 3, refused


@pytest.mark.parametrize("path", ["?comp=list", "/nothing/x"])
def test_an_answer_repeats_the_id_of_its_request(files_cli: CliWorld, path: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", files_world.port(files_cli))
    connection.request("GET", f"/{EMULATOR_NAME}{path}", headers={"x-ms-client-request-id": "1c2a"})
    repeated = connection.getresponse().getheader("x-ms-client-request-id")
    connection.close()
    assert repeated == "1c2a"
