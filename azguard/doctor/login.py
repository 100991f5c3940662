"""Checks of the login: by what it is proved who asks, and until when."""

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from azguard.accounts.account import Auth, Sas, read_sas
from azguard.accounts.endpoints import STORAGE_SCOPE
from azguard.doctor.checks import Check, CheckFinding, differs, holds
from azguard.doctor.stage import CheckStage
from azguard.times import iso, span
from azguard.wire import identity

PART = "login"
# What a token says of its owner, for each a word that takes its place where names are not to be told.
_OWNERS = {"upn": "USER", "unique_name": "USER", "oid": "OBJECT", "appid": "APPLICATION", "tid": "TENANT"}
_PARTS_OF_TOKEN = 3


def list_checks() -> Iterator[Check]:
    """Yield the checks of the login."""
    yield Check(PART, "credentials", check_credentials)


def check_credentials(stage: CheckStage) -> CheckFinding:
    """Tell by what it is proved who asks, and until when that is accepted."""
    account = stage.account
    if account.auth is Auth.KEY:
        return holds("a key of the account, which allows everything and does not end")
    if account.auth is Auth.SAS:
        return _describe_sas(read_sas(account.secret or ""), datetime.now(UTC))
    if account.auth is Auth.LOGIN:
        return _describe_token(stage, datetime.now(UTC))
    return holds("none: only what is public can be read")


def _describe_sas(token: Sas, now: datetime) -> CheckFinding:
    fields = {
        "sp": token.permissions, "ss": token.services, "srt": token.resource_types, "sr": token.resource,
        "tn": token.table, "spr": token.protocols, "sip": token.addresses, "si": token.policy,
    }  # fmt: skip
    told = " ".join(f"{name}={value}" for name, value in fields.items() if value)
    if token.ends is None:
        return holds(f"a SAS: {told}; its stored access policy says when it ends")
    if token.ends <= now:
        return differs(f"a SAS that ended at {iso(token.ends)}: {told}")
    if token.starts is not None and token.starts > now:
        return differs(f"a SAS that begins only at {iso(token.starts)}: {told}")
    return holds(f"a SAS: {told}; ends at {iso(token.ends)}, in {span((token.ends - now).total_seconds())}")


def _describe_token(stage: CheckStage, now: datetime) -> CheckFinding:
    """Tell whose token a login has.

    Raises:
        LoginFailed: it has none.
    """
    login = identity.find_login(stage.account)
    found = login.get_token_info(STORAGE_SCOPE)
    ends = datetime.fromtimestamp(found.expires_on, UTC)
    claims = _read_claims(found.token)
    told = [f"{name}={claims[name]}" for name in _OWNERS if claims.get(name)]
    stage.names |= {str(claims[name]): word for name, word in _OWNERS.items() if claims.get(name)}
    renews = "renewed as needed" if login.renewable else "not renewed after that"
    until = f"ends at {iso(ends)}, in {span((ends - now).total_seconds())}, {renews}"
    return holds("; ".join([f"a token from {login.source}", *filter(None, [" ".join(told)]), until]))


def _read_claims(token: str) -> dict[str, Any]:
    """Return the claims of a token, unverified; empty if it is not a JWT."""
    parts = token.split(".")
    if len(parts) != _PARTS_OF_TOKEN:
        return {}
    try:
        found = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
