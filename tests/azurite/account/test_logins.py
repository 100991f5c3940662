"""Logins that last by a CI job's own OIDC token; credentials that end are warned of, and named as the cause."""

import os
import re
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import azure.identity
import pytest
from azure.identity import CredentialUnavailableError
from azure.storage.blob import AccountSasPermissions, ResourceTypes, generate_account_sas

from azguard.accounts.account import Account, Auth
from azguard.accounts.endpoints import CLOUDS, EMULATOR_KEY, EMULATOR_NAME, find_cloud
from azguard.emulators import azurite_install
from azguard.errors import LoginFailed
from azguard.wire import logins
from azguard.wire.logins import Login
from azguard.wire.signing import find_login
from tests.support import forked, login_world
from tests.support.cases import cases
from tests.support.cli_world import CliWorld
from tests.support.login_world import LoginWorld


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory, azurite_script: Path) -> Iterator[LoginWorld]:
    folder = tmp_path_factory.mktemp("login")
    certificate = login_world.certify(folder)
    node = [azurite_install.find_node(os.environ).program]
    with (
        login_world.issuing(certificate) as issuer,
        login_world.azurite(folder, azurite_script, certificate, node) as at,
    ):
        yield LoginWorld(issuer, at, certificate)


@pytest.fixture
def world(servers: LoginWorld) -> LoginWorld:
    servers.issuer.assertions.clear()
    servers.issuer.exchanged.clear()
    servers.issuer.audiences.clear()
    servers.issuer.asked.clear()
    servers.issuer.seconds, servers.issuer.refusal = 3600, 200
    return servers


@pytest.mark.parametrize("system", ["github", "pipelines"])
def test_a_job_logs_in_with_its_own_token(offline: CliWorld, world: LoginWorld, system: str) -> None:
    ran = offline.fork("container", "list", *world.account, env=getattr(world, system))
    assert (ran.code, world.issuer.exchanged) == (0, ["assertion-0"]), ran.err


def test_github_is_asked_for_the_audience_of_the_cloud(offline: CliWorld, world: LoginWorld) -> None:
    offline.fork("container", "list", *world.account, env=world.github)
    assert world.issuer.audiences == ["api://AzureADTokenExchange"]


_STRANGERS_TENANT = "44444444-4444-4444-4444-444444444444"
_CHALLENGE = "Bearer authorization_uri=https://login.microsoftonline.com/{}/oauth2/authorize resource_id={}"
_LOGGED_IN = [
    "blob show site/a", "blob get site/a", "blob put site/a -f a --last-writer-wins", "container list",
    "queue show work", "entity get Orders/eu/1", "entity delete Orders/eu/1 --last-writer-wins", "file show team/a",
    "safe-update blob:site/a --set a=1", "lock run a -- true",
]  # fmt: skip


@pytest.mark.parametrize(
    ("resource", "message"),
    [
        ("https://management.azure.com", f"of the tenant {_STRANGERS_TENANT} for https://management.azure.com"),
        ("https://storage.azure.com", f"asked for a token of the tenant {_STRANGERS_TENANT}"),
    ],
)
@pytest.mark.parametrize("words", _LOGGED_IN)
def test_a_login_is_given_to_no_stranger_that_asks_for_another_token(
    offline: CliWorld, world: LoginWorld, words: str, resource: str, message: str
) -> None:
    offline.file("a", "{}")
    challenge = _CHALLENGE.format(_STRANGERS_TENANT, resource)
    with login_world.challenging(world.certificate, challenge) as (endpoint, tokens):
        account = [word for kind in ("blob", "queue", "table", "file") for word in (f"--{kind}-endpoint", endpoint)]
        split = words.split(" -- ")
        typed = [*split[0].split(), "--auth-mode", "login", *account, *(("--", *split[1:]) if split[1:] else ())]
        ran = offline.fork(*typed, env=world.github)
    assert (ran.code, message in ran.err) == (41, True), ran.err
    assert (len(set(tokens)), set(world.issuer.asked)) == (
        1,
        {(login_world.TENANT, "https://storage.azure.com/.default")},
    )


