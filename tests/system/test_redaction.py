"""The redactor takes the whole of a credential, and nothing of the words around it."""

import base64
import json
import shlex
import string
from urllib.parse import quote

from hypothesis import given
from hypothesis import strategies as st

from azguard.cli.redaction import find_secrets, mask_arguments, redact, redact_values
from tests.support.cases import cases

KEY = base64.b64encode(bytes(range(64))).decode()
JWT = "eyJhbGciOiJSUzI1NiJ9.eyJhdWQiOiJzdG9yYWdlIn0.c2lnbmF0dXJl-_x"
SIGNATURE = "x+Y/z0123456789abcdefghijklmnopqrstuvwxyzAB="
QUOTED = quote(SIGNATURE, safe="")


@cases(
    ("text", "expected"),
    ("there is no blob a (sig=abc) here", "there is no blob a (sig=***) here"),
    (f"https://h/c/b?sv=1&sig={QUOTED}&se=2 failed", "https://h/c/b?sv=1&sig=***&se=2 failed"),
    (f"?sig={SIGNATURE}", "?sig=***"),
    (f"see <https://h/c?sig={QUOTED}>.", "see <https://h/c?sig=***>."),
    (f"to https://h/c?sig={QUOTED}. Then", "to https://h/c?sig=***. Then"),
    (f"u=h%2Fc%3Fsv%3D1%26sig%3D{quote(QUOTED, safe='')}%26se%3D2 ok", "u=h%2Fc%3Fsv%3D1%26sig%3D***%26se%3D2 ok"),
    (f"AccountName=a;AccountKey={KEY};EndpointSuffix=x", "AccountName=a;AccountKey=***;EndpointSuffix=x"),
    ("accountkey=short, and more", "accountkey=***, and more"),
    (f"('AccountKey={KEY}')", "('AccountKey=***')"),
    ("BlobEndpoint=http://h;SharedAccessSignature=sv=1&sig=a%2Bb&se=2;X=1", "BlobEndpoint=http://h;SharedAccessSignature=***;X=1"),
    ("Authorization: Basic abc", "Authorization: ***"),
    ("Authorization: Basic abc\nHost: h", "Authorization: ***\nHost: h"),
    ('GET /\nAuthorization: Digest user="a", response="b"\nHost: h', "GET /\nAuthorization: ***\nHost: h"),
    ("curl -H 'Authorization: Basic abc' https://h", "curl -H 'Authorization: ***' https://h"),
    ("sent Authorization: SharedKey acc:abc= and failed", "sent Authorization: *** and failed"),
    ("{'Authorization': 'Bearer a b c', 'Host': 'h'}", "{'Authorization': '***', 'Host': 'h'}"),
    ('{\\"x-ms-authorization\\": \\"Bearer abc\\"}', '{\\"x-ms-authorization\\": \\"***\\"}'),
    ("Proxy-Authorization: Basic dTpw", "Proxy-Authorization: ***"),
    (f"used SharedKey acc:{SIGNATURE} for it", "used SharedKey *** for it"),
    (f"used Bearer {JWT}, then", "used Bearer ***, then"),
    ("used Basic dXNlcjpwYXNz for it", "used Basic *** for it"),
    (f"the token {JWT} ended", "the token *** ended"),
    (f"what is {KEY}?", "what is ***?"),
    ("http://user:p4ss@proxy:8080 refused", "http://user:***@proxy:8080 refused"),
    ('{"access_token": "abc", "n": 1}', '{"access_token": "***", "n": 1}'),
    ("client_secret=abc&grant_type=x", "client_secret=***&grant_type=x"),
)  # fmt: skip
def test_the_whole_value_goes_and_the_words_around_it_stay(text: str, expected: str) -> None:
    assert redact(text) == expected


