"""The emulator as a server of HTTP."""

import http.client

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
