"""What the codes of the service mean, and when it wrote a refusal."""

import re
from collections.abc import Mapping
from datetime import datetime
from fnmatch import fnmatchcase
from typing import NamedTuple

from azguard.accounts.account import Target
from azguard.errors import AzguardError, BadRequest, Exists, Forbidden, Locked, NotFound, Unavailable
from azguard.wire.failures import Refusal

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
_CONDITION_FAILED = 412
# A condition of the request did not hold, with that status. Any other code with it says something else.
CONDITIONS = {
    "ConditionNotMet", "UpdateConditionNotSatisfied", "TargetConditionNotMet", "SourceConditionNotMet",
    "AppendPositionConditionNotMet", "MaxBlobSizeConditionNotMet", "SequenceNumberConditionNotMet",
    "CannotVerifyCopySource",
}  # fmt: skip
# Source: https://learn.microsoft.com/rest/api/storageservices/status-and-error-codes2
_TOLD = r"Time:(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)"


class Meaning(NamedTuple):
    """What a code of the service means."""

    kind: type[AzguardError]
    #: They may name ``{target}``, its ``{container}``, ``{parent}`` and ``{account}``, and the ``{code}`` itself.
    words: str
    reason: str | None


# What is not there, in which the resource would be.
_MISSING = {
    "ContainerNotFound": ("there is no container {container}", "container_not_found"),
    "TableNotFound": ("there is no table {container}", "table_not_found"),
    "QueueNotFound": ("there is no queue {container}", "queue_not_found"),
    "ShareNotFound": ("there is no share {container}", "share_not_found"),
    "ParentNotFound": ("there is no directory {parent}", "parent_not_found"),
}
# What is on its way to be deleted.
_BEING_DELETED = {
    "ContainerBeingDeleted": ("{container} is still being deleted", "container_being_deleted"),
    "TableBeingDeleted": ("{container} is still being deleted", "table_being_deleted"),
    "QueueBeingDeleted": ("{container} is still being deleted", "queue_being_deleted"),
    "ShareBeingDeleted": ("{container} is still being deleted", "share_being_deleted"),
}
# What others have open, and what is busy.
_IN_USE = {
    "PendingCopyOperation": ("the service still copies into {target}", "copy_not_ended"),
    "SystemInUse ShareSnapshotInProgress": ("{target} is busy: {code}", "busy"),
    "SharingViolation FileOpenBySmbClient CannotDeleteFileOrDirectory":
        ("another program has {target} open", "file_is_open"),
    "FileLockConflict": ("another program has locked bytes of {target}", "file_is_open"),
    "ClientCacheFlushDelay": ("another program has {target} open, with writes in its cache", "file_is_open"),
    "DeletePending SMBDeletePending": ("{target} is deleted as soon as it is closed", "file_delete_pending"),
    "HandleLimitExceeded": ("{target} is open as often as it can be", "file_is_open"),
    "ReadOnlyAttribute": ("{target} has the attribute ReadOnly", "file_is_read_only"),
}  # fmt: skip
# What is refused because of a lease.
_LEASED = {
    "LeaseIdMissing": ("{target} is leased, and no lease id was given", "lease_id_missing"),
    "LeaseAlreadyPresent": ("{target} is leased by another holder", "leased_by_another"),
    # Also where nothing is leased at all: the service calls that a mismatch too.
    "LeaseIdMismatchWithLeaseOperation": ("that lease on {target} is not held", "lease_not_held"),
    "LeaseNotPresentWithLeaseOperation": ("there is no lease on {target}", "no_lease"),
    "LeaseLost": ("the lease on {target} is not held any more", "lease_over"),
    "LeaseIsBreakingAndCannotBeAcquired":
        ("the lease on {target} is being broken, so it cannot be acquired", "leased_by_another"),
    "LeaseIsBreakingAndCannotBeChanged":
        ("the lease on {target} is being broken, and its id cannot be changed any more", "lease_breaking"),
    "LeaseIsBrokenAndCannotBeRenewed": ("the lease on {target} was broken, and cannot be renewed", "lease_broken"),
    "LeaseAlreadyBroken": ("the lease on {target} is broken already", "lease_broken_already"),
    "DeleteShareWhenSnapshotLeased": ("a snapshot of {target} is leased", "snapshot_is_leased"),
    "InfiniteLeaseDurationRequired": ("the lease on {target} must be infinite for this", "infinite_lease_required"),
}  # fmt: skip
# What the service does not do so often. The first code is spelt like that.
_THROTTLED = {
    "SnaphotOperationRateExceeded SnapshotOperationRateExceeded": ("snapshots of {target} are taken too fast", "busy"),
    "AccountBeingCreated": ("the account is still being made", "account_being_created"),
}
# What is forbidden to all credentials, with a 403 or a 409.
_FORBIDDEN = {
    "AccountIsDisabled": ("the account {account} is disabled", "disabled"),
    # The endpoint of a secondary region takes no writes.
    "InsufficientAccountPermissions":
        ("the account {account} does not allow this now: its reads or its writes are switched off", "disabled"),
    "KeyBasedAuthenticationNotPermitted":
        ("account {account} accepts neither keys nor a SAS made with them", "keys_not_accepted"),
    "ShareSizeLimitReached": ("the share {container} is full: it holds what its quota allows", "share_is_full"),
    "ContainerDisabled": ("the container {container} was disabled by an administrator", "disabled"),
    "QueueDisabled": ("the queue {container} was disabled by an administrator", "disabled"),
    "ShareDisabled": ("the share {container} was disabled by an administrator", "disabled"),
    "RequestForbiddenByContainerEncryptionPolicy":
        ("the container {container} takes no encryption scope but its own", "container_of_one_scope"),
    "KeyVaultAccessTokenCannotBeAcquired KeyVaultEncryptionKeyNotFound KeyVaultVaultNotFound":
        ("the account {account} cannot use its key, which is in a key vault", "key_vault_out_of_reach"),
    "ContainerHasLegalHold": ("the container {container} is under a legal hold", "container_immutable"),
    "ContainerImmutabilityPolicyLocked": ("the container {container} has a locked policy", "container_immutable"),
    "BlobImmutableDueToPolicy": ("{target} is immutable by policy", "immutable"),
    "BlobImmutableDueToLegalHold": ("{target} is under a legal hold", "immutable"),
    "PublicAccessNotPermitted": ("the account {account} allows no readers without a login", "no_public_access"),
}  # fmt: skip
# What does not fit the state of a resource, or a limit.
_UNFIT = {
    "MetadataTooLarge": ("its metadata would have more than 8 KiB, azguard's own entry included", "metadata_full"),
    "BlobArchived": ("{target} is in the archive", "blob_is_archived"),
    "BlobBeingRehydrated": ("{target} is still on its way out of the archive", "blob_is_rehydrating"),
    "SnapshotsPresent": ("{target} has snapshots", "has_snapshots"),
    "InvalidBlobType": ("{target} is a blob of another type", "blob_of_other_type"),
    "BlobIsSealed": ("{target} is sealed", "blob_is_sealed"),
    "ShareHasSnapshots": ("{target} has snapshots", "share_has_snapshots"),
    "DirectoryNotEmpty": ("{target} is not empty", "directory_not_empty"),
    "BlockCountExceedsLimit": ("{target} has all the blocks that it can have", "too_many_blocks"),
    "SnapshotCountExceeded ShareSnapshotCountExceeded":
        ("{target} has all the snapshots that it can have", "too_many_snapshots"),
    "DirectoryIsNotEmpty": ("{target} is a directory, and not empty", "blob_directory_not_empty"),
    "FeatureNotYetSupportedForHierarchicalNamespaceAccounts BlobApiNotYetSupportedForHierarchicalNamespaceAccounts":
        ("an account with a hierarchical namespace cannot do it", "no_flat_namespace"),
    "BlobOperationNotSupported": ("{target} was made through Data Lake Storage", "made_through_data_lake"),
    "BlobUsesCustomerSpecifiedEncryption":
        ("{target} is encrypted with a key or in a scope that its writer gave", "key_of_the_writer"),
    "BlobCustomerSpecifiedEncryptionMismatch":
        ("{target} is encrypted with another key or in another scope", "encrypted_with_another_key"),
    "BlobDoesNotUseCustomerSpecifiedEncryption":
        ("{target} is not encrypted with a key that its writer gave", "not_encrypted_with_a_key"),
    "BlobNotArchived": ("{target} is not in the archive", "not_in_archive"),
    "InvalidBlobTier": ("this type of blob has no such tier", "no_such_tier"),
    "BlobAccessTierNotSupportedForAccountType": ("this kind of account has no such tier", "no_such_tier"),
    "BlobTierInadequateForContentLength ContentLengthLargerThanTierLimit":
        ("{target} is too large for that tier", "no_such_tier"),
    "CannotChangeToLowerTier": ("a page blob does not get a lower tier", "no_such_tier"),
    "NoPendingCopyOperation CopyIdMismatch": ("no such copy into {target} is pending", "no_such_copy"),
    "CopyAcrossAccountsNotSupported": ("the source is of another account", "source_of_other_account"),
    "InvalidSourceBlobType": ("the source is a blob of another type", "source_of_other_type"),
    "SequenceNumberIncrementTooLarge": ("its sequence number would be too large", "sequence_too_large"),
    "ContainerQuotaDowngradeNotAllowed": ("its quota was made smaller too recently", "quota_too_recent"),
    "ShareSnapshotOperationNotSupported": ("a snapshot of a share is only read", "snapshot_only_read"),
    "FileGenerationMismatch": ("{target} was made anew since that snapshot", "file_made_anew"),
    # No other body is too large: tables have words of their own.
    "MessageTooLarge RequestBodyTooLarge": ("a message has at most 64 KiB", "message_too_large"),
    "FeatureVersionMismatch":
        ("{target} has a property that this version of the service's API does not know", "api_version"),
}  # fmt: skip
# What the Table service means by its own codes, and by those that others share.
_UNFIT_FOR_TABLES = {
    "InvalidInput": ("a value or the filter is not what the service understands", "table_input"),
    "PropertyLimitExceeded TooManyProperties": ("the entity has more than 252 properties", "too_many_properties"),
    "EntityTooLarge": ("the entity has more than 1 MiB", "value_too_large"),
    "RequestBodyTooLarge": ("the request is too large", "value_too_large"),
    "PropertyValueTooLarge": ("a property has more than 64 KiB", "value_too_large"),
    "KeyValueTooLarge": ("a key has more than 1 KiB", "key_too_long"),
    "PropertyNameTooLong": ("the name of a property has more than 255 characters", "property_name_too_long"),
    "PropertyNameInvalid": ("the name of a property is not valid", "property_name_malformed"),
    "PropertiesNeedValue": ("a key is missing", "entity_without_key"),
    "DuplicatePropertiesSpecified": ("a property is given twice", "property_given_twice"),
    "InvalidValueType": ("a value does not have the type of its property", "value_of_other_type"),
    "OutOfRangeInput": ("a value is beyond what its type takes", "value_out_of_range"),
}