@cases(
    "text",
    "design=large&sv=1",
    "Basic authentication is off",
    "Bearer authentication, or a key",
    'WWW-Authenticate: Bearer authorization_uri="https://login.example.com/x"',
    "az login, or use --account-key or --sas-token",
    "the SAS has no sig= in it",
    "add SharedAccessSignature= or AccountKey=",
    "https://h:10000/c and user@h",
    "AuthorizationFailure: no (AuthorizationPermissionMismatch)",
    'etag "0x8DC1234567890AB", md5 1B2M2Y8AsgTpgAmY7PhCfg==',
    "W/\"datetime'2026-11-21T10%3A00%3A00.0000000Z'\"",
)
def test_what_is_no_credential_stays(text: str) -> None:
    assert redact(text) == text


BASE64 = st.binary(min_size=1, max_size=80).map(lambda raw: base64.b64encode(raw).decode())
WORD = st.text(string.ascii_lowercase, min_size=1, max_size=8)
PROSE = st.lists(WORD, min_size=1, max_size=5).map(" ".join)
TOKEN = st.text(string.ascii_letters + string.digits + "-_", min_size=1, max_size=80)
# Where a credential stands: each takes a value and encloses it in what must stay.
PLACES = [
    ("https://h/c?sv=1&sig={}&se=2", BASE64.map(lambda text: quote(text, safe=""))),
    ("https://h/c?sig={}", BASE64),
    ("(https://h/c?sig={})", BASE64),
    ("'u=%3Fsv%3D1%26sig%3D{}%26se%3D2'", BASE64.map(lambda text: quote(quote(text, safe=""), safe=""))),
    ("AccountKey={};EndpointSuffix=x", BASE64),
    ('"AccountKey={}"', BASE64),
    ('{{"account_key": "{}"}}', BASE64),
    ("{{'x-ms-encryption-key': '{}'}}", BASE64),
    ("'x-ms-encryption-key: {}'", BASE64),
    ('"encryption_key": "{}"', BASE64),
    ("AccountName=a;SharedAccessSignature={};X=1", BASE64.map(lambda text: f"sv=1&sig={quote(text, safe='')}")),
    ("'Authorization: {}'", BASE64.map(lambda text: f"Basic {text}")),
    ("{{'Authorization': '{}'}}", BASE64.map(lambda text: f"SharedKey acc:{text}")),
    ("\nAuthorization: {}\n", TOKEN.map(lambda text: f"Unknown {text}")),
    ("http://user:{}@proxy:80/", TOKEN),
    ("SharedKey {},", BASE64.map(lambda text: f"acc:{text}")),
    ("{}", st.binary(min_size=64, max_size=64).map(lambda raw: base64.b64encode(raw).decode())),
]


@st.composite
def told(draw: st.DrawFn) -> tuple[str, str]:
    """Return a text with a few credentials in it, and what is to be left of it."""
    text = expected = draw(PROSE)
    for _ in range(draw(st.integers(1, 3))):
        place, values = draw(st.sampled_from(PLACES))
        between = draw(st.sampled_from([" ", "\n", ", "])) + draw(PROSE) + " "
        text += " " + place.format(draw(values)) + between
        expected += " " + place.format("***") + between
    return text, expected


@given(told())
def test_of_any_text_the_values_go_and_everything_else_stays(pair: tuple[str, str]) -> None:
    text, expected = pair
    assert redact(text) == expected


@given(told())
def test_redacting_twice_is_redacting_once(pair: tuple[str, str]) -> None:
    once = redact(pair[0])
    assert redact(once) == once


@given(st.text())
def test_any_text_at_all_is_taken(text: str) -> None:
    assert redact(redact(text)) == redact(text)


@given(told(), st.integers())
def test_json_stays_the_same_json(pair: tuple[str, str], number: int) -> None:
    value = {"error": {"message": pair[0], "list": [pair[0], number], "none": None}}
    expected = {"error": {"message": pair[1], "list": [pair[1], number], "none": None}}
    assert json.loads(json.dumps(redact_values(value))) == expected


@given(BASE64.filter(lambda text: len(text) >= 16), PROSE, st.sampled_from(["{}", "key({})", "x{}y", "a={}&b"]))
def test_a_secret_that_was_handed_over_goes_in_each_spelling(secret: str, prose: str, place: str) -> None:
    secrets = find_secrets({"account_key": secret}, {})
    for spelling in (secret, quote(secret, safe="")):
        assert redact(f"{prose} {place.format(spelling)}", secrets) == f"{prose} {place.format('***')}"


