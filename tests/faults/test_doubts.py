"""Doubts that the matrix has no row for."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from azguard import account
from azguard.emulator import proxy
from azguard.emulator.state import Azurite
from tests.cli_world import CliWorld
from tests.faults.rules import Rule, by_rules


def _sas() -> str:
    """Return a SAS that may write blobs, and look at nothing."""
    from azure.storage.blob import AccountSasPermissions, ResourceTypes, generate_account_sas

    return generate_account_sas(
        account.EMULATOR_NAME,
        account.EMULATOR_KEY,
        ResourceTypes(object=True, container=True),
        AccountSasPermissions(write=True, create=True),
        datetime.now(UTC) + timedelta(hours=1),
    )


def test_who_may_not_look_is_told_that_the_outcome_is_unknown(storage: Azurite, tmp_path: Path) -> None:
    account.emulator({"blob": storage.ports["blob"]}).blob_service().create_container("unseen")
    with proxy.running(storage.ports["blob"], by_rules([Rule.parse("PUT blob 1 drop")])) as running:
        endpoint = f"http://127.0.0.1:{running.port}/{account.EMULATOR_NAME}"
        cli = CliWorld(tmp_path, f"BlobEndpoint={endpoint};SharedAccessSignature={_sas()}")
        ran = cli.call("blob", "put", "unseen/x", "-o", "json", stdin=b"content")
        assert (ran.code, [each.status for each in running.log]) == (74, [201, 403])
