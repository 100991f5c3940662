"""Proxies between us and the service: never on the way to this machine, named when they refuse."""

from collections.abc import Mapping

import pytest

from azguard.accounts import endpoints
from tests.support.cases import cases
from tests.support.cli_world import CliWorld
from tests.support.raw_server import answering

_PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
_PASSWORD = "proxypassword"
_NOTHING_LISTENS = 9
_ACCOUNT = ("--account-name", "acc", "--account-key", "a2V5a2V5")
_HTTP = "http://acc.blob.example.com"


@pytest.fixture(autouse=True)
def _without_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _PROXY_VARIABLES:
        for spelling in (name, name.upper()):
            monkeypatch.delenv(spelling, raising=False)


def through(port: int | str, scheme: str = "http") -> str:
    return f"{scheme}://me:{_PASSWORD}@127.0.0.1:{port}"


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
@pytest.mark.parametrize("beside", [{}, {"NO_PROXY": "example.com"}])
def test_the_emulator_is_reached_past_every_proxy(cli: CliWorld, variable: str, beside: Mapping[str, str]) -> None:
    environ = {variable: through(_NOTHING_LISTENS), **beside}
    assert cli.call("container", "list", env=environ).code == 0


def test_tables_of_the_emulator_are_reached_past_every_proxy(cli: CliWorld) -> None:
    assert cli.call("table", "list", env={"HTTP_PROXY": through(_NOTHING_LISTENS)}).code == 0


def test_a_password_in_netrc_does_not_replace_our_signature(cli: CliWorld) -> None:
    netrc = cli.file("netrc", "machine 127.0.0.1 login me password secret\ndefault login me password secret\n")
    netrc.chmod(0o600)
    assert cli.call("container", "list", env={"NETRC": str(netrc)}).code == 0


@cases(
    ("host", "local"),
    ("127.0.0.1", True),
    ("127.8.9.10", True),
    ("::1", True),
    ("localhost", True),
    ("LOCALHOST.", True),
    ("acc.blob.localhost", True),
    ("128.0.0.1", False),
    ("localhost.example.com", False),
    ("acc.blob.core.windows.net", False),
    (None, False),
)
def test_loopback_is_known_by_every_spelling(host: str | None, local: bool) -> None:
    assert endpoints.is_loopback(host) is local


def test_a_real_account_goes_through_the_proxy_that_requests_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", through("3128"))
    monkeypatch.setenv("NO_PROXY", "past.blob.core.windows.net")
    found = [endpoints.find_proxy(f"https://{name}.blob.core.windows.net") for name in ("acc", "past")]
    assert found == [endpoints.NamedProxy("127.0.0.1:3128", "HTTPS_PROXY"), None]


@cases(
    ("said", "words"),
    (b"HTTP/1.1 407 Log in first\r\nContent-Length: 0\r\n\r\n", "wants a user and a password (407)"),
    (b"HTTP/1.1 403 By policy\r\nContent-Length: 0\r\n\r\n", "the way to acc.blob.core.windows.net: 403 By policy"),
)
@cases("command", ("show", "site/a"), ("put", "site/a", "--if-none-match", "*", "-f", "new"))
def test_a_refused_tunnel_is_the_proxys(offline: CliWorld, said: bytes, words: str, command: tuple[str, ...]) -> None:
    offline.file("new", "text")
    with answering(said) as port:
        ran = offline.call("blob", *command, *_ACCOUNT, env={"HTTPS_PROXY": through(port)})
    told = ran.err.splitlines()[0]
    assert (ran.code, f"the proxy 127.0.0.1:{port}" in told, words in told) == (53, True, True), ran.err
    assert _PASSWORD not in ran.err
    assert "--timeout" not in ran.err


@cases(
    ("command", "status", "code", "words"),
    (("show", "site/a"), b"407 Proxy Authentication Required", 53, "error: the proxy 127.0.0.1:{port} wants a user"),
    (("put", "site/a", "-f", "new"), b"407 Proxy Authentication Required", 53, "error: the proxy 127.0.0.1:{port} "),
    (("show", "site/a"), b"403 Forbidden", 53, "error: the proxy 127.0.0.1:{port} refused the way"),
    # What is not the service's own word proves nothing: an earlier copy may have come through.
    (("put", "site/a", "-f", "new"), b"403 Forbidden", 74, "  the proxy 127.0.0.1:{port} refused the way"),
)
def test_a_refusal_over_plain_http_is_the_proxys(
    offline: CliWorld, command: tuple[str, ...], status: bytes, code: int, words: str
) -> None:
    offline.file("new", "text")
    connection = f"BlobEndpoint={_HTTP};AccountName=acc;AccountKey=a2V5a2V5"
    with answering(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n") as port:
        ran = offline.call("blob", *command, "--connection-string", connection, env={"HTTP_PROXY": through(port)})
    assert (ran.code, words.format(port=port) in ran.err, _PASSWORD in ran.err) == (code, True, False), ran.err


@cases(
    ("proxy", "words"),
    (through(_NOTHING_LISTENS), "the proxy 127.0.0.1:9 does not answer: connection refused"),
    (f"http://me:{_PASSWORD}@no.such.invalid:1", "the proxy no.such.invalid:1 does not answer: its host name"),
    (f"http://me:{_PASSWORD}@host:port", "the proxy in HTTPS_PROXY is not a URL"),
    ("http://", "the proxy in HTTPS_PROXY is not a URL"),
)
def test_a_proxy_that_is_not_there_is_named(offline: CliWorld, proxy: str, words: str) -> None:
    ran = offline.call("blob", "show", "site/a", *_ACCOUNT, "--timeout", "1s", env={"HTTPS_PROXY": proxy})
    assert (ran.code, words in ran.err, "HTTPS_PROXY" in ran.err, _PASSWORD in ran.err) == (53, True, True, False), (
        ran.err
    )


def test_a_password_of_the_proxy_is_not_shown_by_debug(offline: CliWorld) -> None:
    for proxy in (through(_NOTHING_LISTENS), f"http://me:{_PASSWORD}@host:port"):
        ran = offline.call(
            "blob", "show", "site/a", *_ACCOUNT, "--debug", "--timeout", "1s", env={"HTTPS_PROXY": proxy}
        )
        assert (ran.code, _PASSWORD in ran.err) == (53, False)
