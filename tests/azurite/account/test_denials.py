"""Why credentials are not accepted: which field of a SAS, the clock, the key or the login; said, not guessed."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import generate_table_sas
from azure.storage.blob import (
    AccountSasPermissions,
    ResourceTypes,
    generate_account_sas,
    generate_blob_sas,
    generate_container_sas,
)

from azguard.accounts.endpoints import EMULATOR_KEY, EMULATOR_NAME
from tests.support.cli_world import CliWorld


def in_minutes(minutes: float) -> datetime:
    return datetime.now(UTC) + timedelta(minutes=minutes)


def account_sas(permissions: str, types: str = "sco", ends: float = 600, starts: float | None = None) -> str:
    return str(
        generate_account_sas(
            EMULATOR_NAME,
            EMULATOR_KEY,
            ResourceTypes.from_string(types),  # type: ignore[no-untyped-call]  # the SDK has no types here
            AccountSasPermissions.from_string(permissions),  # type: ignore[no-untyped-call]  # the SDK has no types here
            in_minutes(ends),
            start=None if starts is None else in_minutes(starts),
        )
    )


@pytest.fixture
def blob(cli: CliWorld) -> str:
    """Return the URL of a blob, without credentials."""
    container = cli.container()
    assert cli.call("blob", "put", f"{container}/a", "-f", str(cli.file("a", "text"))).code == 0
    return f"http://127.0.0.1:{cli.port}/{EMULATOR_NAME}/{container}/a"


@pytest.mark.parametrize(
    ("token", "words"),
    [
        (account_sas("rw", ends=-10), r"the SAS ended at \S+Z \(se\); the service's clock says \S+Z"),
        (account_sas("rw", starts=300), r"the SAS begins only at \S+Z \(st\); the service's clock says"),
        (account_sas("w"), r"it needs read \(r\), and has sp=w"),
        (account_sas("r", types="sc"), r"needs a SAS for blobs, files, messages and entities, and this has srt=sc"),
        (generate_blob_sas(EMULATOR_NAME, "site", "other", account_key=EMULATOR_KEY, permission="r",
                           expiry=in_minutes(600)), "the signature of the SAS does not fit"),
        (generate_container_sas(EMULATOR_NAME, "site", account_key=EMULATOR_KEY, policy_id="readers"),
         r"its stored access policy 'readers' \(si\) decides"),
        (generate_table_sas(AzureNamedKeyCredential(EMULATOR_NAME, EMULATOR_KEY), "Orders", permission="r",
                            expiry=in_minutes(600)), "the SAS is for the service table, not for blob"),
    ],
)  # fmt: skip
def test_the_field_of_a_sas_that_does_not_allow_it_is_named(cli: CliWorld, blob: str, token: str, words: str) -> None:
    ran = cli.call("blob", "show", f"{blob}?{token}")
    signature = re.findall(r"sig=([^&]+)", token)[0]
    assert ran.code in (41, 43)
    assert re.search(words, ran.err.splitlines()[0]), ran.err
    assert ("--timeout" in ran.err, signature in ran.err) == (False, False)


def test_the_permission_that_a_write_needs_is_named(cli: CliWorld, blob: str) -> None:
    ran = cli.call("blob", "put", f"{blob}?{account_sas('r')}", "-f", "a", "--last-writer-wins")
    assert (ran.code, "it needs create (c) or write (w), and has sp=r" in ran.err) == (43, True), ran.err


def test_a_listing_of_the_whole_account_is_named(cli: CliWorld) -> None:
    endpoint = f"http://127.0.0.1:{cli.port}/{EMULATOR_NAME}"
    text = f"BlobEndpoint={endpoint};SharedAccessSignature={account_sas('r', types='o')}"
    ran = cli.call("container", "list", "--connection-string", text)
    assert (ran.code, "account devstoreaccount1 needs a SAS for the service" in ran.err) == (43, True), ran.err


def test_the_account_key_of_another_account_is_named(cli: CliWorld, blob: str) -> None:
    ran = cli.call("blob", "show", blob, "--connection-string", cli.connection_string.replace("Eby8", "Aby8"))  # type: ignore[union-attr]  # the fixture sets it
    assert (ran.code, ran.err.partition(",")[0]) == (43, "error: the account key is not one of devstoreaccount1")
    assert ran.err.endswith("hint: azguard emulator env prints the key of the emulator\n")
