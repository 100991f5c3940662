"""Blobs that one request writes."""

from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

from azguard.accounts import direct
from azguard.accounts.direct import DirectAnswer
from azguard.blobs.upload import Upload
from azguard.requests.calls import write_timeouts
from azguard.requests.lineage import KEY

# The headers of the properties that a put sets.
_SETTINGS = {
    "content_type": "x-ms-blob-content-type",
    "content_encoding": "x-ms-blob-content-encoding",
    "content_language": "x-ms-blob-content-language",
    "content_disposition": "x-ms-blob-content-disposition",
    "cache_control": "x-ms-blob-cache-control",
    "content_md5": "x-ms-blob-content-md5",
    "tier": "x-ms-access-tier",
}


def is_plain(upload: Upload) -> bool:
    """Return whether a put sets nothing whose form or order in a signature only the SDK knows: tags and metadata."""
    return not upload.settings.metadata and upload.tags is None


def write(upload: Upload, content: bytes) -> Mapping[str, Any]:
    """Send a Put Blob and return what the service says of the new version, under the SDK's names.

    Raises:
        AzureError: as of the SDK.
        ChallengeReceived: see ``direct.send``.
    Source: https://learn.microsoft.com/rest/api/storageservices/put-blob
    """
    from azure.core.exceptions import HttpResponseError

    settings = {header: value for name, header in _SETTINGS.items() if (value := getattr(upload.settings, name))}
    stamp = {f"x-ms-meta-{KEY}": upload.stamp} if upload.stamp else {}
    answer = direct.send(
        upload.target.account,
        "PUT",
        upload.target.address,
        {
            "Content-Type": "application/octet-stream",
            "x-ms-blob-type": "BlockBlob",
            **settings,
            **stamp,
            **upload.conditions.request_headers,
        },
        write_timeouts(upload.deadline),
        body=content,
    )
    if answer.status != HTTPStatus.CREATED:
        raise HttpResponseError(f"a put was answered with {answer.status}")
    return _parse(answer)


def _parse(answer: DirectAnswer) -> Mapping[str, Any]:
    modified = answer.headers.get("Last-Modified")
    return {
        "etag": answer.headers.get("ETag"),
        "last_modified": None if modified is None else parsedate_to_datetime(modified),
        "version_id": answer.headers.get("x-ms-version-id"),
    }
