"""Who is let in: SharedKey and shared access signatures, as the SDK makes them."""

from datetime import UTC, datetime
from typing import Any

import pytest
from azure.storage.fileshare import generate_account_sas, generate_file_sas, generate_share_sas

from azguard.emulators.files.__main__ import ACCOUNT, KEY
from tests.support.files_emulator import FilesEmulator

_LATER = datetime.fromtimestamp(1_800_003_600, UTC)
_BEFORE = datetime.fromtimestamp(1_799_996_400, UTC)


@pytest.fixture
def shared(files: FilesEmulator) -> FilesEmulator:
    files.ask("PUT", "work?restype=share")
    files.ask("PUT", "work/f", {"x-ms-type": "file", "x-ms-content-length": "3"})
    return files


def test_a_wrong_key_is_refused(shared: FilesEmulator) -> None:
    assert shared.ask("GET", "work/f", key=b"another").said == (403, "AuthenticationFailed")


def test_a_request_without_a_signature_is_refused(shared: FilesEmulator) -> None:
    assert shared.ask("GET", "work/f", signed=False).said == (401, "NoAuthenticationInformation")


def test_a_request_that_was_changed_on_its_way_is_refused(shared: FilesEmulator) -> None:
    headers = {"Authorization": f"SharedKey {ACCOUNT}:c2lnbmVk"}

    assert shared.ask("DELETE", "work/f", headers, signed=False).said == (403, "AuthenticationFailed")


def _file_sas(**how: Any) -> str:
    return generate_file_sas(ACCOUNT, "work", ["f"], KEY, **{"permission": "r", "expiry": _LATER, **how})


def _share_sas(**how: Any) -> str:
    return generate_share_sas(ACCOUNT, "work", KEY, **{"permission": "r", "expiry": _LATER, **how})


def _account_sas(types: str = "sco", **how: Any) -> str:
    return generate_account_sas(ACCOUNT, KEY, types, **{"permission": "rl", "expiry": _LATER, **how})


_OK = (200, None)
_NO = (403, "AuthenticationFailed")
_LACKS = (403, "AuthorizationPermissionMismatch")


@pytest.mark.parametrize(
    ("sas", "method", "path", "said"),
    [
        pytest.param(_file_sas(), "GET", "work/f?", _OK, id="a file's own"),
        pytest.param(_file_sas(), "GET", "work/g?", _NO, id="that of another file"),
        pytest.param(_file_sas(), "DELETE", "work/f?", _LACKS, id="without the permission"),
        pytest.param(_file_sas(permission="d"), "DELETE", "work/f?", (202, None), id="with the permission"),
        pytest.param(_file_sas(expiry=_BEFORE), "GET", "work/f?", _NO, id="one that has ended"),
        pytest.param(_file_sas(start=_LATER), "GET", "work/f?", _NO, id="one that has not begun"),
        pytest.param(_file_sas(ip="10.0.0.1"), "GET", "work/f?", _NO, id="one for another address"),
        pytest.param(_file_sas(ip="127.0.0.0-127.0.0.9"), "GET", "work/f?", _OK, id="one for this address"),
        pytest.param(_file_sas(protocol="https"), "GET", "work/f?", _NO, id="one for https"),
        pytest.param(_file_sas() + "x", "GET", "work/f?", _NO, id="one that was changed"),
        pytest.param(_share_sas(), "GET", "work/f?", _OK, id="the share's"),
        pytest.param(_share_sas(), "GET", "work?restype=directory&comp=list&", _LACKS, id="the share's, without list"),
        pytest.param(_share_sas(permission="l"), "GET", "work?restype=directory&comp=list&", _OK, id="with list"),
        pytest.param(_share_sas(permission="rwdlc"), "GET", "work?restype=share&", _LACKS,
         id="none for a share itself"),
        pytest.param(_account_sas(), "GET", "?comp=list&", _OK, id="the account's"),
        pytest.param(_account_sas("o"), "GET", "?comp=list&", (403, "AuthorizationResourceTypeMismatch"),
         id="the account's, of another type"),
        pytest.param(_account_sas(), "DELETE", "work/f?", _LACKS, id="the account's, without delete"),
    ],
)  # fmt: skip
def test_a_sas_allows_what_it_says(
    shared: FilesEmulator, sas: str, method: str, path: str, said: tuple[int, str | None]
) -> None:
    assert shared.ask(method, path + sas, signed=False).said == said


def test_a_stored_policy_gives_a_sas_its_terms(shared: FilesEmulator) -> None:
    sas = generate_share_sas(ACCOUNT, "work", KEY, policy_id="readers")
    before = shared.ask("GET", f"work/f?{sas}", signed=False).said
    policy = (
        b"<SignedIdentifiers><SignedIdentifier><Id>readers</Id><AccessPolicy><Expiry>2100-01-01T00:00:00Z</Expiry>"
        b"<Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>"
    )
    shared.ask("PUT", "work?restype=share&comp=acl", body=policy)

    assert (before, shared.ask("GET", f"work/f?{sas}", signed=False).said) == (_NO, _OK)
