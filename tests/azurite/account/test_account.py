"""Credentials and endpoints → an account, and what it gives to the SDK."""

import base64

import pytest

from azguard.accounts.account import Account, Auth, from_connection_string, from_name
from azguard.accounts.endpoints import EMULATOR_KEY, EMULATOR_NAME
from azguard.address import Kind, parse
from azguard.cli.words.hints import in_words
from azguard.errors import ConfigError
from tests.support.cases import cases

KEY = base64.b64encode(b"k" * 64).decode()
SAS = "sv=2025-01-05&sp=rw&sig=c2lnbmF0dXJl"
WHOLE = f"DefaultEndpointsProtocol=https;AccountName=acc;AccountKey={KEY};EndpointSuffix=core.windows.net"


def shown(account: Account) -> tuple[str, dict[str, str], Auth, str | None]:
    return account.name, dict(account.endpoints), account.auth, account.secret


def test_a_whole_connection_string_gives_all_four_services() -> None:
    services = {service: f"https://acc.{service}.core.windows.net" for service in ("blob", "queue", "table", "file")}
    assert shown(from_connection_string(WHOLE)) == ("acc", services, Auth.KEY, KEY)


def test_parts_may_stand_in_any_order_and_case_with_blanks_around_them() -> None:
    text = f" accountkey = {KEY} ; ACCOUNTNAME = acc ; "
    assert from_connection_string(text).endpoint("blob") == "https://acc.blob.core.windows.net"


def test_use_development_storage_works_for_all_four_services() -> None:
    endpoints = {
        service: f"http://127.0.0.1:{port}/devstoreaccount1"
        for service, port in (("blob", 10000), ("queue", 10001), ("table", 10002), ("file", 10004))
    }
    found = from_connection_string("UseDevelopmentStorage=true;")
    assert shown(found) == (EMULATOR_NAME, endpoints, Auth.KEY, EMULATOR_KEY)


def test_development_storage_may_be_on_another_host() -> None:
    text = "UseDevelopmentStorage=true;DevelopmentStorageProxyUri=http://azurite"
    assert from_connection_string(text).endpoint("table") == "http://azurite:10002/devstoreaccount1"


def test_an_explicit_endpoint_with_a_sas_needs_no_name() -> None:
    text = f"BlobEndpoint=https://acc.blob.core.windows.net/;SharedAccessSignature={SAS}"
    found = from_connection_string(text)
    assert shown(found) == ("acc", {"blob": "https://acc.blob.core.windows.net"}, Auth.SAS, SAS)


def test_a_service_that_was_not_given_is_a_config_error() -> None:
    account = from_connection_string(f"QueueEndpoint=http://127.0.0.1:1/acc;SharedAccessSignature={SAS}")
    with pytest.raises(ConfigError) as caught:
        account.endpoint("blob")
    assert caught.value.exit_code == 78


