"""Which account a command line means: options, then environment, then the profile, then an error."""

import base64
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from azguard.accounts.account import Account, Auth, emulator
from azguard.accounts.endpoints import EMULATOR_NAME
from azguard.cli.input import accounts
from azguard.cli.options.common import ACCOUNT_ROWS
from azguard.cli.words.hints import in_words
from azguard.errors import AzguardError, ConfigError, UsageError
from tests.support.cases import cases
from tests.support.cli_world import CliWorld

KEY = base64.b64encode(b"k" * 64).decode()
OTHER = base64.b64encode(b"o" * 64).decode()
SAS = "sv=2025-01-05&sp=rw&sig=c2lnbmF0dXJlc2lnbmF0dXJl"
TEXT = f"DefaultEndpointsProtocol=https;AccountName=fromtext;AccountKey={KEY}"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "config.toml"
    made.write_text(
        f"""default = "usual"
[profiles.usual]
account-name = "fromprofile"
auth-mode = "login"
[profiles.build]
connection-string = "{TEXT.replace("fromtext", "frombuild")}"
[profiles.local]
emulator = "true"
"""
    )
    return made


def choose(file: Path, shared: Mapping[str, Any] | None = None, /, **environ: str) -> tuple[str, Auth, str | None]:
    found = accounts.choose(shared or {}, environ, file, emulator)
    return found.name, found.auth, found.secret


def test_options_win_over_the_environment_and_the_profile(file: Path) -> None:
    shared = {"account_name": "fromoption", "account_key": OTHER}
    found = choose(file, shared, AZURE_STORAGE_CONNECTION_STRING=TEXT, AZURE_STORAGE_ACCOUNT="fromenv")
    assert found == ("fromoption", Auth.KEY, OTHER)


def test_the_environment_wins_over_the_profile(file: Path) -> None:
    found = choose(file, AZURE_STORAGE_ACCOUNT="fromenv", AZURE_STORAGE_KEY=KEY, AZGUARD_PROFILE="build")
    assert found == ("fromenv", Auth.KEY, KEY)


def test_a_connection_string_in_the_environment_wins_over_a_name_there(file: Path) -> None:
    found = choose(file, AZURE_STORAGE_CONNECTION_STRING=TEXT, AZURE_STORAGE_ACCOUNT="fromenv")
    assert found == ("fromtext", Auth.KEY, KEY)


@pytest.mark.parametrize(
    ("shared", "name", "warns"),
    [({}, "fromenv", True), ({}, "fromtext", False), ({"account_name": "fromtext"}, "fromenv", False)],
)
def test_a_connection_string_that_wins_over_another_account_is_warned_of(
    file: Path, shared: dict[str, Any], name: str, warns: bool
) -> None:
    environ = {"AZURE_STORAGE_CONNECTION_STRING": TEXT, "AZURE_STORAGE_ACCOUNT": name}
    account = accounts.choose({}, environ, file, emulator)
    assert (accounts.find_overruled(shared, environ, account) is not None) is warns


def test_the_profile_of_the_environment_wins_over_the_default_one(file: Path) -> None:
    assert choose(file, AZGUARD_PROFILE="build") == ("frombuild", Auth.KEY, KEY)


def test_the_default_profile_is_used_where_nothing_else_is_said(file: Path) -> None:
    assert choose(file) == ("fromprofile", Auth.LOGIN, None)


def test_a_profile_may_be_the_emulator(file: Path) -> None:
    assert choose(file, {"profile": "local"})[:2] == (EMULATOR_NAME, Auth.KEY)


def test_the_emulator_option_wins_over_a_real_account(file: Path) -> None:
    assert choose(file, {"emulator": True}, AZURE_STORAGE_CONNECTION_STRING=TEXT)[0] == EMULATOR_NAME


def test_without_anything_the_error_says_how_to_set_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        choose(tmp_path / "none.toml")
    assert (caught.value.exit_code, "AZURE_STORAGE_CONNECTION_STRING" in (in_words(caught.value).hint or "")) == (
        78,
        True,
    )


