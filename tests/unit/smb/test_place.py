"""Where the SMB server is, and as whom it is asked."""

import pytest

from azguard.accounts.account import Account, Auth
from azguard.errors import ConfigError
from azguard.smb import file_lock
from azguard.smb.file_lock import SmbPlace
from tests.support.cases import cases

ENDPOINTS = {"file": "https://acme.file.core.windows.net"}
WITH_KEY = Account("acme", ENDPOINTS, Auth.KEY, "a2V5")


@cases(
    ("port", "environ", "expected"),
    (None, {}, 445),
    (None, {"AZGUARD_SMB_PORT": "14445"}, 14445),
    (1445, {"AZGUARD_SMB_PORT": "14445"}, 1445),
)
def test_the_server_is_the_host_of_the_file_endpoint(port: int | None, environ: dict[str, str], expected: int) -> None:
    assert file_lock.find_place(WITH_KEY, port, environ) == SmbPlace(
        "acme.file.core.windows.net", expected, "acme", "a2V5"
    )


@cases("port", "0", "65536", "x", "-1", "４４５", "445 ")
def test_a_port_of_the_environment_that_is_none_is_refused(port: str) -> None:
    with pytest.raises(ConfigError) as caught:
        file_lock.find_place(WITH_KEY, None, {"AZGUARD_SMB_PORT": port})
    assert caught.value.reason == "smb_port_malformed"


@cases("auth", Auth.SAS, Auth.LOGIN, Auth.ANONYMOUS)
def test_without_an_account_key_there_is_no_smb(auth: Auth) -> None:
    with pytest.raises(ConfigError) as caught:
        file_lock.find_place(Account("acme", ENDPOINTS, auth, "sig=x"), None, {})
    assert caught.value.reason == "smb_needs_key"


def test_the_key_does_not_show() -> None:
    assert "a2V5" not in repr(file_lock.find_place(WITH_KEY, None, {}))