@cases(
    ("text", "named"),
    ("", "empty"),
    (" ; ; ", "empty"),
    ("DefaultEndpointsProtocol", "without '='"),
    (WHOLE.replace("AccountName=acc;", ""), "AccountName"),
    (WHOLE.replace("AccountName=acc;", "AccountName=;"), "AccountName"),
    (WHOLE.replace(f"AccountKey={KEY};", ""), "AccountKey"),
    (WHOLE.replace(f"AccountKey={KEY}", "AccountKey="), "AccountKey"),
    (WHOLE.replace(KEY, KEY[:-3]), "AccountKey is not base64"),
    (WHOLE.replace(KEY, f"“{KEY}”"), "AccountKey is not base64"),
    (WHOLE.replace("=https;", "=ftp;"), "DefaultEndpointsProtocol"),
    (WHOLE.replace("AccountName=acc", "AccountName=My Account"), "not a storage account name"),
    (WHOLE.replace("core.windows.net", "core windows"), "EndpointSuffix"),
    (f"BlobEndpoint=127.0.0.1:10000;AccountName=acc;AccountKey={KEY}", "BlobEndpoint"),
    (f"BlobEndpoint=https://me:pw@host;AccountName=acc;AccountKey={KEY}", "BlobEndpoint"),
    (f"BlobEndpoint=https://host:port;AccountName=acc;AccountKey={KEY}", "BlobEndpoint"),
    (f"BlobEndpoint=https://acc.blob.core.windows.net;AccountKey={KEY}", "AccountName"),
    ("BlobEndpoint=https://acc.blob.core.windows.net;SharedAccessSignature=sv=1", "SharedAccessSignature"),
    ("UseDevelopmentStorage=false", "AccountName"),
    (f"UseDevelopmentStorage=true;{WHOLE}", "another account, by AccountName"),
    (f"{WHOLE};AccountName=other", "has AccountName twice"),
    (f"{WHOLE};AccountKey=b3RoZXI=", "has AccountKey twice"),
    (f"BlobEndpoint=https://acc.queue.core.windows.net;AccountName=acc;AccountKey={KEY}", "of the queue service"),
    (f"BlobEndpoint=https://acc.blob.core.windows.net/?{SAS};AccountName=acc", "carries a SAS"),
    (f"Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=a;SharedAccessKey={KEY}", "Service Bus"),
    (f"AccountEndpoint=https://x.documents.azure.com:443/;AccountKey={KEY};", "Cosmos DB"),
    (f"HostName=x.azure-devices.net;SharedAccessKeyName=a;SharedAccessKey={KEY}", "IoT Hub"),
    ("InstrumentationKey=0;IngestionEndpoint=https://x", "Application Insights"),
    (f"Endpoint=https://x.azconfig.io;Id=a;Secret={KEY}", "App Configuration"),
    ("Server=tcp:x.database.windows.net;Password=abcdef", "a database"),
)
def test_a_missing_or_malformed_part_is_named_and_the_secret_is_not(text: str, named: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_connection_string(text)
    told = f"{caught.value.message} {in_words(caught.value).hint}"
    assert (caught.value.exit_code, named in told, KEY[:20] in told) == (78, True, False)


@cases("name", "", "ab", "UPPER", "with-dash", "a" * 25, "evil.com/")
def test_a_name_no_account_can_have_is_refused(name: str) -> None:
    with pytest.raises(ConfigError):
        from_name(name, Auth.LOGIN, None)


def test_repr_shows_neither_key_nor_sas() -> None:
    accounts = [from_connection_string(WHOLE), from_name("acc", Auth.SAS, SAS)]
    assert not any(secret in repr(account) for account in accounts for secret in (KEY, SAS, "c2lnbmF0dXJl"))


def test_a_url_of_the_same_endpoint_uses_the_credentials_at_hand() -> None:
    account = from_connection_string(WHOLE)
    assert account.at(parse("https://ACC.blob.core.windows.net:443/site/a")) is account


def test_localhost_and_the_loopback_address_are_one_emulator() -> None:
    account = from_connection_string("UseDevelopmentStorage=true")
    assert account.at(parse("http://localhost:10000/devstoreaccount1/site/a")) is account


@cases(
    "url",
    "https://other.blob.core.windows.net/site/a",
    "https://acc.blob.evil.example/site/a",  # the same first label is not the same account
    "https://acc.evil.example/site/a",
    "http://acc.blob.core.windows.net/site/a",  # in the clear
    "https://acc.blob.core.windows.net:8443/site/a",
    "http://127.0.0.1:10000/acc/site/a",
)
def test_credentials_are_never_sent_to_another_host(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_connection_string(WHOLE).at(parse(url, Kind.BLOB))
    assert (caught.value.exit_code, "add a SAS" in (in_words(caught.value).hint or "")) == (78, True)


def test_a_url_with_a_sas_is_an_account_of_its_own() -> None:
    account = from_connection_string(WHOLE).at(parse(f"https://other.blob.core.windows.net/site/a?{SAS}"))
    assert shown(account) == ("other", {"blob": "https://other.blob.core.windows.net"}, Auth.SAS, SAS)
