"""Why credentials are not accepted: which field of a SAS, the clock, the key or the login; said, not guessed."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

from azguard.accounts.account import Account, Auth, Target
from azguard.address import parse
from azguard.requests import denials
from azguard.wire.failures import Cause, Refusal, Response, SentRequest, ServiceRefusal
from tests.support.cases import cases

NOW = datetime(2026, 11, 21, 10, tzinfo=UTC)
AZURE = {"blob": "https://acc.blob.core.windows.net", "table": "https://acc.table.core.windows.net"}


def request(method: str = "GET", url: str = "https://acc/site/a", **headers: str) -> SentRequest:
    return SentRequest(method, url, headers)


def refusal(code: str, asked: SentRequest, token: str | None = None, said: str = "no", **headers: str) -> Cause:
    """Return what is made of an answer of the service at ``NOW`` to a request under a SAS, or the key."""
    kind = "entity" if "Tables" in asked.url or "Orders" in asked.url else "blob"
    which = "entity:Orders/a/b" if kind == "entity" else "blob:site/a"
    account = Account("acc", AZURE, Auth.KEY if token is None else Auth.SAS, token or "key")
    told = {"Date": format_datetime(NOW, usegmt=True), **headers}
    error = ServiceRefusal(
        Response(asked, 403, "Forbidden", told, f"<Error><Message>{said}</Message></Error>".encode())
    )
    return denials.explain(error, code, Target(account, parse(which).address), "no")


@cases(("minutes", "way"), (-20, "20m behind"), (540, "9h ahead"))
def test_a_clock_that_is_wrong_is_named_with_its_distance(minutes: int, way: str) -> None:
    sent = format_datetime(NOW + timedelta(minutes=minutes), usegmt=True)
    found = refusal("AuthenticationFailed", request(**{"x-ms-date": sent}))
    assert (f"this machine's clock is {way}" in found.message, found.reason) == (True, "clock_is_off")


def test_a_clock_that_is_right_is_not_blamed() -> None:
    sent = format_datetime(NOW - timedelta(minutes=14), usegmt=True)
    assert "account key" in refusal("AuthenticationFailed", request(**{"x-ms-date": sent})).message


def test_the_clock_of_a_gateway_is_not_believed_beside_the_time_in_the_refusal() -> None:
    asked = request(**{"x-ms-date": format_datetime(NOW, usegmt=True)})
    ahead = format_datetime(NOW + timedelta(hours=2), usegmt=True)
    found = refusal("AuthenticationFailed", asked, said=f"No.\nTime:{NOW:%Y-%m-%dT%H:%M:%S}.0000000Z", Date=ahead)
    assert found.reason == "key_of_another_account"


@cases(
    ("code", "token", "words"),
    ("AuthenticationFailed", "se=2026-11-21T09:59:59Z&sp=r&sr=b&sig=x", "ended at 2026-11-21T09:59:59Z"),
    ("AuthenticationFailed", "se=2026-11-21&sp=r&sr=b&sig=x", "ended at 2026-11-21T00:00:00Z"),
    ("AuthorizationServiceMismatch", "ss=q&srt=o&sp=r&se=2027-01-01&sig=x", "is for the service queue (ss=q)"),
    ("AuthorizationProtocolMismatch", "spr=https&sp=r&sr=b&sig=x", "AuthorizationProtocolMismatch; it has sr=b"),
    ("AuthorizationSourceIPMismatch", "sip=10.0.0.1-10.0.0.9&sp=r&sr=b&sig=x", "from 10.0.0.1-10.0.0.9 only"),
    ("AuthorizationPermissionMismatch", "sp=rc&sr=b&sig=x", "it has sp=rc"),
    ("AuthorizationFailure", "sp=r&sr=b&sig=x", "does not let this machine in"),
    ("KeyBasedAuthenticationNotPermitted", "sp=r&sr=b&sig=x", "accepts neither keys nor a SAS"),
)
def test_what_only_the_real_service_says_is_understood(code: str, token: str, words: str) -> None:
    assert words in refusal(code, request(), token).message


@cases(
    ("asked", "reason"),
    (request("HEAD", "https://acc/site?restype=container"), "sas_of_account_needed"),
    (request("PUT", "https://acc/site?restype=container&comp=lease"), "sas_of_account_needed"),
    (request("GET", "https://acc/?restype=account&comp=properties"), "sas_of_account_needed"),
    (request("GET", "https://acc/?restype=service&comp=properties"), "sas_of_account_needed"),
    (request("GET", "https://acc/?comp=list"), "sas_of_account_needed"),
    (request("GET", "https://acc/site?restype=container&comp=list"), "sas_without_permission"),
    (request("PUT", "https://acc/site/a?comp=lease"), "sas_without_permission"),
)
def test_what_only_a_sas_of_the_account_allows_is_told(asked: SentRequest, reason: str) -> None:
    assert refusal("AuthorizationPermissionMismatch", asked, "sp=r&sr=c&sig=x").reason == reason


@cases(
    ("service", "asked", "needed"),
    ("blob", request("PUT"), ("cw",)),
    ("blob", request("PUT", **{"x-ms-tags": "fence=1"}), ("cw", "t")),
    ("blob", request("PUT", "https://acc/site/a?comp=metadata"), ("w",)),
    ("blob", request("PUT", "https://acc/site/a?comp=lease"), ("wd",)),
    ("blob", request("GET", "https://acc/site?restype=container&comp=list"), ("l",)),
    ("blob", request("DELETE", "https://acc/site/a?versionid=2026"), ("x",)),
    ("blob", request("PUT", "https://acc/site?restype=container&comp=acl"), ()),
    ("table", request("PATCH", "https://acc/Orders(PartitionKey='a',RowKey='b')"), ("u", "a")),
    ("table", request("PUT", "https://acc/Orders(PartitionKey='a',RowKey='b')", **{"If-Match": "*"}), ("u",)),
    ("table", request("POST", "https://acc/Tables"), ("cw",)),
    ("table", request("POST", "https://acc/$batch"), ()),
    ("table", request("DELETE", "https://acc/Tables('Orders')"), ("d",)),
    ("table", request("GET", "https://acc/Orders()"), ("r",)),
    ("queue", request(), ()),
    ("file", request("GET", "https://acc/team/d?restype=directory&comp=list"), ("l",)),
    ("file", request("PUT", "https://acc/team/a?comp=range"), ("w",)),
    ("file", request("PUT", "https://acc/team/a"), ("cw",)),
    ("file", request("PUT", "https://acc/team/a?comp=forceclosehandles"), ("wd",)),
    ("file", request("DELETE", "https://acc/team/a"), ("d",)),
)  # fmt: skip
def test_a_request_tells_what_it_needs(service: str, asked: SentRequest, needed: tuple[str, ...]) -> None:
    assert denials.list_permissions(asked, service) == needed


def denial(auth: Auth, code: str | None, text: str = "", endpoint: str = AZURE["blob"]) -> Cause:
    """Return what is made of an answer of the service to a request with these credentials."""
    secret = "sp=r&sr=b&sig=x" if auth is Auth.SAS else "key"
    account = Account("acc", {"blob": endpoint}, auth, secret)
    error = Refusal(403, code, text)
    error.response = Response(request(), 403, "Forbidden", {"Date": format_datetime(NOW, usegmt=True)}, b"")
    return denials.explain(error, code, Target(account, parse("blob:site/a").address), "It is so.")


@cases(
    ("auth", "code", "reason"),
    (Auth.KEY, "KeyBasedAuthenticationNotPermitted", "keys_not_accepted"),
    (Auth.KEY, "AuthenticationFailed", "key_of_another_account"),
    (Auth.KEY, "AuthorizationFailure", "kept_out"),
    (Auth.KEY, "ShareSizeLimitReached", "share_is_full"),
    (Auth.SAS, "ShareDisabled", "disabled"),
    (Auth.SAS, "KeyVaultVaultNotFound", "key_vault_out_of_reach"),
    (Auth.KEY, "RequestForbiddenByContainerEncryptionPolicy", "container_of_one_scope"),
    (Auth.ANONYMOUS, "PublicAccessNotPermitted", "not_public"),
    (Auth.LOGIN, "AuthorizationPermissionMismatch", "role_missing"),
    (Auth.LOGIN, "InsufficientAccountPermissions", "disabled"),
    (Auth.LOGIN, "AuthorizationFailure", "kept_out"),
    (Auth.LOGIN, "InvalidAuthenticationInfo", "login_not_accepted"),
    (Auth.SAS, "AuthenticationFailed", "sas_does_not_fit"),
    (Auth.SAS, "AuthorizationFailure", "kept_out"),
    (Auth.SAS, "UnauthorizedBlobOverwrite", "sas_allows_too_little"),
)
def test_each_way_to_prove_an_identity_has_its_own_reason(auth: Auth, code: str, reason: str) -> None:
    assert denial(auth, code).reason == reason


@cases("auth", *list(Auth))
@cases(
    ("code", "words", "reason"),
    ("AccountIsDisabled", "the account acc is disabled", "disabled"),
    ("InsufficientAccountPermissions", "its reads or its writes are switched off", "disabled"),
    ("OnlyOnSundays", "does not allow this to site/a: OnlyOnSundays: It is so.", "refusal_unclear"),
)
def test_a_refusal_that_is_not_about_credentials_blames_none(auth: Auth, code: str, words: str, reason: str) -> None:
    found = denial(auth, code)
    assert (words in found.message, found.reason) == (True, reason)


@cases("code", "AuthorizationProtocolMismatch", "AuthorizationPermissionMismatch", None)
def test_a_key_is_blamed_only_where_it_is_not_accepted(code: str | None) -> None:
    assert denial(Auth.KEY, code).reason == "refusal_unclear"


def test_a_login_whose_token_has_ended_is_told_from_one_that_is_not_accepted() -> None:
    found = denial(Auth.LOGIN, "InvalidAuthenticationInfo", "Lifetime validation failed. The token is expired.")
    assert (found.reason, found.message) == ("login_ended", "the login's token for site/a has ended")


@cases("auth", Auth.KEY, Auth.SAS)
def test_the_emulator_says_nothing_of_the_network_by_an_authorization_failure(auth: Auth) -> None:
    found = denial(auth, "AuthorizationFailure", endpoint="http://127.0.0.1:10000/acc")
    assert found.reason == {Auth.KEY: "key_of_another_account", Auth.SAS: "sas_does_not_fit"}[auth]


def test_a_refusal_without_an_answer_blames_nothing() -> None:
    target = Target(Account("acc", AZURE, Auth.KEY, "key"), parse("blob:site/a").address)
    assert denials.explain(Refusal(403, None, "no"), None, target, "no") == Cause(
        "the service does not allow this to site/a", reason="not_allowed"
    )


@cases(
    ("token", "asked", "reason"),
    ("st=2026-11-22&sp=r&sr=b&sig=x", request(), "sas_not_yet_valid"),
    ("ss=b&srt=c&sp=r&sig=x", request(), "sas_for_other_resource_types"),
    ("ss=b&srt=o&sp=r&sig=x", request(url="https://acc/?comp=list"), "sas_for_other_resource_types"),
    ("ss=b&srt=o&sp=r&sig=x", request(url="https://acc/site?restype=container"), "sas_for_other_resource_types"),
    ("tn=Other&sp=r&sig=x", request(url="https://acc/Orders"), "sas_unsuitable"),
    ("sp=r&sr=b&sig=x", request("PUT"), "sas_without_permission"),
    ("si=readers&sr=b&sig=x", request(), "sas_policy_refuses"),
)
def test_a_field_of_a_sas_that_does_not_allow_it_is_the_reason(token: str, asked: SentRequest, reason: str) -> None:
    assert refusal("AuthenticationFailed", asked, token).reason == reason


@cases(
    ("method", "host", "reason"),
    ("PUT", "acc-secondary.blob.core.windows.net", "secondary_takes_no_writes"),
    ("GET", "acc-secondary.blob.core.windows.net", "disabled"),
    ("PUT", "acc.blob.core.windows.net", "disabled"),
)
def test_a_secondary_endpoint_is_said_to_take_no_writes(method: str, host: str, reason: str) -> None:
    account = Account("acc", {"blob": f"https://{host}"}, Auth.KEY, "key")
    error = ServiceRefusal(Response(request(method), 403, "Forbidden", {}, b""))
    target = Target(account, parse("blob:site/a").address)
    assert denials.explain(error, "InsufficientAccountPermissions", target, "no").reason == reason


@cases(
    ("endpoint", "token", "address", "reason"),
    ("http://acc.blob.core.windows.net", "spr=https&sp=r&sr=b&sig=x", "blob:site/a", "sas_for_https"),
    ("https://acc.file.core.windows.net", "sp=r&sr=f&sig=x", "file:team/.azguard-1", "sas_of_one_file"),
)
def test_a_sas_is_not_for_another_protocol_or_file(endpoint: str, token: str, address: str, reason: str) -> None:
    target = Target(Account("acc", {address[:4]: endpoint}, Auth.SAS, token), parse(address).address)
    error = ServiceRefusal(Response(request(), 403, "Forbidden", {}, b""))
    assert denials.explain(error, "AuthenticationFailed", target, "no").reason == reason
