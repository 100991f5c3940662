"""Every request is sent once: sent a second time by the SDK, a refusal would no more speak of the only copy."""

from collections.abc import Callable

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import AzureError
from azure.core.pipeline.transport import HttpRequest

from azguard.accounts.account import Account, emulator
from azguard.address import Address, Kind
from azguard.wire import sdk, sdk_transport
from azguard.wire.connections import Reply
from azguard.wire.failures import Broken, BrokenAnswer, NotConnected, Stage
from tests.support.answering_client import AnsweringClient, Asked, reply
from tests.support.cases import cases

BLOB, TABLE = Address(Kind.BLOB, ("site", "a")), Address(Kind.TABLE, ("jobs",))
ENTITY = {"PartitionKey": "p", "RowKey": "r"}


class Counting(AnsweringClient):
    """Counts the requests, and fails each in the same way."""

    def __init__(self, failure: Exception | int) -> None:
        self.failure, self.sent = failure, 0
        self.ids: list[str] = []

    def answer(self, asked: Asked) -> Reply:
        self.sent += 1
        self.ids.append(asked.headers["x-ms-client-request-id"])
        if isinstance(self.failure, Exception):
            raise self.failure
        return reply(self.failure)


WRITES: dict[str, Callable[[Account], object]] = {
    "Put Blob": lambda account: sdk.blob(account, BLOB).upload_blob(
        b"x", overwrite=True, etag='"1"', match_condition=MatchConditions.IfNotModified
    ),
    "Set Metadata": lambda account: sdk.blob(account, BLOB).set_blob_metadata({"a": "b"}),
    "Lease": lambda account: sdk.blob(account, BLOB).acquire_lease(15),
    "Delete Container": lambda account: sdk.container(account, BLOB).delete_container(),
    "List Containers": lambda account: list(sdk.blob_service(account).list_containers()),
}


@cases(
    "failure",
    [408, 429, 500, 503, 504, BrokenAnswer(Broken.TIMED_OUT), NotConnected(Stage.HOST, OSError("no route"))],
    ids=str,
)
@cases("write", WRITES)
def test_a_request_without_a_good_answer_is_not_sent_again(write: str, failure: Exception | int) -> None:
    account = emulator()
    account.shared["client"] = client = Counting(failure)
    with pytest.raises(AzureError):
        WRITES[write](account)
    assert client.sent == 1


@cases(("authorization", "is_new"), [("Bearer token", True), (None, True), ("SharedKey a:b", False)])
def test_what_is_sent_again_has_another_id_unless_a_key_has_signed_it(authorization: str | None, is_new: bool) -> None:
    account = emulator()
    account.shared["client"] = client = Counting(401)
    headers = {"x-ms-client-request-id": "1c2a", **({"Authorization": authorization} if authorization else {})}
    request, made = HttpRequest("GET", "https://a.example/x", headers=headers), sdk_transport.make_transport(account)
    for _ in range(2):
        made.send(request)
    assert (len(set(client.ids)) == 2, "1c2a" not in client.ids) == (is_new, is_new)
