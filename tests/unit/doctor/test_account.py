"""What the doctor tells of a SAS, of a token, and of accounts of other kinds than the emulator's."""

import base64
import json
import time
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from azguard.accounts.account import Account, Auth, Target
from azguard.address import Address, Kind
from azguard.doctor import account
from azguard.doctor.stage import CheckFinding, CheckStage, differs, holds, not_possible
from azguard.files.guarding import Guarding
from azguard.requests.deadline import Deadline
from azguard.wire.connections import Reply
from tests.support.answering_client import AnsweringClient, Asked, reply
from tests.support.cases import cases
from tests.support.no_records import NoRecords

ENDPOINTS = {"blob": "https://contoso.blob.core.windows.net"}
_SOFT = b"<StorageServiceProperties><DeleteRetentionPolicy>%s</DeleteRetentionPolicy></StorageServiceProperties>"
_WHEN = {"ETag": '"1"', "Last-Modified": "Sun, 21 Nov 2027 23:00:00 GMT"}


class Stage(CheckStage):
    """A stage with an account alone."""

    def __init__(self, account: Account) -> None:
        self.account, self.names = account, {}


def check(auth: Auth, secret: str | None = None, **shared: Any) -> tuple[str, str]:
    """Return the verdict and the beginning of the detail, without names."""
    stage = Stage(Account("contoso", ENDPOINTS, auth, secret, shared))
    found = account.check_credentials(stage)
    return found.verdict, stage.hide_names(found.detail)


@cases(
    ("secret", "verdict", "words"),
    ("sv=1&ss=b&srt=sco&sp=rwt&se=2099-01-01T00:00:00Z&sig=x", "holds", "a SAS: sp=rwt ss=b srt=sco; ends at 2099"),
    ("sv=1&sr=c&sp=r&se=2020-01-01&sig=x", "differs", "a SAS that ended at 2020-01-01T00:00:00Z: sp=r sr=c"),
    ("sv=1&sr=c&sp=r&st=2098-01-01&se=2099-01-01&sig=x", "differs", "a SAS that begins only at 2098"),
    ("sv=1&sr=c&si=deploy&sig=x", "holds", "a SAS: sr=c si=deploy; its stored access policy says when it ends"),
)
def test_a_sas_is_told_by_its_fields_and_never_by_its_signature(secret: str, verdict: str, words: str) -> None:
    found = check(Auth.SAS, secret)
    assert (found[0], found[1].startswith(words), "sig" in found[1]) == (verdict, True, False), found


def test_a_token_is_told_by_its_owner_whose_name_can_be_left_out() -> None:
    claims = base64.urlsafe_b64encode(json.dumps({"upn": "ann@contoso.example", "oid": "77"}).encode()).decode()
    token = SimpleNamespace(token=f"head.{claims.rstrip('=')}.signature", expires_on=time.time() + 3600)
    holder = SimpleNamespace(get_token_info=lambda scope: token, source="this machine", renewable=False)
    verdict, detail = check(Auth.LOGIN, login=holder)
    assert (verdict, detail.partition("; ends at")[0]) == ("holds", "a token from this machine; upn=USER oid=OBJECT")


@cases("token", "opaque", "a.b.c", f"a.{base64.urlsafe_b64encode(b'[]').decode()}.c")
def test_a_token_of_another_form_tells_nothing_of_its_owner(token: str) -> None:
    holder = SimpleNamespace(
        get_token_info=lambda scope: SimpleNamespace(token=token, expires_on=time.time() + 60),
        source="this machine",
        renewable=True,
    )
    assert check(Auth.LOGIN, login=holder)[1].startswith("a token from this machine; ends at")


class OtherAccount(AnsweringClient):
    """Answers each read alike, and does each write."""

    def __init__(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
        self.said = reply(status, headers, content)

    def answer(self, asked: Asked) -> Reply:
        return reply(201, _WHEN) if asked.method == "PUT" else self.said


def open_stage(status: int, headers: Mapping[str, str], content: bytes = b"") -> CheckStage:
    """Return a stage in an account that answers each read like this."""
    endpoints = {service: f"https://contoso.{service}.core.windows.net" for service in ("blob", "file")}
    other = Account("contoso", endpoints, Auth.KEY, "a2V5", {"client": OtherAccount(status, headers, content)})
    stage = CheckStage(other, ("blob", "file"), None, Deadline(5), Guarding(NoRecords(), None))
    stage.rooms = {
        "blob": Target(stage.account, Address(Kind.CONTAINER, ("site",))),
        "file": Target(stage.account, Address(Kind.SHARE, ("team",))),
    }
    return stage


def find(check: str, stage: CheckStage) -> CheckFinding:
    checks = {each.name: each for each in account.list_first_checks(("blob", "file"))}
    return checks[check].run(stage)


@cases(
    ("headers", "told"),
    ({"x-ms-sku-name": "Premium_LRS", "x-ms-account-kind": "FileStorage"}, "FileStorage Premium_LRS: files only"),
    (
        {"x-ms-sku-name": "Standard_ZRS", "x-ms-account-kind": "StorageV2", "x-ms-is-hns-enabled": "true"},
        f"StorageV2 Standard_ZRS: {account.NO_TAGS}",
    ),
)
def test_the_kind_of_an_account_is_told_with_what_it_lacks(headers: Mapping[str, str], told: str) -> None:
    assert find("kind of account", open_stage(200, headers)) == holds(told)


@cases(
    ("content", "told"),
    (b"<Enabled>true</Enabled><Days>7</Days>", "kept for 7 days, and can be undeleted"),
    (b"<Enabled>false</Enabled>", "not kept: a deleted blob is gone"),
)
def test_how_long_deleted_blobs_are_kept_is_told(content: bytes, told: str) -> None:
    assert find("deleted blobs", open_stage(200, {}, _SOFT % content)) == holds(told)


@cases(
    ("status", "headers", "found"),
    (409, {"x-ms-error-code": "PublicAccessNotPermitted"}, holds("the account allows none")),
    (404, {"x-ms-error-code": "ResourceNotFound"}, holds("not in this container")),
    (200, _WHEN, differs("blobs of this container can be read without a login")),
    (400, {"x-ms-error-code": "InvalidInput"}, not_possible("400 InvalidInput")),
)
def test_readers_without_a_login_are_told(status: int, headers: Mapping[str, str], found: CheckFinding) -> None:
    assert find("readers without a login", open_stage(status, headers)) == found


def test_a_container_that_may_not_be_changed_is_named() -> None:
    found = find("blobs that may not be changed", open_stage(200, {**_WHEN, "x-ms-has-legal-hold": "true"}))
    assert found == differs("the container has a policy or a legal hold: its blobs can be neither changed nor deleted")


def test_versions_scopes_of_encryption_and_protocols_are_told() -> None:
    headers = {
        **_WHEN, "x-ms-version-id": "2027-11-21T23:00:00.0000000Z", "x-ms-encryption-scope": "ours",
        "x-ms-enabled-protocols": "NFS",
    }  # fmt: skip
    stage = open_stage(200, headers)
    names = ("earlier versions of blobs", "encryption", "protocols of a share")
    assert [find(name, stage).detail for name in names] == [
        "kept: they settle more doubts, and an overwritten blob can be restored",
        "with the key of an encryption scope",
        "NFS",
    ]
