"""What the codes of the service mean, and what its answers say about its clock.

The Date of an answer can be that of a gateway with a wrong clock. So it is good enough to be shown, and is not believed
where it is proved wrong. See ``calls.ServiceClock`` for what takes something from another because of its age.
"""

import re
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import NamedTuple

from azguard import times
from azguard.accounts.account import Target
from azguard.errors import AzguardError
from azguard.wire.failures import Refusal, Response

# The credentials are not accepted, whatever the status.
AUTHENTICATION = {
    "AuthenticationFailed", "InvalidAuthenticationInfo", "NoAuthenticationInformation", "MissingAuthenticationHeader",
}  # fmt: skip
#: A directory is where a file is meant, or a file where a directory is.
TYPE_MISMATCH = "ResourceTypeMismatch"
#: With this a SAS that may create and not write is answered where something is already.
OVERWRITE_DENIED = "UnauthorizedBlobOverwrite"
#: A list of blocks names one that is not there any more.
CONFLICTING_BLOCKS = {"InvalidBlockList", "InvalidBlobOrBlock"}
# Refusals of a conditional write that say what 412 says: it was created, deleted, or our blocks were discarded.
_FOREIGN_WRITE = {
    "BlobAlreadyExists", "BlobNotFound", "EntityAlreadyExists", "EntityNotFound", "ResourceNotFound",
    *CONFLICTING_BLOCKS,
}  # fmt: skip
#: Without its container nothing can have been written.
NOWHERE = ("ContainerNotFound", "TableNotFound", "QueueNotFound", "ShareNotFound")
#: The emulator's answers to what it does not know, with 501: a request, or with 500 a header such as a key's.
NOT_IMPLEMENTED = ("APINotImplemented", "FeatureNotSupported")
# A condition of the request did not hold, with 412. Any other code with that status says something else.
CONDITIONS = {
    "ConditionNotMet", "UpdateConditionNotSatisfied", "TargetConditionNotMet", "SourceConditionNotMet",
    "AppendPositionConditionNotMet", "MaxBlobSizeConditionNotMet", "SequenceNumberConditionNotMet",
    "CannotVerifyCopySource",
}  # fmt: skip
#: The service accepts a request that is signed with a key if its date is at most so far from the service's clock.
CLOCK_SKEW = timedelta(minutes=15)
# Source: https://learn.microsoft.com/rest/api/storageservices/status-and-error-codes2
_TOLD = r"Time:(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)"
_REFUSED_KEY = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


class RefusalWords(NamedTuple):
    """What a code of the service means."""

    words: str
    reason: str


