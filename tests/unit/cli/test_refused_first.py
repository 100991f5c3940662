"""What is wrong with the command line is said before any request: exit status 2 promises that nothing was done."""

from tests.support.cases import cases
from tests.support.cli_world import CliWorld

# No server is there: what asks one ends with 53.
_NO_SERVER = "UseDevelopmentStorage=true;BlobEndpoint=http://127.0.0.1:9/devstoreaccount1"


@cases(
    "words",
    "blob get site/a",
    "blob show site/a",
    "safe-update site/a --increment n",
    "lock run a -- true",
    "queue list",
)
def test_an_empty_scope_is_refused_before_the_account_is_looked_for(offline: CliWorld, words: str) -> None:
    option = offline.call("--scope", "", *words.split())
    variable = offline.call(*words.split(), env={"AZGUARD_SCOPE": ""})
    assert [(ran.code, ran.err.partition("\n")[0]) for ran in (option, variable)] == [
        (2, "error: --scope is empty"),
        (2, "error: AZGUARD_SCOPE is empty"),
    ]


@cases(
    ("words", "how"),
    ("blob delete site/a", "azguard blob get site/a -f FILE"),
    ("file delete team/a", "azguard file get team/a -f FILE"),
    ("file resize team/a --size 5", "azguard file get team/a -f FILE"),
    ("entity delete Orders/eu/1", "azguard entity get Orders/eu/1"),
)
def test_what_was_never_read_is_refused_with_three_ways_out(offline: CliWorld, words: str, how: str) -> None:
    ran = offline.call(*words.split(), env={"AZURE_STORAGE_CONNECTION_STRING": _NO_SERVER})
    hint = f"hint: read it first: {how}; or name the version you mean: --etag ETAG; or say --last-writer-wins\n"
    assert (ran.code, ran.err.partition("\n")[2]) == (42, hint)
