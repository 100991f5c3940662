"""Folders of ours: made for this user alone, and refused where another user can have put something there."""

import os
import pwd
from collections.abc import Callable, Iterator
from pathlib import Path

import platformdirs
import pytest

from azguard.errors import ConfigError
from azguard.folders import Folders, check_own, make_folder, make_private, open_private
from tests.support.cases import cases

pytestmark = pytest.mark.skipif(os.name != "posix", reason="owners and modes are of POSIX")
needs_root = pytest.mark.skipif(os.name == "posix" and os.geteuid() != 0, reason="only root can give files away")
_NOBODY = pwd.getpwnam("nobody").pw_uid if os.name == "posix" else 0


@pytest.fixture
def any_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def _mode(path: Path) -> str:
    return oct(path.stat().st_mode & 0o777)


def _reason(check: Callable[[], object]) -> str | None:
    try:
        check()
    except ConfigError as error:
        return error.reason
    return None


@pytest.mark.usefixtures("any_umask")
def test_each_level_is_for_its_owner_alone(tmp_path: Path) -> None:
    make_private(tmp_path / "a/b/c")
    open_private(tmp_path / "a/b/log").close()
    assert [_mode(tmp_path / each) for each in ("a", "a/b", "a/b/c", "a/b/log")] == ["0o700"] * 3 + ["0o600"]


def test_a_log_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("old")
    open_private(tmp_path / "log").close()
    assert (_mode(tmp_path / "log"), (tmp_path / "log").read_text()) == ("0o600", "")


def test_what_is_a_link_or_open_to_others_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "log").symlink_to("nowhere")
    for name, mode in (("group", 0o770), ("all", 0o707), ("mine", 0o755)):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(mode)
    names = ("real", "link", "group", "all", "mine", "missing", "log/x")
    reasons = {name: _reason(lambda name=name: check_own(tmp_path / name)) for name in names}  # type: ignore[misc]  # bound now
    reasons["log"] = _reason(lambda: open_private(tmp_path / "log"))
    assert {name: reason for name, reason in reasons.items() if reason} == {
        "link": "own_is_link",
        "log": "own_is_link",
        "group": "own_open_to_others",
        "all": "own_open_to_others",
    }
    assert not (tmp_path / "nowhere").exists()


@needs_root
def test_what_belongs_to_another_user_is_refused(tmp_path: Path) -> None:
    found = Folders.of({"AZGUARD_CACHE_DIR": str(tmp_path / "cache"), "AZGUARD_CONFIG_DIR": str(tmp_path)})
    make_private(found.emulator)
    assert _reason(found.check) is None
    os.chown(found.emulator, _NOBODY, -1)
    with pytest.raises(ConfigError, match=r"emulator belongs to another user \(nobody\)"):
        found.check()


@needs_root
def test_root_makes_nothing_in_the_folder_of_the_user_who_typed_sudo(tmp_path: Path) -> None:
    os.chown(tmp_path, _NOBODY, -1)
    assert _reason(lambda: make_folder(tmp_path / "a/b", {"SUDO_UID": str(_NOBODY)})) == "own_of_sudo"
    assert list(tmp_path.iterdir()) == []
    # A container's root works in the folder of the runner's user.
    make_folder(tmp_path / "a/b", {})
    make_folder(tmp_path / "a/b/c", {"SUDO_UID": str(_NOBODY)})
    assert (tmp_path / "a/b/c").is_dir()


@cases("given", {}, {"XDG_CACHE_HOME": "/c", "XDG_CONFIG_HOME": "/d"}, {"XDG_CACHE_HOME": "c"})
def test_the_usual_folders_are_those_of_the_platform(given: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    usual = platformdirs.PlatformDirs("azguard", appauthor=False)
    assert Folders.of({}) == Folders(usual.user_cache_path, usual.user_config_path)


def test_a_user_without_a_home_is_told_which_variables_say_where(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(_: object) -> None:
        raise RuntimeError("could not determine the home directory")

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(platformdirs.PlatformDirs, "user_cache_dir", property(find))
    with pytest.raises(ConfigError, match="the home folder is not known"):
        Folders.of({"AZGUARD_CACHE_DIR": "/cache"})
    assert Folders.of({"AZGUARD_CACHE_DIR": "/cache", "AZGUARD_CONFIG_DIR": "/config"}).cache == Path("/cache")
