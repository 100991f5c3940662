"""The SDK's clients for Azure Files: which proof they carry, and which service they ask."""

from typing import Any

import pytest

from azguard.accounts.account import Account, Auth, from_connection_string
from azguard.address import Address, Kind
from azguard.errors import ConfigError
from azguard.wire import sdk

PLACE = {"file": "https://contoso.file.core.windows.net"}
ADDRESS = Address(Kind.FILE, ("team", "reports/plan."))


class _Login:
    def get_token(self, *_: str, **__: Any) -> None:
        raise AssertionError


def test_a_login_says_which_of_its_rights_it_means() -> None:
    account = Account("contoso", PLACE, Auth.LOGIN, None, {"login": _Login()})
    assert sdk.file(account, ADDRESS).file_request_intent == "backup"


def test_a_sas_goes_along_with_the_source_of_a_rename() -> None:
    account = Account("contoso", PLACE, Auth.SAS, "?sv=2026&sig=abc")
    assert sdk.file(account, ADDRESS).url == "https://contoso.file.core.windows.net/team/reports/plan.?sv=2026&sig=abc"


def test_a_dot_at_the_end_of_a_name_stays() -> None:
    account = Account("contoso", PLACE, Auth.KEY, "a2V5")
    assert (sdk.file(account, ADDRESS).allow_trailing_dot, sdk.file(account, ADDRESS).allow_source_trailing_dot) == (
        True,
        True,
    )


def test_there_is_no_anonymous_access() -> None:
    with pytest.raises(ConfigError):
        sdk.file(Account("contoso", PLACE, Auth.ANONYMOUS), ADDRESS)


def test_the_emulators_account_includes_files() -> None:
    account = from_connection_string("UseDevelopmentStorage=true")
    assert account.endpoint("file") == "http://127.0.0.1:10004/devstoreaccount1"


def test_a_snapshot_of_the_share_is_asked_for() -> None:
    taken = "2026-11-22T10:46:46.9186054Z"
    account = Account("contoso", PLACE, Auth.KEY, "a2V5")
    address = Address(Kind.FILE, ("team", "a"), taken)
    assert sdk.file(account, address).url.endswith(f"/team/a?sharesnapshot={taken}")