# What is wrong with a table, a queue or a share, which an entity, a message or a file would be in.
PARENTS = {
    "ContainerBeingDeleted": RefusalWords("{0} is still being deleted", "container_being_deleted"),
    "TableBeingDeleted": RefusalWords("{0} is still being deleted", "table_being_deleted"),
    "QueueBeingDeleted": RefusalWords("{0} is still being deleted", "queue_being_deleted"),
    "TableNotFound": RefusalWords("there is no table {0}", "table_not_found"),
    "QueueNotFound": RefusalWords("there is no queue {0}", "queue_not_found"),
    "ShareBeingDeleted": RefusalWords("{0} is still being deleted", "share_being_deleted"),
    "ShareNotFound": RefusalWords("there is no share {0}", "share_not_found"),
}
# What a 403 means that is not about the credentials, by the container and the account. The services of blobs and queues
# say 409 of a container that is disabled.
FORBIDDEN = {
    "AccountIsDisabled": RefusalWords("the account {1} is disabled", "disabled"),
    # The endpoint of a secondary region takes no writes.
    "InsufficientAccountPermissions": RefusalWords(
        "the account {1} does not allow this now: its reads or its writes are switched off", "disabled"
    ),
    "ShareSizeLimitReached": RefusalWords("the share {0} is full: it holds what its quota allows", "share_is_full"),
    "ContainerDisabled": RefusalWords("the container {0} was disabled by an administrator", "disabled"),
    "QueueDisabled": RefusalWords("the queue {0} was disabled by an administrator", "disabled"),
    "ShareDisabled": RefusalWords("the share {0} was disabled by an administrator", "disabled"),
    "RequestForbiddenByContainerEncryptionPolicy": RefusalWords(
        "the container {0} takes no encryption scope but its own", "container_of_one_scope"
    ),
    **{
        code: RefusalWords("the account {1} cannot use its key, which is in a key vault", "key_vault_out_of_reach")
        for code in ("KeyVaultAccessTokenCannotBeAcquired", "KeyVaultEncryptionKeyNotFound", "KeyVaultVaultNotFound")
    },
}
# What else an administrator forbids, with a 409; by the account, the resource and the container.
POLICIES = {
    "ContainerHasLegalHold": RefusalWords("the container {2} is under a legal hold", "container_immutable"),
    "ContainerImmutabilityPolicyLocked": RefusalWords("the container {2} has a locked policy", "container_immutable"),
    "BlobImmutableDueToPolicy": RefusalWords("{1} is immutable by policy", "immutable"),
    "BlobImmutableDueToLegalHold": RefusalWords("{1} is under a legal hold", "immutable"),
    "PublicAccessNotPermitted": RefusalWords("the account {0} allows no readers without a login", "no_public_access"),
}
# What a service means by a 400 that its message does not tell.
LIMITS = {
    "MetadataTooLarge": RefusalWords(
        "its metadata would have more than 8 KiB, azguard's own entry included", "metadata_full"
    ),
}
# The same of the Table service, with its 413.
TABLES = {
    **LIMITS,
    "InvalidInput": RefusalWords("a value or the filter is not what the service understands", "table_input"),
    "PropertyLimitExceeded": RefusalWords("the entity has more than 252 properties", "too_many_properties"),
    "TooManyProperties": RefusalWords("the entity has more than 252 properties", "too_many_properties"),
    "EntityTooLarge": RefusalWords("the entity has more than 1 MiB", "value_too_large"),
    "RequestBodyTooLarge": RefusalWords("the request is too large", "value_too_large"),
    "PropertyValueTooLarge": RefusalWords("a property has more than 64 KiB", "value_too_large"),
    "KeyValueTooLarge": RefusalWords("a key has more than 1 KiB", "key_too_long"),
    "PropertyNameTooLong": RefusalWords(
        "the name of a property has more than 255 characters", "property_name_too_long"
    ),
    "PropertyNameInvalid": RefusalWords("the name of a property is not valid", "property_name_malformed"),
    "PropertiesNeedValue": RefusalWords("a key is missing", "entity_without_key"),
    "DuplicatePropertiesSpecified": RefusalWords("a property is given twice", "property_given_twice"),
    "InvalidValueType": RefusalWords("a value does not have the type of its property", "value_of_other_type"),
    "OutOfRangeInput": RefusalWords("a value is beyond what its type takes", "value_out_of_range"),
}
# What else a conflict may be.
STATES = {
    "BlobArchived": RefusalWords("{0} is in the archive", "blob_is_archived"),
    "BlobBeingRehydrated": RefusalWords("{0} is still on its way out of the archive", "blob_is_rehydrating"),
    "SnapshotsPresent": RefusalWords("{0} has snapshots", "has_snapshots"),
    "InvalidBlobType": RefusalWords("{0} is a blob of another type", "blob_of_other_type"),
    "BlobIsSealed": RefusalWords("{0} is sealed", "blob_is_sealed"),
    "ShareHasSnapshots": RefusalWords("{0} has snapshots", "share_has_snapshots"),
    "DirectoryNotEmpty": RefusalWords("{0} is not empty", "directory_not_empty"),
    "BlockCountExceedsLimit": RefusalWords("{0} has all the blocks that it can have", "too_many_blocks"),
    "SnapshotCountExceeded": RefusalWords("{0} has all the snapshots that it can have", "too_many_snapshots"),
    "ShareSnapshotCountExceeded": RefusalWords("{0} has all the snapshots that it can have", "too_many_snapshots"),
    "DirectoryIsNotEmpty": RefusalWords("{0} is a directory, and not empty", "blob_directory_not_empty"),
    **{
        code: RefusalWords("an account with a hierarchical namespace cannot do it", "no_flat_namespace")
        for code in (
            "FeatureNotYetSupportedForHierarchicalNamespaceAccounts",
            "BlobApiNotYetSupportedForHierarchicalNamespaceAccounts",
        )
    },
    "BlobOperationNotSupported": RefusalWords("{0} was made through Data Lake Storage", "made_through_data_lake"),
    "BlobUsesCustomerSpecifiedEncryption": RefusalWords(
        "{0} is encrypted with a key or in a scope that its writer gave", "key_of_the_writer"
    ),
    "BlobCustomerSpecifiedEncryptionMismatch": RefusalWords(
        "{0} is encrypted with another key or in another scope", "encrypted_with_another_key"
    ),
    "BlobDoesNotUseCustomerSpecifiedEncryption": RefusalWords(
        "{0} is not encrypted with a key that its writer gave", "not_encrypted_with_a_key"
    ),
    "BlobNotArchived": RefusalWords("{0} is not in the archive", "not_in_archive"),
    "InvalidBlobTier": RefusalWords("this type of blob has no such tier", "no_such_tier"),
    "BlobAccessTierNotSupportedForAccountType": RefusalWords("this kind of account has no such tier", "no_such_tier"),
    **{
        code: RefusalWords("{0} is too large for that tier", "no_such_tier")
        for code in ("BlobTierInadequateForContentLength", "ContentLengthLargerThanTierLimit")
    },
    "CannotChangeToLowerTier": RefusalWords("a page blob does not get a lower tier", "no_such_tier"),
    **{
        code: RefusalWords("no such copy into {0} is pending", "no_such_copy")
        for code in ("NoPendingCopyOperation", "CopyIdMismatch")
    },
    "CopyAcrossAccountsNotSupported": RefusalWords("the source is of another account", "source_of_other_account"),
    "InvalidSourceBlobType": RefusalWords("the source is a blob of another type", "source_of_other_type"),
    "SequenceNumberIncrementTooLarge": RefusalWords("its sequence number would be too large", "sequence_too_large"),
    "ContainerQuotaDowngradeNotAllowed": RefusalWords("its quota was made smaller too recently", "quota_too_recent"),
    "ShareSnapshotOperationNotSupported": RefusalWords("a snapshot of a share is only read", "snapshot_only_read"),
    "FileGenerationMismatch": RefusalWords("{0} was made anew since that snapshot", "file_made_anew"),
    # No other body is too large: tables have words of their own.
    **{
        code: RefusalWords("a message has at most 64 KiB", "message_too_large")
        for code in ("MessageTooLarge", "RequestBodyTooLarge")
    },
    "FeatureVersionMismatch": RefusalWords(
        "{0} has a property that this version of the service's API does not know", "api_version"
    ),
}
#: The reasons of a refusal because of the key, or the scope, with which a blob is encrypted.
OF_ENCRYPTION = ("key_of_the_writer", "encrypted_with_another_key", "not_encrypted_with_a_key")
# How the codes of shares begin that are paid for as they are provisioned.
_PROVISIONED = ("FileShareProvisioned", "TotalShares")
_NOT_PROVISIONED = RefusalWords("a limit of the account or of the share does not allow it", "not_provisioned")
# What the service does not do so often. The code is spelt like that.
THROTTLED = {
    "SnaphotOperationRateExceeded": RefusalWords("snapshots of {0} are taken too fast", "busy"),
    "SnapshotOperationRateExceeded": RefusalWords("snapshots of {0} are taken too fast", "busy"),
    "AccountBeingCreated": RefusalWords("the account is still being made", "account_being_created"),
}
# What is in use: others have it open, or it is on its way to be deleted or copied.
BUSY = {
    "PendingCopyOperation": RefusalWords("the service still copies into {0}", "copy_not_ended"),
    **{code: RefusalWords("{0} is busy: {1}", "busy") for code in ("SystemInUse", "ShareSnapshotInProgress")},
    "SharingViolation": RefusalWords("another program has {0} open", "file_is_open"),
    "FileOpenBySmbClient": RefusalWords("another program has {0} open", "file_is_open"),
    "CannotDeleteFileOrDirectory": RefusalWords("another program has {0} open", "file_is_open"),
    "FileLockConflict": RefusalWords("another program has locked bytes of {0}", "file_is_open"),
    "ClientCacheFlushDelay": RefusalWords("another program has {0} open, with writes in its cache", "file_is_open"),
    "DeletePending": RefusalWords("{0} is deleted as soon as it is closed", "file_delete_pending"),
    "SMBDeletePending": RefusalWords("{0} is deleted as soon as it is closed", "file_delete_pending"),
    "HandleLimitExceeded": RefusalWords("{0} is open as often as it can be", "file_is_open"),
    "ReadOnlyAttribute": RefusalWords("{0} has the attribute ReadOnly", "file_is_read_only"),
}
# What a refusal because of a lease means, by how its code begins; the first that fits holds.
LEASES = {
    "LeaseIdMissing": RefusalWords("{0} is leased, and no lease id was given", "lease_id_missing"),
    "LeaseAlreadyPresent": RefusalWords("{0} is leased by another holder", "leased_by_another"),
    # Also where nothing is leased at all: the service calls that a mismatch too.
    "LeaseIdMismatchWithLeaseOperation": RefusalWords("that lease on {0} is not held", "lease_not_held"),
    "LeaseIdMismatch": RefusalWords("{0} is leased under another id", "leased_under_another_id"),
    "LeaseNotPresentWithLeaseOperation": RefusalWords("there is no lease on {0}", "no_lease"),
    "LeaseNotPresent": RefusalWords("the lease on {0} is not held any more", "lease_over"),
    "LeaseLost": RefusalWords("the lease on {0} is not held any more", "lease_over"),
    "LeaseIsBreakingAndCannotBeAcquired": RefusalWords(
        "the lease on {0} is being broken, so it cannot be acquired", "leased_by_another"
    ),
    "LeaseIsBreakingAndCannotBeChanged": RefusalWords(
        "the lease on {0} is being broken, and its id cannot be changed any more", "lease_breaking"
    ),
    "LeaseIsBrokenAndCannotBeRenewed": RefusalWords(
        "the lease on {0} was broken, and cannot be renewed", "lease_broken"
    ),
    "LeaseAlreadyBroken": RefusalWords("the lease on {0} is broken already", "lease_broken_already"),
    "Lease": RefusalWords("the lease on {0} does not allow it: {1}", "lease_refuses"),
    "DeleteShareWhenSnapshotLeased": RefusalWords("a snapshot of {0} is leased", "snapshot_is_leased"),
    "InfiniteLeaseDurationRequired": RefusalWords(
        "the lease on {0} must be infinite for this", "infinite_lease_required"
    ),
}


