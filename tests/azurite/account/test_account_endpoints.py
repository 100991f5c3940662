"""Where the services of an account are: by option, environment and profile, never mixed with another's secret."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from azguard.accounts.account import Auth, emulator
from azguard.accounts.endpoints import EMULATOR_NAME
from azguard.cli.input import accounts
from azguard.errors import ConfigError, UsageError
from tests.azurite.account.test_accounts import KEY, OTHER, SAS, TEXT, choose, file
from tests.support.cli_world import CliWorld

__all__ = ["file"]


def endpoints(file: Path, shared: Mapping[str, Any], /, **environ: str) -> dict[str, str]:
    return dict(accounts.choose(shared, environ, file, emulator).endpoints)


NAMED = {"AZURE_STORAGE_ACCOUNT": "fromenv", "AZURE_STORAGE_KEY": KEY}
LOCAL = "http://127.0.0.1:10000/fromenv"


def at(suffix: str, name: str = "fromenv") -> dict[str, str]:
    return {service: f"https://{name}.{service}.{suffix}" for service in ("blob", "queue", "table", "file")}


def test_the_key_for_an_endpoint_on_this_machine_is_not_sent_to_the_public_cloud(file: Path) -> None:
    found = accounts.choose({}, {**NAMED, "AZURE_STORAGE_BLOB_ENDPOINT": f"{LOCAL}/"}, file, emulator)
    with pytest.raises(ConfigError, match="no queue endpoint"):
        found.endpoint("queue")
    assert dict(found.endpoints) == {"blob": LOCAL}


@pytest.mark.parametrize("service", ["blob", "table", "queue", "file"])
def test_each_service_has_an_endpoint_of_its_own_in_the_environment_and_as_option(file: Path, service: str) -> None:
    url = f"http://127.0.0.1:7/{service}/fromenv"
    by_variable = endpoints(file, {}, **NAMED, **{f"AZURE_STORAGE_{service.upper()}_ENDPOINT": url})
    by_option = endpoints(file, {f"{service}_endpoint": url, "account_name": "fromenv", "account_key": KEY})
    assert (by_variable, by_option) == ({service: url}, {service: url})


def test_an_endpoint_of_another_cloud_tells_the_others_beside_it(file: Path) -> None:
    url = "https://fromenv.blob.core.chinacloudapi.cn"
    assert endpoints(file, {}, **NAMED, AZURE_STORAGE_BLOB_ENDPOINT=url) == at("core.chinacloudapi.cn")


def test_a_suffix_is_that_of_all_services(file: Path) -> None:
    suffix = {"endpoint_suffix": ".core.usgovcloudapi.net"}
    assert endpoints(file, suffix, **NAMED) == at("core.usgovcloudapi.net")


def test_a_suffix_of_the_users_own_needs_its_own_proof(file: Path) -> None:
    suffix = {"endpoint_suffix": "stack.example.com"}
    with pytest.raises(UsageError, match="AZURE_STORAGE_KEY"):
        endpoints(file, suffix, **NAMED)
    assert endpoints(file, {**suffix, "account_key": OTHER}, **NAMED) == at("stack.example.com")


@pytest.mark.parametrize(
    ("endpoint", "found"),
    [
        ("https://acc.table.core.usgovcloudapi.net", at("core.usgovcloudapi.net", "acc")),
        ("http://127.0.0.1:10001/acc", {"queue": "http://127.0.0.1:10001/acc"}),
    ],
)
def test_the_service_endpoint_of_the_azure_cli_tells_its_service_and_account(
    file: Path, endpoint: str, found: dict[str, str]
) -> None:
    environ = {"AZURE_STORAGE_SERVICE_ENDPOINT": endpoint, "AZURE_STORAGE_SAS_TOKEN": SAS}
    assert endpoints(file, {}, **environ) == found


def test_a_service_endpoint_that_tells_no_service_is_refused(file: Path) -> None:
    with pytest.raises(ConfigError, match="AZURE_STORAGE_SERVICE_ENDPOINT does not tell which service"):
        endpoints(file, {}, AZURE_STORAGE_SERVICE_ENDPOINT="http://127.0.0.1:7/acc", AZURE_STORAGE_SAS_TOKEN=SAS)


def test_an_endpoint_alone_names_the_account(file: Path) -> None:
    shared = {"blob_endpoint": "https://acc.blob.core.windows.net", "sas_token": SAS}
    assert choose(file, shared, **NAMED) == ("acc", Auth.SAS, SAS)


@pytest.mark.parametrize(
    "shared",
    [
        {"blob_endpoint": "https://fromenv.blob.example.com"},
        {"blob_endpoint": "https://fromenv.blob.example.com", "account_name": "fromenv"},
        {"blob_endpoint": LOCAL},
        {"table_endpoint": "https://data.example.com", "account_name": "fromenv"},
    ],
)
@pytest.mark.parametrize("proof", [("AZURE_STORAGE_KEY", KEY), ("AZURE_STORAGE_SAS_TOKEN", SAS),
                                   ("AZURE_STORAGE_AUTH_MODE", "login")])  # fmt: skip
def test_a_secret_of_the_environment_does_not_go_where_only_an_option_points(
    file: Path, shared: dict[str, str], proof: tuple[str, str]
) -> None:
    with pytest.raises(UsageError, match=proof[0]):
        choose(file, shared, AZURE_STORAGE_ACCOUNT="fromenv", **dict([proof]))


def test_a_secret_of_the_environment_goes_where_the_environment_itself_points(file: Path) -> None:
    assert choose(file, {"blob_endpoint": "https://fromenv.blob.core.windows.net"}, **NAMED) == (
        "fromenv",
        Auth.KEY,
        KEY,
    )


def test_an_endpoint_of_another_account_takes_nothing_from_the_environment(file: Path) -> None:
    with pytest.raises(ConfigError, match="nothing proves who you are to account 'other'"):
        choose(file, {"blob_endpoint": "https://other.blob.core.windows.net"}, **NAMED)


def test_the_account_of_the_emulator_is_never_looked_for_in_the_public_cloud(file: Path) -> None:
    with pytest.raises(ConfigError, match="devstoreaccount1 is the emulator's account"):
        choose(file, AZURE_STORAGE_ACCOUNT=EMULATOR_NAME, AZURE_STORAGE_KEY=KEY)
    with pytest.raises(ConfigError, match="devstoreaccount1 is the emulator's account"):
        choose(file, {"connection_string": TEXT.replace("fromtext", EMULATOR_NAME)})


def test_a_profile_keeps_endpoints_and_suffix(tmp_path: Path) -> None:
    options = ("--account-name", "acc", "--auth-mode", "login", "--endpoint-suffix", "core.chinacloudapi.cn")
    world = CliWorld(tmp_path)
    kept = world.call("profile", "set", "china", *options, "--file-endpoint", "https://files.example.com")
    assert (kept.code, kept.json["endpoint_suffix"]) == (0, "core.chinacloudapi.cn"), kept.err
    file = tmp_path / ".config" / "config.toml"
    found = endpoints(file, {"profile": "china"})
    assert found == {**at("core.chinacloudapi.cn", "acc"), "file": "https://files.example.com"}