def _list(kind: type[AzguardError], *tables: Mapping[str, tuple[str, str | None]]) -> dict[str, Meaning]:
    return {code: Meaning(kind, *row) for rows in tables for codes, row in rows.items() for code in codes.split()}


BUSY = _list(Locked, _IN_USE)
TABLES = _list(BadRequest, _UNFIT_FOR_TABLES)
MEANINGS = {
    **_list(NotFound, _MISSING),
    **_list(Locked, _BEING_DELETED, _LEASED),
    **BUSY,
    **_list(Unavailable, _THROTTLED),
    **_list(Forbidden, _FORBIDDEN),
    **_list(BadRequest, _UNFIT),
}
# What all codes mean that are spelt alike; the first that fits holds.
FAMILIES = {
    "LeaseIdMismatch*": Meaning(Locked, "{target} is leased under another id", "leased_under_another_id"),
    "LeaseNotPresent*": Meaning(Locked, "the lease on {target} is not held any more", "lease_over"),
    "Lease*": Meaning(Locked, "the lease on {target} does not allow it: {code}", "lease_refuses"),
    "*AlreadyExists": Meaning(Exists, "{target} exists already", None),
    "*BeingDeleted": Meaning(Locked, "{target} is busy: {code}", "busy"),
    # Of shares that are paid for as they are provisioned.
    **dict.fromkeys(
        ("FileShareProvisioned*", "TotalShares*"),
        Meaning(BadRequest, "a limit of the account or of the share does not allow it", "not_provisioned"),
    ),
}
#: The reasons of a refusal because of the key, or the scope, with which a blob is encrypted.
OF_ENCRYPTION = ("key_of_the_writer", "encrypted_with_another_key", "not_encrypted_with_a_key")


def find_meaning(code: str, target: Target) -> Meaning | None:
    """Return the meaning of an error code, in words about this resource; None for an unknown code."""
    found = (TABLES.get(code) if target.kind.service == "table" else None) or MEANINGS.get(code)
    found = found or next((each for pattern, each in FAMILIES.items() if fnmatchcase(code, pattern)), None)
    if found is None:
        return None
    names = {"account": target.account.name, **name_parents(target)}
    return found._replace(words=found.words.format(target=target, code=code, **names))


def name_parents(target: Target) -> dict[str, str]:
    """Return the names of what a resource is in, for words about it."""
    return {"container": target.address.container, "parent": "/".join(target.address.parts).rpartition("/")[0]}


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
    return status == _CONDITION_FAILED and (not code or code in CONDITIONS)


def find_time(error: BaseException | None) -> datetime | None:
    """Return when the service wrote the refusal behind an error; None if the refusal does not say it."""
    while error is not None and not isinstance(error, Refusal):
        error = error.__cause__
    found = re.search(_TOLD, str(error))
    try:
        return None if found is None else datetime.fromisoformat(found[1])
    except ValueError:
        return None