def find_state(code: str) -> RefusalWords | None:
    """Return the words for a code about a state or a limit of a resource; None if it is not known."""
    return _NOT_PROVISIONED if code.startswith(_PROVISIONED) else STATES.get(code)


def service_code(error: BaseException) -> str | None:
    """Return the service's error code, such as ``ConditionNotMet``."""
    return error.code if isinstance(error, Refusal) else None


def status(error: BaseException) -> int | None:
    """Return the HTTP status of the answer, or None where there was none."""
    return error.status_code if isinstance(error, Refusal) else None


def is_lease_problem(error: BaseException) -> bool:
    """Return whether the service refused because of a lease: held by another, lost, wrong or missing id."""
    code = service_code(error) or ""
    return code.startswith("Lease") and status(error) in (409, 412)


def is_conflict(error: BaseException) -> bool:
    """Return whether another write came first, so that reading again and retrying is the answer."""
    code = service_code(error) or ""
    return is_of_condition(status(error), code) or code in _FOREIGN_WRITE


def is_being_deleted(error: BaseException) -> bool:
    """Return whether what has the name is still being deleted, so that it is free again later."""
    code = error.service_code if isinstance(error, AzguardError) else service_code(error)
    return (code or "").endswith(("BeingDeleted", "DeletePending"))


