"""Requests to Azure Files: what they say beside the row of the operation, and which service they ask."""

from types import SimpleNamespace
from typing import Any

import pytest

from azguard.accounts.account import Account, Auth, Target, from_connection_string
from azguard.address import Address, Kind
from azguard.errors import ConfigError
from azguard.files import temporary
from azguard.guards.resolve import Conditions
from azguard.requests.deadline import Deadline
from azguard.resources import properties
from azguard.wire.connections import Reply
from tests.support.answering_client import AnsweringClient, Asked, reply

PLACE = {"file": "https://contoso.file.core.windows.net"}
ADDRESS = Address(Kind.FILE, ("team", "reports/plan."))
LOGIN = SimpleNamespace(get_token_info=lambda *_, **__: SimpleNamespace(token="t"))  # no secret


class Recorder(AnsweringClient):
    """Keeps the last request."""

    asked: Asked

    def answer(self, asked: Asked) -> Reply:
        self.asked = asked
        return reply(200, {"ETag": '"1"'})


def show(auth: Auth, secret: str | None, address: Address = ADDRESS, **shared: Any) -> Asked:
    """Return the request for the properties of a file."""
    recorder = Recorder()
    properties.fetch(
        Target(Account("contoso", PLACE, auth, secret, {"client": recorder, **shared}), address),
        Conditions(),
        Deadline(),
    )
    return recorder.asked


def test_a_login_says_which_of_its_rights_it_means() -> None:
    found = [
        show(*each, login=LOGIN).headers.get("x-ms-file-request-intent")
        for each in ((Auth.LOGIN, None), (Auth.KEY, "a2V5"))
    ]
    assert found == ["backup", None]


def test_a_sas_goes_along_with_the_source_of_a_rename() -> None:
    recorder = Recorder()
    target = Target(Account("contoso", PLACE, Auth.SAS, "?sv=2026&sig=abc", {"client": recorder}), ADDRESS)
    temporary.rename_once(target, target, Deadline())
    url = "https://contoso.file.core.windows.net/team/reports/plan.?"
    sent = recorder.asked
    assert (sent.url, sent.headers["x-ms-file-rename-source"]) == (
        f"{url}comp=rename&sv=2026&sig=abc",
        f"{url}sv=2026&sig=abc",
    )


def test_a_dot_at_the_end_of_a_name_stays() -> None:
    asked = show(Auth.KEY, "a2V5")
    assert (asked.headers["x-ms-allow-trailing-dot"], asked.url.endswith("/plan.")) == ("true", True)


def test_there_is_no_anonymous_access() -> None:
    with pytest.raises(ConfigError):
        show(Auth.ANONYMOUS, None)


def test_the_emulators_account_includes_files() -> None:
    account = from_connection_string("UseDevelopmentStorage=true")
    assert account.endpoint("file") == "http://127.0.0.1:10004/devstoreaccount1"


def test_a_snapshot_of_the_share_is_asked_for() -> None:
    asked = show(Auth.KEY, "a2V5", Address(Kind.FILE, ("team", "a"), "2026-11-22T10:46:46.9186054Z"))
    assert asked.url.endswith("/team/a?sharesnapshot=2026-11-22T10%3A46%3A46.9186054Z")
