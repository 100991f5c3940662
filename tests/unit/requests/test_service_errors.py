"""What the live service answered, as it was recorded, → one of our errors. Azurite gives some other codes."""

import json
from typing import Any

import pytest
import requests
from azure.storage.blob import BlobClient, ContainerClient

from azguard.accounts.account import emulator
from azguard.accounts.target import Target
from azguard.address import parse
from azguard.requests.service_errors import translate
from tests.support.answering_transport import AnsweringTransport
from tests.support.places import DATA

RECORDINGS = DATA / "recordings"
URL = "https://acc.blob.core.windows.net"


class Replayed(AnsweringTransport):
    """Answers every request with one recorded answer."""

    def __init__(self, recorded: dict[str, Any]) -> None:
        self._recorded = recorded

    def answer(self, request: Any) -> requests.Response:
        answer = requests.Response()
        answer.status_code, answer.reason = self._recorded["status"], self._recorded["reason"]
        answer.headers.update({**self._recorded["response_headers"], "x-ms-error-code": self._recorded["error_code"]})
        return answer


def recorded(name: str, method: str, code: str) -> dict[str, Any]:
    document = json.loads((RECORDINGS / f"{name}.json").read_text())
    found: dict[str, Any] = next(
        each for each in document["interactions"] if (each["method"], each["error_code"]) == (method, code)
    )
    return found


@pytest.mark.parametrize(
    ("name", "method", "code", "kind", "status"),
    [
        ("test_blob_access_conditions.test_delete_blob_with_if_match_fail", "DELETE", "ConditionNotMet", "changed",
         412),
        ("test_common_blob.test_soft_delete_with_leased_blob", "DELETE", "LeaseIdMissing", "locked", 412),
        ("test_container.test_lease_container_break_period", "DELETE", "LeaseLost", "locked", 412),
        ("test_common_blob.test_lease_blob_break_period", "PUT", "LeaseLost", "locked", 412),
        ("test_blob_access_conditions.test_get_blob_with_if_modified_fail", "GET", "ConditionNotMet", "not_modified",
         304),
        ("test_blob_access_conditions.test_get_blob_with_if_match_fail", "GET", "ConditionNotMet", "changed", 412),
        ("test_blob_access_conditions.test_delete_container_with_if_modified", "GET", "ContainerNotFound", "not_found",
         404),
        ("test_container.test_create_container_with_already_existing_container", "PUT", "ContainerAlreadyExists",
         "exists", 409),
    ],
)  # fmt: skip
def test_an_answer_of_the_live_service_is_classified_by_its_meaning(
    name: str, method: str, code: str, kind: str, status: int
) -> None:
    transport = Replayed(recorded(name, method, code))
    settings: dict[str, Any] = {"transport": transport, "retry_total": 0, "credential": None}
    blob, container = BlobClient(URL, "site", "a", **settings), ContainerClient(URL, "site", **settings)
    calls = {
        "DELETE": blob.delete_blob,
        "GET": container.get_container_properties if code == "ContainerNotFound" else blob.get_blob_properties,
        "PUT": container.create_container if code == "ContainerAlreadyExists" else lambda: blob.upload_blob(b"x"),
    }
    with pytest.raises(Exception) as caught:  # noqa: PT011  # which class the SDK picks is what must not matter
        calls[method]()
    error = translate(caught.value, Target(emulator(), parse("blob:site/a").address), expected_etag='"0x1"')
    assert (error.kind, error.http_status, error.service_code) == (kind, status, code)
