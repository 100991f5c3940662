"""Operations on an account as a whole, which have no conditions."""

from azguard.wire.rows import reads, speaks

ACCOUNT_GET_INFORMATION = reads(
    "account.get_information",
    "get-account-information",
    http=speaks("GET", "properties", path="", query=(("restype", "account"),)),
)
ACCOUNT_GET_BLOB_SERVICE = reads(
    "account.get_blob_service",
    "get-blob-service-properties",
    http=speaks("GET", "properties", path="", query=(("restype", "service"),)),
)
