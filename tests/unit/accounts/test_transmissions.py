"""Every request is sent once: sent a second time by the SDK, a refusal would no more speak of the only copy."""

from collections.abc import Callable
from typing import Any, Self

import pytest
import requests
from azure.core import MatchConditions
from azure.core.exceptions import AzureError, ServiceRequestError, ServiceResponseError
from azure.core.pipeline.transport import HttpTransport, RequestsTransportResponse

from azguard.accounts.account import Account, emulator
from azguard.address import Address, Kind
from tests.support.cases import cases

BLOB, TABLE = Address(Kind.BLOB, ("site", "a")), Address(Kind.TABLE, ("jobs",))
ENTITY = {"PartitionKey": "p", "RowKey": "r"}


class Counting(HttpTransport[Any, Any]):
    """Counts the requests, and fails each in the same way."""

    def __init__(self, failure: Exception | int) -> None:
        self.failure, self.sent = failure, 0

    def send(self, request: Any, **kwargs: Any) -> Any:
        self.sent += 1
        if isinstance(self.failure, Exception):
            raise self.failure
        answer = requests.Response()
        answer.status_code, answer._content = self.failure, b""
        return RequestsTransportResponse(request, answer)

    def open(self) -> None:
        """Need nothing."""

    def close(self) -> None:
        """Hold nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *args: object) -> None:
        """Hold nothing."""


WRITES: dict[str, Callable[[Account], object]] = {
    "Put Blob": lambda account: account.blob(BLOB).upload_blob(
        b"x", overwrite=True, etag='"1"', match_condition=MatchConditions.IfNotModified
    ),
    "Set Metadata": lambda account: account.blob(BLOB).set_blob_metadata({"a": "b"}),
    "Lease": lambda account: account.blob(BLOB).acquire_lease(15),
    "Delete Container": lambda account: account.container(BLOB).delete_container(),
    "List Containers": lambda account: list(account.blob_service().list_containers()),
    "Insert Entity": lambda account: account.table(TABLE).create_entity(ENTITY),
    "Transaction": lambda account: account.table(TABLE).submit_transaction([("create", ENTITY)]),
    "Create Table": lambda account: account.table_service().create_table("jobs"),
}


@cases(
    "failure",
    [408, 429, 500, 503, 504, ServiceResponseError("no answer"), ServiceRequestError("no connection")],
    ids=str,
)
@cases("write", WRITES)
def test_a_request_without_a_good_answer_is_not_sent_again(write: str, failure: Exception | int) -> None:
    account = emulator()
    account._shared["transport"] = transport = Counting(failure)
    with pytest.raises(AzureError):
        WRITES[write](account)
    assert transport.sent == 1
