"""Who may do what: SharedKey and shared access signatures.

Sources: https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key
https://learn.microsoft.com/rest/api/storageservices/create-service-sas
https://learn.microsoft.com/rest/api/storageservices/create-account-sas
"""

import base64
import hashlib
import hmac
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from ipaddress import ip_address
from urllib.parse import unquote
from xml.etree import ElementTree as ET

from azguard.emulators.files import answers
from azguard.emulators.files.answers import ServiceError
from azguard.emulators.files.request import FileRequest
from azguard.frozen import frozen

_SIGNED_HEADERS = (
    "content-encoding", "content-language", "content-length", "content-md5", "content-type", "date",
    "if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range",
)  # fmt: skip
_SAS_RESPONSE = ("rscc", "rscd", "rsce", "rscl", "rsct")


@frozen
class Needs:
    """What a SAS must allow for an operation: one of each group of letters."""

    #: Permissions of a SAS of the account.
    account: str
    #: The resource type that a SAS of the account must have: s, c or o.
    resource: str
    #: Permissions of a SAS of a share or file; empty where none is enough.
    service: str = ""


def check(
    request: FileRequest, key: bytes, needs: Needs, policies: Callable[[], str], address: str, now: float
) -> None:
    """Refuse a request that the account's key has not signed, or whose SAS does not allow it.

    ``policies`` returns the access policies of the share, as XML.
    """
    if "authorization" in request.headers:
        _check_shared_key(request, key)
    elif "sig" in request.query:
        _check_sas(request, key, needs, policies, address, now)
    else:
        raise ServiceError("NoAuthenticationInformation")


def sign(key: bytes, text: str) -> str:
    """Return the signature of a text."""
    return base64.b64encode(hmac.digest(key, text.encode(), hashlib.sha256)).decode()


def authorize(request: FileRequest, key: bytes) -> str:
    """Return the header by which the key of its account authorizes a request."""
    return f"SharedKey {request.account}:{sign(key, _build_text(request, str))}"


def _check_shared_key(request: FileRequest, key: bytes) -> None:
    scheme, _, rest = request.headers["authorization"].partition(" ")
    account, _, signature = rest.partition(":")
    if scheme.lower() != "sharedkey" or account != request.account:
        raise _unauthenticated("the Authorization header is not that of SharedKey and this account")
    # Two orders of headers are in use: that of the characters, and that of words, in which hyphens do not count.
    orders: tuple[Callable[[str], str], ...] = (str, lambda name: name.replace("-", "").replace("_", "!"))
    texts = [_build_text(request, order) for order in orders]
    if not any(hmac.compare_digest(sign(key, text), signature) for text in texts):
        raise _unauthenticated(f"the signature is not that of the key over {texts[0]!r}")


def _build_text(request: FileRequest, order: Callable[[str], str]) -> str:
    headers = {**request.headers}
    if headers.get("content-length") == "0":
        del headers["content-length"]
    # The SDK signs no range, wherever it sends one.
    signed = [headers.get(name, "") if name != "range" else "" for name in _SIGNED_HEADERS]
    own = sorted((name for name in headers if name.startswith("x-ms-")), key=order)
    query: dict[str, list[str]] = {}
    for name, value in request.raw_query:
        query.setdefault(name.lower(), []).append(value)
    return "\n".join(
        [
            request.method,
            *signed,
            *(f"{name}:{headers[name]}" for name in own),
            f"/{request.account}{request.raw_path}",
            *(f"{name}:{','.join(sorted(query[name]))}" for name in sorted(query)),
        ]
    )


def _check_sas(
    request: FileRequest, key: bytes, needs: Needs, policies: Callable[[], str], address: str, now: float
) -> None:
    query = request.query
    is_account = "ss" in query
    text = _build_account_text(request) if is_account else _build_service_text(request)
    if not hmac.compare_digest(sign(key, text), query["sig"]):
        raise _unauthenticated(f"the signature is not that of the key over {text!r}")
    terms = query if is_account else {**query, **_find_policy(query, policies)}
    _check_time(terms, now)
    _check_origin(query, address)
    if is_account:
        if "f" not in query["ss"]:
            raise ServiceError("AuthorizationServiceMismatch")
        if needs.resource not in query.get("srt", ""):
            raise ServiceError("AuthorizationResourceTypeMismatch")
    wanted = needs.account if is_account else needs.service
    if not set(wanted) & set(terms.get("sp", "")):
        raise ServiceError("AuthorizationPermissionMismatch")


def _build_account_text(request: FileRequest) -> str:
    query = request.query
    names = ("sp", "ss", "srt", "st", "se", "sip", "spr", "sv", "ses")
    return "\n".join([request.account, *(query.get(name, "") for name in names)]) + "\n"


def _build_service_text(request: FileRequest) -> str:
    query = request.query
    path = request.share if query.get("sr") == "s" else f"{request.share}/{request.path_as_sent}"
    values = [query.get(name, "") for name in ("sp", "st", "se")]
    rest = [query.get(name, "") for name in ("si", "sip", "spr", "sv", *_SAS_RESPONSE)]
    return "\n".join([*values, f"/file/{request.account}/{path}", *rest])


def _find_policy(query: Mapping[str, str], policies: Callable[[], str]) -> dict[str, str]:
    """Return the terms of the stored policy that a SAS names."""
    name = query.get("si")
    if not name:
        return {}
    document = policies()
    for each in ET.fromstring(document) if document else ():  # noqa: S314  # it was parsed when it was set
        if unquote(each.findtext("Id", "")) == name:
            terms = {"st": "Start", "se": "Expiry", "sp": "Permission"}
            found = {short: each.findtext(f"AccessPolicy/{tag}", "") for short, tag in terms.items()}
            return {short: value for short, value in found.items() if value}
    raise _unauthenticated("the share has no access policy of that name")


def _check_time(terms: Mapping[str, str], now: float) -> None:
    end = terms.get("se")
    if not end or now >= _read_time(end) or (terms.get("st") and now < _read_time(terms["st"])):
        raise _unauthenticated(f"the SAS is valid from {terms.get('st', 'ever')} to {end}")


def _check_origin(query: Mapping[str, str], address: str) -> None:
    if query.get("spr") == "https":
        raise _unauthenticated("the SAS is for https only, and the emulator speaks http")
    first, _, last = query.get("sip", "").partition("-")
    try:
        is_from_there = not first or int(ip_address(first)) <= int(ip_address(address)) <= int(
            ip_address(last or first)
        )
    except ValueError:
        is_from_there = False
    if not is_from_there:
        raise _unauthenticated(f"the SAS is not for {address}")


def _read_time(text: str) -> float:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise _unauthenticated(f"{text} is no time") from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _unauthenticated(why: str) -> ServiceError:
    return ServiceError("AuthenticationFailed", details=answers.text("AuthenticationErrorDetail", why))
