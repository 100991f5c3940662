"""Why credentials are not accepted: which field of a SAS, the clock, the key or the login; said, not guessed."""

import re
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from types import SimpleNamespace
from typing import Any

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

from azguard.accounts import sas
from azguard.accounts.account import Account, Auth
from azguard.accounts.target import Target
from azguard.accounts.well_known import EMULATOR_KEY, EMULATOR_NAME
from azguard.address import parse
from azguard.requests import denials
from tests.support.cli_world import CliWorld

NOW = datetime(2026, 11, 21, 10, tzinfo=UTC)
AZURE = {"blob": "https://acc.blob.core.windows.net", "table": "https://acc.table.core.windows.net"}


def in_minutes(minutes: float) -> datetime:
    return datetime.now(UTC) + timedelta(minutes=minutes)


def account_sas(permissions: str, types: str = "sco", ends: float = 10, starts: float | None = None) -> str:
    return str(
        generate_account_sas(
            EMULATOR_NAME,
            EMULATOR_KEY,
            ResourceTypes.from_string(types),  # type: ignore[no-untyped-call]
            AccountSasPermissions.from_string(permissions),  # type: ignore[no-untyped-call]
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
        (account_sas("rw", starts=5), r"the SAS begins only at \S+Z \(st\); the service's clock says"),
        (account_sas("w"), r"it needs read \(r\), and has sp=w"),
        (account_sas("r", types="sc"), r"needs a SAS for blobs, files, messages and entities, and this has srt=sc"),
        (generate_blob_sas(EMULATOR_NAME, "site", "other", account_key=EMULATOR_KEY, permission="r",
                           expiry=in_minutes(9)), "the signature of the SAS does not fit"),
        (generate_container_sas(EMULATOR_NAME, "site", account_key=EMULATOR_KEY, policy_id="readers"),
         r"its stored access policy 'readers' \(si\) decides"),
        (generate_table_sas(AzureNamedKeyCredential(EMULATOR_NAME, EMULATOR_KEY), "Orders", permission="r",
                            expiry=in_minutes(9)), "the SAS is for the service table, not for blob"),
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
    ran = cli.call("blob", "show", blob, "--connection-string", cli.connection_string.replace("Eby8", "Aby8"))  # type: ignore[union-attr]
    assert (ran.code, "the account key is not one of devstoreaccount1" in ran.err) == (43, True), ran.err


def request(method: str = "GET", url: str = "https://acc/site/a", **headers: str) -> Any:
    return SimpleNamespace(method=method, url=url, headers=headers)


def refusal(code: str, asked: Any, token: str | None = None, **headers: str) -> denials.Denial:
    """Return what is made of an answer of the service at ``NOW`` to a request under a SAS, or the key."""
    response = SimpleNamespace(headers={"Date": format_datetime(NOW, usegmt=True), **headers}, request=asked)
    kind = "entity" if "Tables" in asked.url or "Orders" in asked.url else "blob"
    which = "entity:Orders/a/b" if kind == "entity" else "blob:site/a"
    account = Account("acc", AZURE, Auth.KEY if token is None else Auth.SAS, token or "key")
    return denials.explain(SimpleNamespace(response=response), code, Target(account, parse(which).address))


@pytest.mark.parametrize(("minutes", "way"), [(-20, "20m behind"), (540, "9h ahead")])
def test_a_clock_that_is_wrong_is_named_with_its_distance(minutes: int, way: str) -> None:
    sent = format_datetime(NOW + timedelta(minutes=minutes), usegmt=True)
    found = refusal("AuthenticationFailed", request(**{"x-ms-date": sent}))
    assert (f"this machine's clock is {way}" in found.message, found.reason) == (True, "clock_is_off")


def test_a_clock_that_is_right_is_not_blamed() -> None:
    sent = format_datetime(NOW - timedelta(minutes=14), usegmt=True)
    assert "account key" in refusal("AuthenticationFailed", request(**{"x-ms-date": sent})).message


@pytest.mark.parametrize(
    ("code", "token", "words"),
    [
        ("AuthenticationFailed", "se=2026-11-21T09:59:59Z&sp=r&sr=b&sig=x", "ended at 2026-11-21T09:59:59Z"),
        ("AuthenticationFailed", "se=2026-11-21&sp=r&sr=b&sig=x", "ended at 2026-11-21T00:00:00Z"),
        ("AuthorizationServiceMismatch", "ss=q&srt=o&sp=r&se=2027-01-01&sig=x", "is for the service queue (ss=q)"),
        ("AuthorizationProtocolMismatch", "spr=https&sp=r&sr=b&sig=x", "AuthorizationProtocolMismatch; it has sr=b"),
        ("AuthorizationSourceIPMismatch", "sip=10.0.0.1-10.0.0.9&sp=r&sr=b&sig=x", "from 10.0.0.1-10.0.0.9 only"),
        ("AuthorizationPermissionMismatch", "sp=rc&sr=b&sig=x", "it has sp=rc"),
        ("AuthorizationFailure", "sp=r&sr=b&sig=x", "does not let this machine in"),
        ("KeyBasedAuthenticationNotPermitted", "sp=r&sr=b&sig=x", "accepts neither keys nor a SAS"),
    ],
)
def test_what_only_the_real_service_says_is_understood(code: str, token: str, words: str) -> None:
    assert words in refusal(code, request(), token).message


@pytest.mark.parametrize(
    ("service", "asked", "needed"),
    [
        ("blob", request("PUT"), ("cw",)),
        ("blob", request("PUT", **{"x-ms-tags": "fence=1"}), ("cw", "t")),
        ("blob", request("PUT", "https://acc/site/a?comp=metadata"), ("w",)),
        ("blob", request("PUT", "https://acc/site/a?comp=lease"), ("wd",)),
        ("blob", request("GET", "https://acc/site?restype=container&comp=list"), ("l",)),
        ("blob", request("DELETE", "https://acc/site/a?versionid=2026"), ("x",)),
        ("blob", request("PUT", "https://acc/site?restype=container&comp=acl"), ()),
        ("table", request("PATCH", "https://acc/Orders(PartitionKey='a',RowKey='b')"), ("u", "a")),
        ("table", request("PUT", "https://acc/Orders(PartitionKey='a',RowKey='b')", **{"If-Match": "*"}), ("u",)),
        ("table", request("POST", "https://acc/Tables"), ("cw",)),
        ("table", request("POST", "https://acc/$batch"), ()),
        ("queue", request(), ()),
    ],
)  # fmt: skip
def test_a_request_tells_what_it_needs(service: str, asked: Any, needed: tuple[str, ...]) -> None:
    assert denials.needed_permissions(asked, service) == needed


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("2026-11-21", NOW.replace(hour=0)),
        ("2026-11-21T10:00Z", NOW),
        ("2026-11-21T10%3A00%3A00Z", NOW),
        ("2026-11-21T10:00:00.0000000Z", NOW),
        ("soon", None),
    ],
)
def test_the_times_of_a_sas_have_many_forms(text: str, ends: datetime | None) -> None:
    assert sas.read(f"?sv=2025&se={text}&sig=x").ends == ends


def test_a_sas_ends_with_the_key_of_the_user_who_made_it() -> None:
    found = sas.read("se=2026-11-23&ske=2026-11-21T10:00:00Z&st=2026-11-19&skt=2026-11-20&sig=x")
    assert (found.starts, found.ends) == (NOW.replace(day=20, hour=0), NOW)


def test_the_signature_is_not_among_what_is_read() -> None:
    assert "c2VjcmV0" not in repr(sas.read("sp=r&sig=c2VjcmV0"))