@pytest.mark.parametrize("system", ["github", "pipelines"])
def test_work_longer_than_its_login_fetches_a_new_assertion(offline: CliWorld, world: LoginWorld, system: str) -> None:
    world.issuer.seconds = 7
    options = ("--lease-duration", "15s", "--grace", "2s", *world.account)
    ran = offline.fork("lock", "run", "blob:locks/long", *options, "--", "sleep", "12", env=getattr(world, system))
    assert ran.code == 0, ran.err
    assert world.issuer.exchanged == world.issuer.assertions
    assert len(world.issuer.exchanged) >= 2
    assert "warning" not in ran.err


def test_a_login_that_cannot_be_renewed_loses_the_lock(offline: CliWorld, world: LoginWorld, tmp_path: Path) -> None:
    world.issuer.seconds = 7
    (tmp_path / "assertion").write_text("handed-out-once")
    environ = {**world.trust, "CI": "true",
               "AZURE_CLIENT_ID": login_world.CLIENT, "AZURE_TENANT_ID": login_world.TENANT,
               "AZURE_FEDERATED_TOKEN_FILE": str(tmp_path / "assertion"),
               "AZURE_TOKEN_CREDENTIALS": "WorkloadIdentityCredential"}  # fmt: skip
    options = ("--lease-duration", "15s", "--grace", "2s", "--wait", "5s", *world.account)
    ran = offline.fork("lock", "run", "blob:locks/once", *options, "--", "sleep", "60", env=environ)
    assert ran.code == 77, ran.err
    assert re.search(
        r"^warning: the login's token ends at \S+Z, in \ds; this may last until \S+Z; ", ran.err, re.MULTILINE
    )
    assert re.search(r"the login's token ended at \S+Z, and no new one could be had from this machine: ", ran.err), (
        ran.err
    )
    assert ran.err.count("warning: the login") == 1


def test_a_sas_that_ends_is_warned_of_and_named_as_the_cause_of_a_lost_lock(cli: CliWorld) -> None:
    forked.server()  # its start shall take none of the time
    everything = AccountSasPermissions(read=True, write=True, delete=True, list=True, create=True)
    ends = datetime.now(UTC) + timedelta(seconds=15)
    of_all = ResourceTypes(service=True, container=True, object=True)
    sas = generate_account_sas(EMULATOR_NAME, EMULATOR_KEY, of_all, everything, ends)
    url = f"http://127.0.0.1:{cli.port}/{EMULATOR_NAME}/{cli.container()}/lock?{sas}"
    ran = cli.fork("lock", "run", url, "--lease-duration", "15s", "--grace", "2s", "--", "sleep", "60", timeout=90)
    told = ran.err.splitlines()
    assert ran.code == 77, ran.err
    assert re.match(r"warning: the SAS ends at \S+Z, in \d+s; this may last until \S+Z; make one", told[0]), ran.err
    assert re.search(r"the SAS ended at \S+Z \(se\); the service's clock says", ran.err), ran.err
    assert ("--timeout" in ran.err, re.findall("sig=([^&]+)", sas)[0] in ran.err) == (False, False)


@pytest.mark.parametrize(("timeout", "warned"), [((), False), (("--timeout", "10m"), True)])
def test_other_commands_warn_of_a_sas_that_ends_before_their_timeout(
    cli: CliWorld, timeout: tuple[str, ...], warned: bool
) -> None:
    ends = datetime.now(UTC) + timedelta(minutes=5)
    of_all = ResourceTypes(service=True, container=True, object=True)
    sas = generate_account_sas(EMULATOR_NAME, EMULATOR_KEY, of_all, AccountSasPermissions(read=True, write=True), ends)
    cli.file("a", "{}")
    url = f"http://127.0.0.1:{cli.port}/{EMULATOR_NAME}/{cli.container()}/a?{sas}"
    codes = [cli.call("blob", "put", url, "-f", "a").code]
    told = [cli.call("blob", "show", url, *timeout), cli.call("safe-update", url, "--set", "a=1", *timeout)]
    codes += [each.code for each in told]
    assert codes == [0, 0, 0]
    assert ["warning: the SAS ends at" in each.err for each in told] == [warned, warned]


@pytest.mark.parametrize(
    ("refusal", "words"), [(403, "answered HTTP 403 without a token"), (500, "answered HTTP 500 without a token")]
)
def test_a_job_that_gets_no_token_is_told_so_without_its_secret(
    offline: CliWorld, world: LoginWorld, refusal: int, words: str
) -> None:
    world.issuer.refusal = refusal
    offline.file("a", "text")
    for command in (("show", "site/a", "--debug"), ("put", "site/a", "-f", "a", "--if-none-match", "*")):
        ran = offline.fork("blob", *command, *world.account, env=world.github)
        assert (ran.code, words in ran.err, "id-token: write" in ran.err) == (41, True, True), ran.err
        assert (login_world.REQUEST_TOKEN in ran.err, "--timeout" in ran.err) == (False, False)