def is_of_encryption(error: BaseException | None) -> bool:
    """Return whether an error of ours says that a blob is encrypted otherwise than the caller says."""
    return isinstance(error, AzguardError) and error.reason in OF_ENCRYPTION


def is_perhaps_ours(error: BaseException, target: Target) -> bool:
    """Return whether a write may be refused for the very reason that an earlier copy of it was committed.

    A proxy may send a request again when its connection to the service broke after the first time.
    """
    code = service_code(error)
    if code in NOWHERE and len(target.address.parts) > 1:
        return False
    # Nothing of ours is in what is being deleted, nor a blob or a file of ours where a directory is. A file in
    # DeletePending is another matter: our own delete may have left it so.
    if code == TYPE_MISMATCH or (code or "").endswith("BeingDeleted"):
        return False
    return code in (*CONFLICTING_BLOCKS, OVERWRITE_DENIED) or status(error) in (404, 409, 412)


def is_of_condition(status: int | None, code: str | None) -> bool:
    """Return whether an answer says that a condition of the request did not hold; one without a code says it, too."""
    return status == HTTPStatus.PRECONDITION_FAILED and (not code or code in CONDITIONS)


class Answers:
    """Hears the answers to one call that is no download: pass ``hear`` along."""

    def __init__(self) -> None:
        #: The Date of the last answer, in whole seconds; None if it has none, or one that is proved wrong.
        self.date: datetime | None = None
        #: When the service wrote the last answer, if that was a refusal that says so.
        self.refused_at: datetime | None = None

    def hear(self, response: Response) -> None:
        """Note the times of one answer."""
        date = times.find_http_date(response.headers.get("Date"))
        self.date = None if date is None or _is_wrong(date, response) else date
        is_refused = response.status_code >= HTTPStatus.BAD_REQUEST
        self.refused_at = find_time(response.content.decode(errors="replace")) if is_refused else None


def find_time(text: str) -> datetime | None:
    """Return the time in the text of a refusal; None if it has none."""
    found = re.search(_TOLD, text)
    try:
        return None if found is None else datetime.fromisoformat(found[1])
    except ValueError:
        return None


def _is_wrong(date: datetime, answer: Response) -> bool:
    """Return whether a Date is proved wrong: the service accepted a key, and our clock says something else."""
    headers = answer.request.headers
    sent = times.find_http_date(headers.get("x-ms-date"))
    is_accepted = headers.get("Authorization", "").startswith("SharedKey") and answer.status_code not in _REFUSED_KEY
    return is_accepted and sent is not None and abs(date - sent) > CLOCK_SKEW
