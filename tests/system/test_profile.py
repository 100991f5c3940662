"""``azguard profile`` and the configuration file behind it."""

import stat
from pathlib import Path

import pytest

from azguard.accounts import profiles
from azguard.errors import ConfigError
from tests.support.cases import cases
from tests.support.cli_world import CliWorld

KEY = "a2V5a2V5a2V5a2V5a2V5a2V5a2V5a2V5"


def config(cli: CliWorld) -> Path:
    return cli.root / ".config" / "config.toml"


def test_a_profile_is_written_shown_listed_and_deleted(offline: CliWorld) -> None:
    made = {"name": "prod", "default": True, "account_name": "contoso", "auth_mode": "login"}
    set_ = offline.call("profile", "set", "prod", "--account-name", "contoso", "--auth-mode", "login", "--default")
    shown, listed = offline.call("profile", "show", "prod"), offline.call("profile", "list")
    deleted, left = offline.call("profile", "delete", "prod"), offline.call("profile", "list")
    assert [set_.json, shown.json, listed.json, deleted.json, left.json] == [made, made, [made], made, []]


def test_only_one_profile_is_the_default(offline: CliWorld) -> None:
    for name in ("one", "two"):
        offline.call("profile", "set", name, "--emulator", "--default")
    offline.call("profile", "set", "two", "--account-name", "acc", "--auth-mode", "login")
    assert [(each["name"], each["default"]) for each in offline.call("profile", "list").json] == [
        ("one", False),
        ("two", True),
    ]


def test_a_secret_is_not_shown_and_the_file_is_its_owners_alone(offline: CliWorld) -> None:
    ran = offline.call("profile", "set", "ci", "--account-name", "acc", "--account-key", KEY)
    assert (KEY in ran.out + ran.err, ran.json["account_key"]) == (False, "(in the file)")
    assert stat.S_IMODE(config(offline).stat().st_mode) == 0o600


def test_a_secrets_file_is_kept_by_its_full_path(offline: CliWorld) -> None:
    offline.file("key", KEY)
    ran = offline.call("profile", "set", "ci", "--account-name", "acc", "--account-key", "@key")
    assert ran.json["account_key"] == f"@{offline.root / 'key'}"


def test_a_profile_is_used_by_its_name(cli: CliWorld) -> None:
    assert cli.connection_string is not None
    cli.call("profile", "set", "here", "--connection-string", cli.connection_string)
    nothing = CliWorld(cli.root)
    assert [
        nothing.call("container", "list", "--profile", "here", "-o", "none").code,
        nothing.call("container", "list", "-o", "none", env={"AZGUARD_PROFILE": "here"}).code,
        nothing.call("container", "list", "-o", "none").code,
        nothing.call("container", "list", "--profile", "nosuch").code,
    ] == [0, 0, 78, 78]


@cases(
    "options",
    (),
    ("--account-name", ""),
    ("--profile", "other"),
    ("--auth-mode", "login"),
    ("--emulator", "--account-name", "acc"),
    ("--account-name", "acc", "--account-key", KEY, "--sas-token", "sig=x"),
)
def test_what_is_no_account_is_not_kept(offline: CliWorld, options: tuple[str, ...]) -> None:
    ran = offline.call("profile", "set", "bad", *options)
    assert (ran.code, config(offline).exists()) == (2, False)


@cases("command", "show", "delete")
def test_a_profile_that_is_not_there_is_not_found(offline: CliWorld, command: str) -> None:
    assert offline.call("profile", command, "nosuch").code == 44


@cases(
    "text",
    "this is not TOML",
    "profiles = 1",
    'default = "nosuch"',
    'defualt = "a"\n[profiles.a]\nemulator = "true"',
    "default = []",
    "[profiles]\na = 1",
    "[profiles.a]\naccount-name = 1",
    '[profiles.a]\nacount-name = "typo"',
    '[profiles.a]\naccount-name = ""',
)
def test_a_bad_configuration_file_is_a_config_error(offline: CliWorld, text: str) -> None:
    config(offline).parent.mkdir(exist_ok=True)
    config(offline).write_text(text)
    ran = offline.call("profile", "list", "-o", "json")
    assert (ran.code, ran.error["kind"], str(config(offline)) in ran.error["message"]) == (78, "config", True)


def test_a_file_that_is_not_text_is_a_config_error(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError):
        profiles.load(tmp_path / "c.toml")


def test_no_file_is_no_profiles(tmp_path: Path) -> None:
    assert profiles.load(tmp_path / "none.toml") == {}


def test_what_is_saved_is_loaded_again(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "c.toml"
    made = [profiles.put(file, name, {"account-name": name}, default=name == "b12") for name in ("a12", "b12")]
    assert list(profiles.load(file).values()) == made


def test_profiles_that_are_set_at_once_are_all_kept(offline: CliWorld) -> None:
    names = [f"p{number}" for number in range(8)]
    running = [offline.begin_fork("profile", "set", name, "--emulator") for name in names]
    for each in running:
        each.communicate()
    assert sorted(profiles.load(config(offline))) == names


@cases("name", "", " ", "two\nlines")
def test_a_profile_has_a_name_that_can_be_shown(offline: CliWorld, name: str) -> None:
    ran = offline.call("profile", "set", name, "--emulator")
    assert (ran.code, config(offline).exists()) == (2, False)


def test_a_profile_that_names_two_accounts_is_used_for_none(offline: CliWorld) -> None:
    config(offline).parent.mkdir()
    config(offline).write_text('[profiles.a]\naccount-name = "contoso"\nauth-mode = "login"\nemulator = "true"')
    ran = offline.call("container", "list", "--profile", "a", "-o", "json")
    assert (ran.code, ran.error["message"]) == (
        78, "profile 'a': --emulator and --account-name both name an account"
    )  # fmt: skip


def test_a_link_to_the_file_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "c.toml").symlink_to(tmp_path / "dotfiles.toml")
    profiles.put(tmp_path / "c.toml", "a", {"emulator": "true"}, default=False)
    assert (tmp_path / "c.toml").is_symlink()
