"""What the doctor tells of accounts of other kinds than the emulator's."""

from collections.abc import Mapping

from azguard.accounts.account import Account, Auth, Target
from azguard.address import Address, Kind
from azguard.doctor import account_kind
from azguard.doctor.checks import CheckFinding, differs, holds, not_possible
from azguard.doctor.run import DoctorPlan
from azguard.doctor.stage import CheckStage
from azguard.files.guarding import Guarding
from azguard.requests.deadline import Deadline
from azguard.wire.connections import Reply
from tests.support.answering_client import AnsweringClient, Asked, reply
from tests.support.cases import cases
from tests.support.no_records import NoRecords

_SOFT = b"<StorageServiceProperties><DeleteRetentionPolicy>%s</DeleteRetentionPolicy></StorageServiceProperties>"
_WHEN = {"ETag": '"1"', "Last-Modified": "Sun, 21 Nov 2027 23:00:00 GMT"}


class OtherAccount(AnsweringClient):
    """Answers each read alike, and does each write."""

    def __init__(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
        self.said = reply(status, headers, content)

    def answer(self, asked: Asked) -> Reply:
        """Return the answer to reads, or a success."""
        return reply(201, _WHEN) if asked.method == "PUT" else self.said


def open_stage(status: int, headers: Mapping[str, str], content: bytes = b"") -> CheckStage:
    """Return a stage in an account that answers each read like this."""
    endpoints = {service: f"https://contoso.{service}.core.windows.net" for service in ("blob", "file")}
    account = Account("contoso", endpoints, Auth.KEY, "a2V5", {"client": OtherAccount(status, headers, content)})
    stage = CheckStage(account, DoctorPlan(("blob", "file")).services, None, Deadline(5), Guarding(NoRecords(), None))
    stage.rooms = {
        "blob": Target(stage.account, Address(Kind.CONTAINER, ("site",))),
        "file": Target(stage.account, Address(Kind.SHARE, ("team",))),
    }
    return stage


@cases(
    ("headers", "told"),
    [
        ({"x-ms-sku-name": "Premium_LRS", "x-ms-account-kind": "FileStorage"}, "FileStorage Premium_LRS: files only"),
        (
            {"x-ms-sku-name": "Standard_ZRS", "x-ms-account-kind": "StorageV2", "x-ms-is-hns-enabled": "true"},
            f"StorageV2 Standard_ZRS: {account_kind._NO_TAGS}",  # its words are for people
        ),
    ],
)
def test_the_kind_of_an_account_is_told_with_what_it_lacks(headers: Mapping[str, str], told: str) -> None:
    assert account_kind.check_kind(open_stage(200, headers)) == holds(told)


@cases(
    ("content", "told"),
    [
        (b"<Enabled>true</Enabled><Days>7</Days>", "kept for 7 days, and can be undeleted"),
        (b"<Enabled>false</Enabled>", "not kept: what is deleted is gone"),
    ],
)
def test_how_long_deleted_blobs_are_kept_is_told(content: bytes, told: str) -> None:
    assert account_kind.check_soft_delete(open_stage(200, {}, _SOFT % content)) == holds(told)


@cases(
    ("status", "headers", "found"),
    [
        (409, {"x-ms-error-code": "PublicAccessNotPermitted"}, holds("the account allows none")),
        (404, {"x-ms-error-code": "ResourceNotFound"}, holds("not in this container")),
        (200, _WHEN, differs("blobs of this container can be read without a login")),
        (400, {"x-ms-error-code": "InvalidInput"}, not_possible("400 InvalidInput")),
    ],
)
def test_readers_without_a_login_are_told(status: int, headers: Mapping[str, str], found: CheckFinding) -> None:
    assert account_kind.check_public_access(open_stage(status, headers)) == found


def test_a_container_that_may_not_be_changed_is_named() -> None:
    found = account_kind.check_immutability(open_stage(200, {**_WHEN, "x-ms-has-legal-hold": "true"}))
    assert found == differs("the container has a policy or a legal hold: what exists is not changed and not deleted")


def test_versions_scopes_of_encryption_and_protocols_are_told() -> None:
    headers = {
        **_WHEN, "x-ms-version-id": "2027-11-21T23:00:00.0000000Z", "x-ms-encryption-scope": "ours",
        "x-ms-enabled-protocols": "NFS",
    }  # fmt: skip
    stage = open_stage(200, headers)
    told = [each(stage).detail for each in (account_kind.check_versions, account_kind.check_encryption)]
    assert [*told, account_kind.check_protocols(stage).detail] == [
        "kept: they settle more doubts, and what is overwritten can be restored",
        "with the key of an encryption scope",
        "NFS",
    ]