def test_secrets_come_from_options_environment_and_the_words_typed() -> None:
    environ = {"AZURE_STORAGE_CONNECTION_STRING": f"AccountName=a;AccountKey={KEY};X=1"}
    argv = [
        "blob",
        "get",
        f"https://h/c/b?sig={QUOTED}",
        "--sas-token",
        "sv=1&sig=0123456789ab",
        "--account-key=wrong-key-typed",
    ]
    found = find_secrets({"sas_token": "sv=2&sig=abcdefghijkl\n"}, environ, argv)
    assert {KEY, SIGNATURE, QUOTED, "0123456789ab", "abcdefghijkl", "sv=2&sig=abcdefghijkl", "wrong-key-typed"} <= set(
        found
    )


def test_what_names_a_file_and_what_is_short_is_no_secret() -> None:
    assert find_secrets({"account_key": "@/run/secrets/key-of-account"}, {"AZURE_STORAGE_KEY": "short"}) == []


def test_a_secret_of_bytes_that_are_not_text_is_one_too() -> None:
    assert find_secrets({}, {"AZURE_CLIENT_SECRET": "twelve-bytes\udcff"}) == ["twelve-bytes%FF", "twelve-bytes\udcff"]


def test_a_key_in_the_place_of_an_address_is_secret_in_each_part_of_it() -> None:
    parts = ["16VtPPz5pE3HFmkazauhuKkSZGVDxpd6WkOsJ1PPEBcxIgcRE70SBTarzmZmmaWMCRr", "6mqHFEr", "cerMUkRy", "Q=="]
    found = find_secrets({}, {}, ["blob", "get", "/".join(parts)])
    assert parts[0] in found
    # Whole, it goes first: else its short parts would stay.
    assert redact(f"no file {'/'.join(parts)}", found) == "no file ***"


@cases(
    ("typed", "masked"),
    ("deploy --password hunter2 --fast", "deploy --password *** --fast"),
    ("deploy --password=hunter2", "deploy --password=***"),
    ("deploy --db-passwd hunter2 -api-key hunter2", "deploy --db-passwd *** -api-key ***"),
    ("deploy --TOKEN hunter2", "deploy --TOKEN ***"),
    ("env TOKEN=hunter2 DB_PASSWORD=hunter2 deploy", "env TOKEN=*** DB_PASSWORD=*** deploy"),
    ("docker run -e API_KEY=hunter2 -eTOKEN=hunter2 x", "docker run -e API_KEY=*** -eTOKEN=*** x"),
    ("docker build --build-arg=NPM_TOKEN=hunter2 .", "docker build --build-arg=NPM_TOKEN=*** ."),
    ("java -Dkeystore.password=hunter2 -jar a.jar", "java -Dkeystore.password=*** -jar a.jar"),
    ("curl -H 'X-Api-Key: hunter2' https://a/b", "curl -H 'X-Api-Key: ***' https://a/b"),
    ('curl -d \'{"password": "hunter2"}\' a', "curl -d '{\"password\": ***}' a"),
    ("sh -c 'deploy --token hunter2; echo done'", "sh -c 'deploy --token ***; echo done'"),
    ("sh -c 'echo a; SECRET=\"hunter 2\" deploy'", "sh -c 'echo a; SECRET=*** deploy'"),
    ("sh -c 'TOKEN=hunter2 deploy'", "sh -c TOKEN=***"),
    ("deploy --use-token --fast", "deploy --use-token --fast"),
    ("deploy site/keys --name monkeys keyvault://a", "deploy site/keys --name monkeys keyvault://a"),
    ("deploy -p hunter2 hunter3", "deploy -p hunter2 hunter3"),
)
def test_arguments_that_are_named_like_a_secret_are_masked(typed: str, masked: str) -> None:
    assert mask_arguments(shlex.split(typed)) == shlex.split(masked)
