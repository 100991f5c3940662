"""The variable that says how long a write may stay unanswered."""

from tests.support.cases import cases
from tests.support.cli_world import CliWorld

SILENT = "DefaultEndpointsProtocol=http;AccountName=a;AccountKey=a2V5;BlobEndpoint=http://127.0.0.1:9/a"


@cases("value", "", "soon", "0", "-1s")
def test_a_bad_write_timeout_is_a_configuration_error_that_names_it(offline: CliWorld, value: str) -> None:
    env = {"AZURE_STORAGE_CONNECTION_STRING": SILENT, "AZGUARD_WRITE_TIMEOUT": value}
    ran = offline.call("blob", "put", "site/a", "-o", "json", env=env)
    assert (ran.code, ran.error["kind"], "AZGUARD_WRITE_TIMEOUT" in ran.error["message"]) == (78, "config", True)
