"""Checks of the machine where something is missing."""

import os
import sys
import threading
import time
from pathlib import Path

import pytest

from azguard.doctor import machine
from azguard.doctor.stage import CheckFinding, CheckVerdict, differs, holds, not_possible
from azguard.processes import identity, locked_file, tree
from tests.support.cases import cases


def test_a_folder_in_which_nothing_can_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = machine.check_folder(tmp_path / "file" / "cache")
    assert found.verdict is CheckVerdict.DIFFERS


def test_a_folder_whose_files_do_not_lock_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locked_file, "try_lock", lambda descriptor: True)
    found = machine.check_folder(tmp_path / "cache")
    left = os.listdir(tmp_path / "cache")
    assert (found.verdict, left) == (CheckVerdict.DIFFERS, [])


def test_a_cache_leaves_nothing_behind(tmp_path: Path) -> None:
    assert (machine.check_database(tmp_path).verdict, os.listdir(tmp_path)) == (CheckVerdict.HOLDS, [])


def test_a_cache_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    assert machine.check_database(tmp_path / "missing") == differs("SQLite: unable to open database file")


@cases(
    ("birth", "found"),
    ("1", holds("by ps, which is slower than /proc")),
    (None, differs("there is neither /proc nor ps")),
)
def test_processes_can_be_told_apart_without_proc(birth: str | None, found: CheckFinding) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(identity, "HAS_PROC", False)
        patch.setattr(identity, "find_birth", lambda pid: birth)
        assert machine.check_proc() == found


def test_a_machine_whose_clock_stops_in_sleep_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(time, "CLOCK_BOOTTIME")
    monkeypatch.setattr(sys, "platform", "freebsd")
    assert machine.check_boot_clock().verdict is CheckVerdict.DIFFERS


def test_no_process_is_forked_beside_threads() -> None:
    ends = threading.Event()
    beside = threading.Thread(target=ends.wait)
    beside.start()
    found = machine.check_process_control(os.environ)
    ends.set()
    beside.join()
    assert found == not_possible("this process has threads, so that none is forked here")


def test_a_machine_that_ends_a_group_alone_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "IS_KNOWN", False)
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    assert machine.check_process_control(os.environ).verdict is CheckVerdict.DIFFERS


@cases(
    ("proxy", "found"),
    (None, holds("directly")),
    ("http://user:secret@proxy:8080", holds("through the proxy that HTTPS_PROXY names")),
    ("http://[", differs("HTTPS_PROXY is not a URL of a proxy")),
)
def test_the_way_to_a_service_is_told_without_the_password(proxy: str | None, found: CheckFinding) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"):
            patch.delenv(name, raising=False)
        if proxy is not None:
            patch.setenv("HTTPS_PROXY", proxy)
        assert machine.check_way("https://contoso.blob.core.windows.net") == found


@cases(
    ("file", "found"),
    (None, holds("those of certifi")),
    ("/nowhere.pem", differs("[Errno 2] No such file or directory")),
)
def test_certificates_that_are_not_there_are_named(file: str | None, found: CheckFinding) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
            patch.delenv(name, raising=False)
        if file is not None:
            patch.setenv("REQUESTS_CA_BUNDLE", file)
        assert machine.check_certificates(os.environ) == found
