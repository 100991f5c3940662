"""Why the service does not accept credentials: a field of a SAS, the clock, the key, the login or the network.

Source: Common REST API error codes; Delegate access with a SAS; Create a service SAS; Authorize with Shared Key, in the
REST reference.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

from azguard.accounts.account import PERMISSIONS, RESOURCE_TYPES, SERVICE_LETTERS, Auth, Sas, Target, read_sas
from azguard.requests import service_codes
from azguard.times import find_http_date, iso, span
from azguard.wire.failures import Cause, Refusal, SentRequest
from azguard.wire.signing import CLOCK_SKEW

# Which service the resource types of a service SAS are of.
_SERVICE_OF = {"b": "blob", "bs": "blob", "bv": "blob", "c": "blob", "d": "blob", "f": "file", "s": "file"}
# What a SAS of one resource is of, for the services whose containers take one of the account.
_SAS_OF = {"blob": "a container or a blob", "file": "a share or a file"}
_MISMATCHES = ("AuthorizationServiceMismatch", "AuthorizationResourceTypeMismatch", "AuthorizationProtocolMismatch")
# What the service says of credentials that do not allow a request; some codes only of a SAS. None is no code.
_OF_SAS = {
    None, "AuthorizationPermissionMismatch", "AuthorizationSourceIPMismatch", "AuthorizationFailure",
    service_codes.OVERWRITE_DENIED, *_MISMATCHES, *service_codes.AUTHENTICATION,
}  # fmt: skip
_OF_ANONYMOUS = {None, "PublicAccessNotPermitted", "AuthorizationFailure", *service_codes.AUTHENTICATION}
_ROLES = {
    "blob": "Storage Blob Data Contributor",
    "table": "Storage Table Data Contributor",
    "queue": "Storage Queue Data Contributor",
    "file": "Storage File Data Privileged Contributor",
}
# The permission that a request needs by its comp; of several letters one.
_BY_COMP: Mapping[str, Mapping[str | None, str]] = {
    "blob": {
        "list": "l", "tags": "t", "lease": "wd", "appendblock": "aw", "immutabilityPolicies": "i", "legalhold": "i",
    },
    "file": {"list": "l", "listhandles": "l", "lease": "wd", "forceclosehandles": "wd"},
}  # fmt: skip
# The comp of what may create.
_CREATING = {"blob": (None, "block", "blocklist", "snapshot"), "file": (None,)}


def explain(error: Refusal, code: str | None, target: Target, said: str) -> Cause:
    """Return why the service answered 401 or 403 to a request with the credentials of a target.

    ``said`` is the service's own sentence, for a code that is not known.
    """
    response = error.response
    if response is None:
        return Cause(f"the service does not allow this to {_describe(target)}", reason="not_allowed")
    told = service_codes.find_time(error) or find_http_date(response.headers.get("Date"))
    now = told or datetime.now(UTC)
    if code == "InsufficientAccountPermissions" and response.request.method not in ("GET", "HEAD"):
        host = urlsplit(target.endpoint).hostname or ""
        if host.partition(".")[0].endswith("-secondary"):
            return Cause(f"{host} is the secondary endpoint, which takes no writes", reason="secondary_takes_no_writes")
    found = _explain_credentials(error, response.request, code, target, now)
    if found is None and (meaning := service_codes.find_meaning(code or "", target)) is not None:
        return Cause(meaning.words, meaning.reason, service_codes.name_parents(target))
    return found or _name(code, said, target)


def _explain_credentials(
    error: Refusal, request: SentRequest, code: str | None, target: Target, now: datetime
) -> Cause | None:
    """Return the denial that the credentials explain; None where the code blames another cause."""
    account = target.account
    if account.auth is Auth.SAS:
        return _explain_sas(read_sas(account.secret or ""), request, code, target, now) if code in _OF_SAS else None
    if account.auth is Auth.KEY:
        return _explain_key(request, code, target, now)
    if account.auth is Auth.ANONYMOUS:
        is_private = code in _OF_ANONYMOUS
        return Cause(f"{_describe(target)} is not public", reason="not_public") if is_private else None
    return _explain_login(error, code, target)


def _name(code: str | None, said: str, target: Target) -> Cause:
    """Return a refusal that blames no part of the credentials, because the code does not."""
    told = ": ".join(dict.fromkeys(filter(None, (code, said))))
    return Cause(f"the service does not allow this to {_describe(target)}: {told}", reason="refusal_unclear")


def _explain_sas(token: Sas, request: SentRequest, code: str | None, target: Target, now: datetime) -> Cause:
    found = (
        _check_time(token, now)
        or _check_place(token, request, code, target)
        or _check_permissions(token, request, code, target)
    )
    if found is not None:
        return found
    if code in _MISMATCHES:
        fields = {"ss": token.services, "srt": token.resource_types, "sr": token.resource, "spr": token.protocols}
        has = " ".join(f"{name}={value}" for name, value in fields.items() if value)
        return _refuse(target, f"{code}; it has {has}", reason="sas_unsuitable")
    if code == "AuthorizationFailure" and _is_azure(target):
        return _blame_network(target)
    if token.policy is not None:
        why = f"its stored access policy {token.policy!r} (si) decides"
        return _refuse(target, why, reason="sas_policy_refuses")
    return Cause(f"the signature of the SAS does not fit {_describe(target)}", reason="sas_does_not_fit")


def _refuse(target: Target, why: str, reason: str, **values: object) -> Cause:
    return Cause(f"the SAS does not allow this to {_describe(target)}: {why}", reason, values)


def _for_another(what: str) -> Cause:
    return Cause(f"the SAS is for {what}", reason="sas_unsuitable")


def _check_time(token: Sas, now: datetime) -> Cause | None:
    clock = f"the service's clock says {_format_time(now)}"
    if token.ends is not None and token.ends <= now:
        return Cause(f"the SAS ended at {_format_time(token.ends)} (se); {clock}", reason="sas_unsuitable")
    if token.starts is not None and token.starts > now:
        return Cause(f"the SAS begins only at {_format_time(token.starts)} (st); {clock}", reason="sas_not_yet_valid")
    return None


def _check_place(token: Sas, request: SentRequest, code: str | None, target: Target) -> Cause | None:
    """Return the denial for a SAS of another service, kind of resource or protocol, or used from another address."""
    service = target.kind.service
    if token.services is not None and service[0] not in token.services:
        names = " and ".join(SERVICE_LETTERS[each] for each in token.services if each in SERVICE_LETTERS)
        return _for_another(f"the service {names} (ss={token.services}), not for {service}")
    made_for = "table" if token.table else _SERVICE_OF.get(token.resource or "")
    if not token.is_of_account and made_for is not None and made_for != service:
        return _for_another(f"the service {made_for}, not for {service}")
    level = _find_level(request, service)
    if token.resource_types is not None and level not in token.resource_types:
        return Cause(
            f"{_describe(target)} needs a SAS for {RESOURCE_TYPES[level]}, and this has srt={token.resource_types}",
            reason="sas_for_other_resource_types",
            values={"types": "".join(each for each in "sco" if each in token.resource_types + level)},
        )
    if not token.is_of_account and (found := _check_one_resource(token, request, target)) is not None:
        return found
    if token.protocols == "https" and not target.endpoint.startswith("https:"):
        return Cause("the SAS is for https only (spr=https), not for http", reason="sas_for_https")
    if code == "AuthorizationSourceIPMismatch":
        return _for_another(f"requests from {token.addresses} only (sip), and this is not from there")
    if token.table and token.table.lower() != target.address.container.lower():
        return _for_another(f"the table {token.table} (tn), not for {target.address.container}")
    return None


def _check_one_resource(token: Sas, request: SentRequest, target: Target) -> Cause | None:
    """Return the denial of a request that a SAS of one container, blob, share or file cannot allow."""
    service = target.kind.service
    if service in _SAS_OF and _needs_account_sas(request, _find_level(request, service)):
        return Cause(
            f"a SAS of {_SAS_OF[service]} does not allow this to {_describe(target)}: it takes one of the account",
            reason="sas_of_account_needed",
            values={"service": service[0]},
        )
    if token.resource == "f" and "/.azguard-" in f"/{target.address.name}":
        return Cause(
            f"the SAS is for one file (sr=f), and a new version is written beside it first, as {_describe(target)}",
            reason="sas_of_one_file",
        )
    return None


def _check_permissions(token: Sas, request: SentRequest, code: str | None, target: Target) -> Cause | None:
    has = token.permissions
    for needed in list_permissions(request, target.kind.service):
        if has is not None and not set(needed) & set(has):
            words = " or ".join(f"{PERMISSIONS[each]} ({each})" for each in needed)
            why = f"it needs {words}, and has sp={has}"
            return _refuse(target, why, reason="sas_without_permission", permissions=" or ".join(needed))
    if has is not None and code in ("AuthorizationPermissionMismatch", service_codes.OVERWRITE_DENIED):
        return _refuse(target, f"it has sp={has}", reason="sas_allows_too_little")
    return None


def _needs_account_sas(request: SentRequest, level: str) -> bool:
    """Return whether no SAS of one resource allows a request: one about containers or shares, but no list of one."""
    return level == "s" or (level == "c" and parse_qs(urlsplit(request.url).query).get("comp") != ["list"])


def _find_level(request: SentRequest, service: str) -> str:
    """Return the letter of ``srt`` that a request needs: of the service, a container or what is in it."""
    url = urlsplit(request.url)
    query = parse_qs(url.query)
    if service == "table":
        return "c" if url.path.rpartition("/")[2].startswith("Tables") or "comp" in query else "o"
    is_of_all = query.get("comp") == ["list"] and "restype" not in query
    if is_of_all or query.get("restype") in (["account"], ["service"]):
        return "s"
    is_listing = service == "file" and query.get("comp") == ["list"]
    return "c" if is_listing or query.get("restype") in (["container"], ["share"]) else "o"


def _explain_key(request: SentRequest, code: str | None, target: Target, now: datetime) -> Cause | None:
    if code not in ("AuthenticationFailed", "AuthorizationFailure"):
        return None
    sent = find_http_date(request.headers.get("x-ms-date"))
    if sent is not None and abs(now - sent) > CLOCK_SKEW:
        off = span(abs(now - sent).total_seconds())
        return Cause(
            f"this machine's clock is {off} {'behind' if sent < now else 'ahead'}: it says {_format_time(sent)}, "
            f"the service {_format_time(now)}",
            reason="clock_is_off",
        )
    if code == "AuthorizationFailure" and _is_azure(target):
        return _blame_network(target)
    return Cause(
        f"the account key is not one of {target.account.name}, so {_describe(target)} is out of reach",
        reason="key_of_another_account",
        values={"account": target.account.name},
    )


def _explain_login(error: Refusal, code: str | None, target: Target) -> Cause | None:
    if code == "AuthorizationPermissionMismatch":
        return Cause(
            f"this login has no role that allows this to {_describe(target)}",
            reason="role_missing",
            values={"role": _ROLES[target.kind.service]},
        )
    if code == "AuthorizationFailure":
        return _blame_network(target)
    if code is not None and code not in service_codes.AUTHENTICATION:
        return None
    ended = "expired" in str(error)
    return Cause(
        f"the login's token for {_describe(target)} " + ("has ended" if ended else "is not accepted"),
        reason="login_ended" if ended else "login_not_accepted",
    )


def _blame_network(target: Target) -> Cause:
    return Cause(f"the account of {_describe(target)} does not let this machine in", reason="kept_out")


def _describe(target: Target) -> str:
    """Return the name of the resource asked for; for a listing of a whole service, the name of the account."""
    return str(target) or f"account {target.account.name}"


def _is_azure(target: Target) -> bool:
    """Return whether the real service answers: Azurite says AuthorizationFailure of whatever it does not accept."""
    return not urlsplit(target.endpoint).path


def _format_time(when: datetime) -> str | None:
    return iso(when.replace(microsecond=0))


def list_permissions(request: SentRequest, service: str) -> tuple[str, ...]:
    """Return the permissions that a SAS needs for a request: of each text, one letter. Empty where not known."""
    url = urlsplit(request.url)
    query = {name: values[0] for name, values in parse_qs(url.query).items()}
    if service == "table":
        return _list_for_tables(request, url.path.rpartition("/")[2])
    if service not in _BY_COMP or query.get("comp") == "acl":
        return ()
    needed = _find_permission(request.method, service, query)
    has_tags = service == "blob" and any(name.lower() in ("x-ms-tags", "x-ms-if-tags") for name in request.headers)
    return (needed, "t") if has_tags else (needed,)


def _list_for_tables(request: SentRequest, name: str) -> tuple[str, ...]:
    if name == "$batch":
        return ()
    if name.startswith("Tables"):
        return {"GET": ("l",), "POST": ("cw",), "DELETE": ("d",)}.get(request.method, ())
    if request.method in ("PUT", "PATCH"):
        # Without a condition it may have to insert the entity.
        return ("u",) if "If-Match" in request.headers else ("u", "a")
    return {"GET": ("r",), "POST": ("a",), "DELETE": ("d",)}.get(request.method, ())


def _find_permission(method: str, service: str, query: Mapping[str, str]) -> str:
    comp = query.get("comp")
    if comp in _BY_COMP[service]:
        return _BY_COMP[service][comp]
    if method in ("GET", "HEAD"):
        return "r"
    if method == "DELETE":
        return "x" if "versionid" in query else "d"
    return "cw" if comp in _CREATING[service] else "w"