@pytest.mark.parametrize("system", ["github", "pipelines"])
def test_a_proxy_before_the_authority_is_named(offline: CliWorld, world: LoginWorld, system: str) -> None:
    environ = {**getattr(world, system), "AZURE_AUTHORITY_HOST": "https://login.example.com",
               "HTTPS_PROXY": "http://me:proxypassword@127.0.0.1:9"}  # fmt: skip
    ran = offline.fork("container", "list", *world.account, env=environ)
    told = ran.err.splitlines()[0]
    assert (ran.code, "the proxy 127.0.0.1:9 does not answer" in told) == (41, True), ran.err
    assert ("proxypassword" in ran.err, "HTTPS_PROXY" in ran.err) == (False, True)


def test_a_secret_of_a_service_principal_is_preferred_to_the_jobs_token(world: LoginWorld) -> None:
    chosen = logins.choose({**world.github, "AZURE_CLIENT_SECRET": "x"}, CLOUDS["core.windows.net"])
    assert chosen.source == "this machine"


@pytest.mark.parametrize(
    ("endpoint", "authority"),
    [
        ("https://acc.blob.core.chinacloudapi.cn", "login.chinacloudapi.cn"),
        ("https://acc.blob.core.usgovcloudapi.net", "login.microsoftonline.us"),
        ("https://acc.z12.blob.storage.azure.net", "login.microsoftonline.com"),
        ("https://data.example.com", "login.microsoftonline.com"),
    ],
)
def test_the_authority_is_that_of_the_endpoints_cloud(
    endpoint: str, authority: str, world: LoginWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AZURE_AUTHORITY_HOST", raising=False)
    job = {name: value for name, value in world.github.items() if name != "AZURE_AUTHORITY_HOST"}
    login = logins.choose(job, find_cloud(endpoint))
    assert login.credential._client._authority == f"https://{authority}"


@cases(
    ("environ", "named"),
    ({"AZURE_TOKEN_CREDENTIALS": "nonsense"}, "nonsense"),
    ({"AZURE_AUTHORITY_HOST": "http://nope"}, "http://nope"),
    (
        {"AZURE_CLIENT_ID": "x", "AZURE_TENANT_ID": "y", "AZURE_CLIENT_CERTIFICATE_PATH": "/nonexistent/key.pem"},
        "/nonexistent/key.pem: No such file or directory",
    ),
)
def test_a_malformed_variable_of_a_login_is_named(offline: CliWorld, environ: Mapping[str, str], named: str) -> None:
    account = ("--account-name", "contoso", "--auth-mode", "login", "-o", "json")
    for words in (("container", "list"), ("blob", "put", "site/a", "--last-writer-wins")):
        ran = offline.call(*words, *account, stdin=b"x", env=environ)
        # Never in doubt: nothing was sent.
        assert (ran.code, ran.error["kind"], named in ran.error["message"]) == (41, "unauthenticated", True)


class Silent:
    """The credential of a machine whose program for tokens says nothing for as long as it is waited for."""

    waited: ClassVar[list[float]] = []

    def __init__(self, *, process_timeout: float, **settings: object) -> None:
        self._seconds = process_timeout

    def get_token_info(self, *scopes: str, options: object = None) -> None:
        self.waited.append(self._seconds)
        raise CredentialUnavailableError(message="Failed to invoke the Azure CLI")


def test_a_program_for_tokens_is_waited_for_once_and_no_longer_than_timeout_says(
    offline: CliWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(azure.identity, "DefaultAzureCredential", Silent)
    monkeypatch.setattr(Silent, "waited", [])
    update = ("safe-update", "blob:site/a", "--append", "x")
    lines = (("container", "list"), ("container", "list", "--timeout", "5s"), (*update, "--timeout", "4s"),
             (*update, "--timeout", "100ms"), ("lock", "run", "a", "--", "true"))  # fmt: skip
    account = {"AZURE_STORAGE_ACCOUNT": "contoso", "AZURE_STORAGE_AUTH_MODE": "login"}
    codes = [offline.call(*each, env=account).code for each in lines]
    assert (codes, Silent.waited) == ([41] * 5, [10, 5, 4, 3, 10])


def test_no_login_is_made_before_it_is_needed() -> None:
    account = Account("acc", {"blob": "https://acc.blob.core.windows.net"}, Auth.LOGIN)
    account.watch_login(lambda ends, reason: None)
    assert "login" not in account.shared


class Credential:
    """A credential whose tokens live so many seconds; it fails when there are no more."""

    def __init__(self, *lives: float) -> None:
        self.lives, self.asked = list(lives), 0

    def get_token_info(self, *scopes: str, options: Mapping[str, Any] | None = None) -> Any:
        from azure.core.credentials import AccessTokenInfo

        self.asked += 1
        if not self.lives:
            raise ValueError("no more\n  AzureCliCredential: not logged in")
        return AccessTokenInfo(f"token-{self.asked}", int(time.time() + self.lives.pop(0)))


def test_a_token_with_time_left_is_fetched_once_for_all_clients() -> None:
    credential = Credential(3600)
    login = Login(credential, "here", None, "log in", renewable=True)
    assert ([login.get_token_info(STORAGE).token for _ in range(3)], credential.asked) == (["token-1"] * 3, 1)


STORAGE = "https://storage.azure.com/.default"


@cases(
    ("foreign", "scope", "reason"),
    (None, STORAGE, None),
    (None, "https://storage.azure.com//.default", None),
    (None, "https://storage.azure.cn/.default", None),
    (None, "https://management.azure.com/.default", "token_for_another_service"),
    (None, "https://storage.azure.com.evil.example/.default", "token_for_another_service"),
    ("https://data.contoso.com", STORAGE, "tenant_named_by_stranger"),
    ("https://data.contoso.com", "https://vault.azure.net/.default", "token_for_another_service"),
)
def test_only_azures_own_hosts_name_a_tenant_of_theirs(foreign: str | None, scope: str, reason: str | None) -> None:
    credential = Credential(3600, 3600)
    login = Login(credential, "here", None, "log in", renewable=True, foreign_endpoint=foreign)
    login.get_token_info(STORAGE)
    try:
        found = login.get_token_info(scope, options={"tenant_id": "t"}).token
    except LoginFailed as error:
        found = error.reason
    assert (found, credential.asked) == ((reason, 1) if reason else ("token-2", 2))


def test_a_tenant_that_was_named_once_is_asked_from_then_on() -> None:
    credential = Credential(3600, 3600)
    login = Login(credential, "here", None, "log in", renewable=True)
    tokens = [login.get_token_info(STORAGE, options=each).token for each in ({}, {"tenant_id": "t"}, {})]
    assert tokens == ["token-1", "token-2", "token-2"]


@cases(
    ("endpoint", "trusts", "foreign"),
    ("https://acc.blob.core.windows.net", False, False),
    ("https://acc-secondary.blob.core.windows.net", False, False),
    ("https://acc.privatelink.blob.core.usgovcloudapi.net", False, False),
    ("https://acc.z01.blob.storage.azure.net", False, False),
    ("https://acc.blob.core.windows.net.evil.example", False, True),
    ("https://evilblob.core.windows.net", False, True),
    ("https://data.contoso.com", False, True),
    ("https://data.contoso.com", True, False),
)
def test_an_endpoint_is_azures_own_by_its_host_or_is_confirmed(endpoint: str, trusts: bool, foreign: bool) -> None:
    account = Account("acc", {"blob": endpoint}, Auth.LOGIN, trusts_endpoints=trusts)
    assert find_login(account).foreign_endpoint == (endpoint if foreign else None)


def test_a_token_that_is_about_to_end_serves_while_no_new_one_can_be_had() -> None:
    login = Login(Credential(100), "here", None, "log in", renewable=True)
    assert [login.get_token_info(STORAGE).token for _ in range(2)] == ["token-1", "token-1"]


def test_without_any_token_the_error_says_where_it_was_looked_for() -> None:
    with pytest.raises(LoginFailed) as caught:
        Login(Credential(), "here", None, "log in", renewable=True).get_token_info(STORAGE)
    assert (caught.value.message, caught.value.detail, caught.value.reason) == (
        "no login could be had from here: no more",
        ("AzureCliCredential: not logged in",),
        "log in",
    )