def test_a_name_as_option_is_completed_by_the_key_of_the_environment(file: Path) -> None:
    found = choose(file, {"account_name": "fromoption"}, AZURE_STORAGE_KEY=KEY)
    assert found == ("fromoption", Auth.KEY, KEY)


def test_the_key_of_another_account_completes_nothing(file: Path) -> None:
    with pytest.raises(ConfigError, match="nothing proves"):
        choose(file, {"account_name": "fromoption"}, AZURE_STORAGE_ACCOUNT="another", AZURE_STORAGE_KEY=KEY)


@pytest.mark.parametrize(
    ("shared", "auth", "secret"),
    [
        ({"sas_token": SAS}, Auth.SAS, SAS),
        ({"sas_token": "?" + SAS}, Auth.SAS, SAS),
        ({"auth_mode": "login"}, Auth.LOGIN, None),
        ({"auth_mode": "anonymous"}, Auth.ANONYMOUS, None),
        ({"account_key": OTHER}, Auth.KEY, OTHER),
    ],
)
def test_who_asks_by_option_replaces_who_asks_in_the_environment(
    file: Path, shared: dict[str, str], auth: Auth, secret: str | None
) -> None:
    found = choose(file, shared, AZURE_STORAGE_ACCOUNT="fromenv", AZURE_STORAGE_KEY=KEY)
    assert found == ("fromenv", auth, secret)


@pytest.mark.parametrize(
    "shared", [{"connection_string": "@{}"}, {"account_name": "fromtext", "account_key": "@{}"},
               {"account_name": "fromtext", "sas_token": "@{}"}],
)  # fmt: skip
def test_secrets_may_be_in_a_file(tmp_path: Path, shared: dict[str, str]) -> None:
    content = {"connection_string": TEXT, "account_key": KEY, "sas_token": SAS}[list(shared)[-1]]
    (tmp_path / "secret").write_text(content + "\n")
    filled = {name: value.format(tmp_path / "secret") for name, value in shared.items()}
    name, _, secret = choose(tmp_path / "none.toml", filled)
    assert (name, secret) == ("fromtext", SAS if "sas_token" in shared else KEY)


def test_a_secret_of_the_environment_may_be_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(TEXT)
    found = choose(tmp_path / "none.toml", AZURE_STORAGE_CONNECTION_STRING=f"@{tmp_path / 'secret'}")
    assert found == ("fromtext", Auth.KEY, KEY)


def test_a_secrets_file_may_begin_with_a_byte_order_mark_and_end_with_line_ends(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"\xef\xbb\xbf" + KEY.encode() + b"\r\n\n")
    found = choose(tmp_path / "none.toml", {"account_name": "acc", "account_key": f"@{tmp_path / 'secret'}"})
    assert found == ("acc", Auth.KEY, KEY)


