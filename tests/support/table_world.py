"""Tables for tests: made, and looked into, past azguard."""

import json
import re
import uuid
from typing import Any

from azguard.requests.lineage import KEY
from tests.support.cli_world import CliWorld


def table(cli: CliWorld) -> str:
    """Return a new table of no other test's."""
    name = f"t{uuid.uuid4().hex[:20]}"
    cli.make("table", "POST", "Tables", {"TableName": name})
    return name


def orders(cli: CliWorld) -> None:
    """Make the table of the help and the README anew, with one order in it, which this scope has read."""
    from azure.core.exceptions import ResourceExistsError
    from azure.data.tables import EdmType, TableClient

    with TableClient.from_connection_string(_text(cli), "Orders") as client:
        try:
            client.create_table()
        except ResourceExistsError:
            pass
        for each in client.list_entities():
            client.delete_entity(each)
        client.create_entity({"PartitionKey": "eu", "RowKey": "1007", "status": "new", "n": (7, EdmType.INT64)})
    assert cli.call("entity", "get", "Orders/eu/1007").code == 0


def stored(cli: CliWorld, address: str) -> dict[str, Any] | None:
    """Return the service's own JSON of an entity, or None if it is not there."""
    from azure.core.exceptions import ResourceNotFoundError
    from azure.data.tables import TableClient

    name, partition, row = address.split("/")
    answers: list[dict[str, Any]] = []

    def keep(response: Any) -> None:
        answers.append(json.loads(response.http_response.text()))

    try:
        TableClient.from_connection_string(_text(cli), name).get_entity(partition, row, raw_response_hook=keep)
    except ResourceNotFoundError:
        return None
    return answers[-1]


def properties(cli: CliWorld, address: str) -> dict[str, Any] | None:
    """Return the properties of an entity: without its keys, what the service adds, and the lineage."""
    found = stored(cli, address)
    hidden = ("PartitionKey", "RowKey", "Timestamp", KEY)
    return None if found is None else {
        name: value for name, value in found.items() if name not in hidden and "odata" not in name
    }  # fmt: skip


def etag(cli: CliWorld, address: str) -> str:
    """Return the ETag of an entity that is there."""
    found = stored(cli, address)
    assert found is not None
    return str(found["odata.etag"])


def merge(cli: CliWorld, address: str, changes: dict[str, Any], mode: str = "merge") -> None:
    """Merge properties into an entity as a tool that is not azguard; ``mode`` is ``replace`` to replace all."""
    from azure.data.tables import TableClient

    name, partition, row = address.split("/")
    keys = {"PartitionKey": partition, "RowKey": row}
    TableClient.from_connection_string(_text(cli), name).update_entity({**keys, **changes}, mode)  # type: ignore[arg-type]  # it takes the text too


def delete(cli: CliWorld, address: str) -> None:
    """Delete an entity as a tool that is not azguard."""
    from azure.data.tables import TableClient

    name, partition, row = address.split("/")
    TableClient.from_connection_string(_text(cli), name).delete_entity(partition, row)


def port(cli: CliWorld) -> int:
    """Return the port of the emulator's table service."""
    found = re.search(r"TableEndpoint=http://127\.0\.0\.1:(\d+)", _text(cli))
    assert found is not None
    return int(found[1])


def through(cli: CliWorld, proxy_port: int) -> CliWorld:
    """Return the same folder, with the table service behind a proxy."""
    from dataclasses import replace

    text = _text(cli).replace(
        f"TableEndpoint=http://127.0.0.1:{port(cli)}", f"TableEndpoint=http://127.0.0.1:{proxy_port}"
    )
    return replace(cli, connection_string=text)


def _text(cli: CliWorld) -> str:
    assert cli.connection_string is not None
    return cli.connection_string
