"""The source of a copy, a blob or a file: how the service is told of it, its name in results, and what refuses it."""

from http import HTTPStatus

from azguard.accounts.account import Auth
from azguard.accounts.target import Target
from azguard.errors import AzguardError, Changed, Forbidden, NotFound
from azguard.urls import same_host

#: What the service says of a source that it cannot read; the status says why.
UNREADABLE = "CannotVerifyCopySource"


def to_url(source: Target) -> str:
    """Return the URL by which the service reads a source. It holds the SAS, so it goes to the service alone."""
    from urllib.parse import quote

    found, account = source.address, source.account
    snapshot = "sharesnapshot" if found.kind.service == "file" else "snapshot"
    query = [f"{snapshot}={quote(found.snapshot)}"] if found.snapshot else []
    query += [f"versionid={quote(found.version)}"] if found.version else []
    # The service reads a source in the same account by the credentials of the request, but not by its SAS.
    query += [account.secret] if account.auth is Auth.SAS and account.secret else []
    path = f"{quote(found.container, safe='$')}/{quote(found.name, safe='~/')}"
    return "?".join([f"{source.endpoint}/{path}", *(["&".join(query)] if query else [])])


def describe(source: Target, destination: Target) -> str:
    """Return what names a source in a result: its address, and in another account its endpoint too."""
    if source.account is destination.account or same_host(source.endpoint) == same_host(destination.endpoint):
        return str(source.address)
    return f"{source.endpoint}/{source.address.short}"


def to_changed(error: AzguardError, source: Target) -> Changed:
    """Return the error for a condition on the source that did not hold."""
    return error.as_kind(
        Changed,
        message=f"the condition did not hold for the source {source}; nothing was written",
        address=str(source.address),
        reason="copy_source_changed",
        facts={**error.facts, "side": "source"},
        # What was read after the refusal is the destination.
        seen=None,
        expected_etag=None,
    )


def judge_unreadable(error: AzguardError, source: Target) -> AzguardError:
    """Return the error for a source that the service could not read."""
    match error.http_status:
        case HTTPStatus.PRECONDITION_FAILED | HTTPStatus.NOT_MODIFIED:
            return to_changed(error, source)
        case HTTPStatus.NOT_FOUND:
            return to_unreadable(error.as_kind(NotFound), source)
        case _:
            return to_unreadable(error.as_kind(Forbidden), source)


def to_unreadable(error: AzguardError, source: Target) -> AzguardError:
    """Return the error for a source that is not there, or may not be read."""
    is_missing = isinstance(error, NotFound)
    if is_missing and error.reason is not None:  # its container
        return error.but(facts={**error.facts, "side": "source"})
    message = f"there is no source {source}" if is_missing else f"the source {source} may not be read"
    return error.but(
        message=message,
        detail=() if is_missing else (*error.detail, error.message),
        address=str(source.address),
        reason="copy_source_missing" if is_missing else "copy_source_unreadable",
        facts={**error.facts, "side": "source"},
    )