@cases(("value", "words"), ("@", "names no file"), ("@.", "directory"), ("@no\0file", "is not text"))
def test_what_is_no_file_of_a_secret_is_a_config_error(tmp_path: Path, value: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        choose(tmp_path / "none.toml", {"account_name": "acc", "account_key": value})
    assert words in caught.value.message


@cases("content", None, b"", b"\n", b"\xff\xfe", b"not base64!")
def test_a_file_of_a_secret_that_holds_none_is_a_config_error(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "secret").write_bytes(content)
    with pytest.raises(ConfigError):
        choose(tmp_path / "none.toml", {"account_name": "acc", "account_key": f"@{tmp_path / 'secret'}"})


@cases(
    ("shared", "error", "named"),
    ({"account_name": "a12", "connection_string": TEXT}, UsageError, "--account-name"),
    ({"emulator": True, "account_name": "a12"}, UsageError, "--emulator"),
    ({"emulator": True, "account_key": KEY}, UsageError, "--emulator"),
    ({"profile": "build", "sas_token": SAS}, UsageError, "--profile"),
    ({"account_key": KEY}, UsageError, "--account-key"),
    ({"connection_string": TEXT, "blob_endpoint": "http://127.0.0.1:10000/fromenv"}, UsageError, "--blob-endpoint"),
    ({"emulator": True, "endpoint_suffix": "core.windows.net"}, UsageError, "--emulator"),
    ({"profile": "build", "table_endpoint": "http://127.0.0.1:10000/fromenv"}, UsageError, "--table-endpoint"),
    ({"blob_endpoint": "https://data.example.com", "sas_token": SAS}, UsageError, "--account-name"),
    ({"blob_endpoint": "acc", "sas_token": SAS}, ConfigError, "not a URL"),
    ({"account_name": "a12", "sas_token": SAS, "blob_endpoint": f"http://127.0.0.1:10000/fromenv?{SAS}"}, ConfigError,
     "carries a SAS"),
    ({"account_name": "a12", "auth_mode": "login", "endpoint_suffix": "https://x"}, ConfigError, "suffix"),
    ({"account_name": "a12", "auth_mode": "login", "blob_endpoint": "https://a12.queue.core.windows.net"}, ConfigError,
     "is of the queue service"),
    ({"account_name": "a12", "auth_mode": "login", "blob_endpoint": "https://b12.blob.core.windows.net"}, ConfigError,
     "is of account 'b12'"),
    ({"account_name": "a12", "account_key": KEY, "sas_token": SAS}, UsageError, "--sas-token"),
    ({"account_name": "a12", "account_key": KEY, "auth_mode": "login"}, UsageError, "--auth-mode login"),
    ({"account_name": "a12", "auth_mode": "maybe"}, UsageError, "--auth-mode"),
    ({"account_name": "A_b", "auth_mode": "login"}, ConfigError, "A_b"),
    ({"account_name": "a12"}, ConfigError, "a12"),
    ({"account_name": "a12", "auth_mode": "key"}, ConfigError, "a12"),
    ({"account_name": "a12", "account_key": "###"}, ConfigError, "account key"),
    ({"account_name": "a12", "sas_token": "sv=1"}, ConfigError, "SAS"),
    ({"profile": "nosuch"}, ConfigError, "nosuch"),
)  # fmt: skip
def test_contradictions_are_refused(file: Path, shared: dict[str, Any], error: type[AzguardError], named: str) -> None:
    with pytest.raises(error) as caught:
        choose(file, shared)
    assert named in caught.value.message


@cases("value", "", "  ")
def test_an_empty_option_is_a_usage_error(value: str) -> None:
    for row in (row for row in ACCOUNT_ROWS if not row.is_flag):
        with pytest.raises(UsageError, match=f"{row.flags[0]} is empty"):
            row.read(value)


@pytest.mark.parametrize(
    "variable",
    ["AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN",
     "AZURE_STORAGE_AUTH_MODE", "AZURE_STORAGE_BLOB_ENDPOINT", "AZURE_STORAGE_FILE_ENDPOINT",
     "AZURE_STORAGE_SERVICE_ENDPOINT", "AZGUARD_PROFILE"],
)  # fmt: skip
def test_a_variable_that_is_set_but_empty_never_falls_through_to_another_account(file: Path, variable: str) -> None:
    with pytest.raises(ConfigError, match=variable):
        choose(file, **{variable: ""})


@cases(
    "environ",
    {"AZURE_STORAGE_KEY": KEY, "AZURE_STORAGE_SAS_TOKEN": SAS},
    {"AZURE_STORAGE_KEY": KEY, "AZURE_STORAGE_AUTH_MODE": "login"},
)
def test_an_environment_that_contradicts_itself_is_a_config_error(file: Path, environ: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as caught:
        choose(file, AZURE_STORAGE_ACCOUNT="fromenv", **environ)
    assert all(variable in caught.value.message for variable in environ)


def test_a_mode_of_the_environment_that_is_not_known_is_named_by_its_variable(file: Path) -> None:
    with pytest.raises(ConfigError, match="AZURE_STORAGE_AUTH_MODE 'maybe' is not known"):
        choose(file, AZURE_STORAGE_ACCOUNT="fromenv", AZURE_STORAGE_AUTH_MODE="maybe")


def test_a_profile_that_contradicts_itself_is_a_config_error(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(f'[profiles.a]\naccount-name = "a12"\naccount-key = "{KEY}"\nsas-token = "{SAS}"')
    with pytest.raises(ConfigError, match="profile 'a'"):
        choose(tmp_path / "c.toml", {"profile": "a"})


def test_no_login_is_tried_before_it_is_needed() -> None:
    account: Account = accounts.from_settings({"account-name": "acc", "auth-mode": "login"}, emulator)
    assert account.shared == {}


_FAILING: tuple[tuple[tuple[str, ...], dict[str, str]], ...] = (
    (("blob", "show", "site/a", "--connection-string", TEXT + ";x"), {}),
    (("blob", "show", "site/a", "--connection-string", TEXT, "--account-key", KEY), {}),
    (("blob", "show", "site/a", "--connection-string", TEXT.replace("AccountName=fromtext;", "")), {}),
    (("blob", "show", "site/a", "--account-name", "acc", "--account-key", KEY[:-2]), {}),
    (("blob", "show", "site/a", "--account-name", "acc", "--account-key", KEY, "--sas-token", SAS), {}),
    (("blob", "show", "site/a", TEXT), {}),
    (("blob", "show", f"https://acc.blob.core.windows.net/site/a?{SAS}#x"), {}),
    (("blob", "show", f"https://acc.blob.core.windows.net/si_te/a?{SAS}"), {}),
    (("blob", "show", f"http://127.0.0.1:9/acc/site/a?{SAS}", "--timeout", "0.2s"), {}),
    (("blob", "put", f"http://127.0.0.1:9/acc/site/a?{SAS}", "--timeout", "0.2s"), {}),
    (("container", "list", "--timeout", "0.2s"),
     {"AZURE_STORAGE_CONNECTION_STRING": f"{TEXT};BlobEndpoint=http://127.0.0.1:9/acc"}),
    (("container", "create", "site", "--timeout", "0.2s"),
     {"AZURE_STORAGE_ACCOUNT": "acc", "AZURE_STORAGE_SAS_TOKEN": SAS,
      "AZURE_STORAGE_BLOB_ENDPOINT": "http://127.0.0.1:9/acc"}),
    (("blob", "show", "site/a", "--sas-token", SAS), {}),
    (("blob", "show", "site/a", "--no-such-option", KEY), {}),
)  # fmt: skip


@cases(("argv", "environ"), *_FAILING)
@cases("how", (), ("-o", "json"), ("--debug",))
def test_no_secret_is_ever_shown(
    offline: CliWorld, argv: tuple[str, ...], environ: dict[str, str], how: tuple[str, ...]
) -> None:
    ran = offline.call(*argv, *how, env=environ)
    told = ran.out + ran.err
    leaked = [secret for secret in (KEY, KEY[:-2], SAS, "c2lnbmF0dXJl") if secret in told]
    assert (ran.code != 0, leaked) == (True, [])


@cases(
    "words",
    ("entity", "insert", "orders/eu/7", "n=5"),
    ("table", "delete", "orders", "--with-contents", "--last-writer-wins"),
    ("lease", "acquire", "share:team"),
)
def test_a_write_that_no_credential_was_given_for_is_never_in_doubt(offline: CliWorld, words: tuple[str, ...]) -> None:
    places = [text for each in ("table", "file") for text in (f"--{each}-endpoint", "http://127.0.0.1:1/contoso")]
    ran = offline.call(*words, *places, "--auth-mode", "anonymous", "-o", "json")
    assert (ran.code, ran.error["message"].endswith("service knows no anonymous access")) == (78, True)


@cases(
    ("words", "told"),
    ("container list --account-key {key}", "repeat signed requests, for 15 minutes"),
    ("queue list --account-key {key}", "repeat signed requests, for 15 minutes"),
    ("container list --sas-token {sas}", "and use the SAS"),
    ("container list --account-key {key} --allow-http", None),
    ("container list --account-key {key} -q", None),
    ("container list --auth-mode anonymous", None),
)
def test_a_secret_over_http_to_another_machine_is_warned_of(offline: CliWorld, words: str, told: str | None) -> None:
    places = ("--blob-endpoint", "http://files.invalid/acc", "--queue-endpoint", "http://files.invalid/acc")
    typed = words.format(key=KEY, sas=SAS).split()
    ran = offline.call(*typed, "--account-name", "acc", *places, "--timeout", "100ms")
    warned = re.findall(r"^warning: http://files.invalid/acc is not encrypted: .*", ran.err, re.MULTILINE)
    assert (len(warned), told is None or told in warned[0]) == (0 if told is None else 1, True), ran.err


@cases(("words", "count"), ((), 1), (("--allow-http",), 0))
def test_a_url_whose_sas_goes_over_http_is_warned_of(offline: CliWorld, words: tuple[str, ...], count: int) -> None:
    ran = offline.call("blob", "show", f"http://files.invalid/acc/site/a?{SAS}", *words, "--timeout", "100ms")
    assert (ran.code, ran.err.count("is not encrypted")) == (53, count), ran.err


def test_a_profile_keeps_what_is_accepted_of_its_endpoints(offline: CliWorld) -> None:
    place = ("--account-name", "acc", "--blob-endpoint", "http://files.invalid/acc")
    kept = offline.call("profile", "set", "old", *place, "--account-key", KEY, "--allow-http", "--trust-endpoint")
    ran = offline.call("container", "list", "--profile", "old", "--timeout", "100ms")
    assert (kept.json["allow_http"], kept.json["trust_endpoint"], "not encrypted" in ran.err) == ("true", "true", False)


@cases(
    ("endpoint", "name", "warns"),
    ("http://127.0.0.1:10000/acc", "acc", False), ("http://localhost:10000/acc", "acc", False),
    ("http://[::1]:10000/acc", "acc", False), ("https://nas.corp/acc", "acc", False),
    ("http://azurite:10000/devstoreaccount1", EMULATOR_NAME, False), ("http://nas.corp/acc", "acc", True),
    ("http://acc.blob.core.windows.net", "acc", True), ("http://127.0.0.1.nip.example/acc", "acc", True),
)  # fmt: skip
def test_only_what_leaves_this_machine_in_plain_text_is_warned_of(endpoint: str, name: str, warns: bool) -> None:
    found = accounts.find_unencrypted(Account(name, {"blob": endpoint}, Auth.KEY, KEY))
    assert (found is not None) == warns


@cases(
    ("shared", "environ", "version"),
    ({}, {}, "2019-07-07"),
    ({}, {"AZGUARD_API_VERSION": "2020-10-02"}, "2020-10-02"),
    ({"api_version": "2021-12-02"}, {"AZGUARD_API_VERSION": "2020-10-02"}, "2021-12-02"),
    ({"emulator": True}, {}, None),
    ({"emulator": True}, {"AZGUARD_API_VERSION": "2020-10-02"}, "2020-10-02"),
)
def test_an_older_version_is_named_by_an_option_the_environment_or_a_profile(
    shared: dict[str, Any], environ: dict[str, str], version: str | None, tmp_path: Path
) -> None:
    made = tmp_path / "config.toml"
    made.write_text(f'default = "p"\n[profiles.p]\nconnection-string = "{TEXT}"\napi-version = "2019-07-07"\n')
    assert accounts.choose(shared, environ, made, emulator).api_version == version


@pytest.mark.parametrize("version", ["2015-01-01", "2030-01-01", "x"])
def test_a_version_that_azguard_does_not_speak_is_refused(version: str, file: Path) -> None:
    with pytest.raises(ConfigError, match=f"AZGUARD_API_VERSION '{version}' is no version"):
        choose(file, AZGUARD_API_VERSION=version)
