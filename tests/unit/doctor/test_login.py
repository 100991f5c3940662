"""What the doctor tells of a SAS and of a token."""

import base64
import json
import time
from types import SimpleNamespace
from typing import Any

from azguard.accounts.account import Account, Auth
from azguard.doctor import login
from azguard.doctor.stage import CheckStage
from tests.support.cases import cases

ENDPOINTS = {"blob": "https://contoso.blob.core.windows.net"}


class Stage(CheckStage):
    """A stage with an account alone."""

    def __init__(self, account: Account) -> None:
        """Ask for nothing."""
        self.account, self.names = account, {}


def check(auth: Auth, secret: str | None = None, **shared: Any) -> tuple[str, str]:
    """Return the verdict and the beginning of the detail, without names."""
    stage = Stage(Account("contoso", ENDPOINTS, auth, secret, shared))
    found = login.check_credentials(stage)
    return found.verdict, stage.hide_names(found.detail)


@cases(
    ("secret", "verdict", "words"),
    [
        ("sv=1&ss=b&srt=sco&sp=rwt&se=2099-01-01T00:00:00Z&sig=x", "holds", "a SAS: sp=rwt ss=b srt=sco; ends at 2099"),
        ("sv=1&sr=c&sp=r&se=2020-01-01&sig=x", "differs", "a SAS that ended at 2020-01-01T00:00:00Z: sp=r sr=c"),
        ("sv=1&sr=c&sp=r&st=2098-01-01&se=2099-01-01&sig=x", "differs", "a SAS that begins only at 2098"),
        ("sv=1&sr=c&si=deploy&sig=x", "holds", "a SAS: sr=c si=deploy; its stored access policy says when it ends"),
    ],
)
def test_a_sas_is_told_by_its_fields_and_never_by_its_signature(secret: str, verdict: str, words: str) -> None:
    found = check(Auth.SAS, secret)
    assert (found[0], found[1].startswith(words), "sig" in found[1]) == (verdict, True, False), found


def test_a_token_is_told_by_its_owner_whose_name_can_be_left_out() -> None:
    claims = base64.urlsafe_b64encode(json.dumps({"upn": "ann@contoso.example", "oid": "77"}).encode()).decode()
    token = SimpleNamespace(token=f"head.{claims.rstrip('=')}.signature", expires_on=time.time() + 3600)
    holder = SimpleNamespace(get_token_info=lambda scope: token, source="this machine", renewable=False)
    verdict, detail = check(Auth.LOGIN, login=holder)
    assert (verdict, detail.partition("; ends at")[0]) == ("holds", "a token from this machine; upn=USER oid=OBJECT")


@cases("token", ["opaque", "a.b.c", f"a.{base64.urlsafe_b64encode(b'[]').decode()}.c"])
def test_a_token_of_another_form_tells_nothing_of_its_owner(token: str) -> None:
    holder = SimpleNamespace(
        get_token_info=lambda scope: SimpleNamespace(token=token, expires_on=time.time() + 60),
        source="this machine",
        renewable=True,
    )
    assert check(Auth.LOGIN, login=holder)[1].startswith("a token from this machine; ends at")
