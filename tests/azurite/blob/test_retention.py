"""``azguard blob legal-hold`` and ``azguard blob immutability``, by a scripted service: the emulator has neither.

The headers are those of the REST reference.
"""

from pathlib import Path
from typing import NamedTuple

from tests.support import scripted_service
from tests.support.cases import cases
from tests.support.cli_world import CliWorld, Ran
from tests.support.scripted_service import Answer, Service

ETAG, OTHER = '"0x8D6D4189B860AD9"', '"0x8D6D418B6C08663"'
VERSION = "2026-11-21T10:00:00.0000000Z"
Y2030, Y2031 = "Tue, 01 Jan 2030 00:00:00 GMT", "Wed, 01 Jan 2031 00:00:00 GMT"
HOLD, POLICY = ("blob", "legal-hold"), ("blob", "immutability")
SEEN = ("--etag", ETAG)
DONE, LOST = Answer(200), Answer(503, "ServerBusy")


def shown(
    etag: str = ETAG, *, held: bool = False, until: str = "", mode: str = "unlocked", version: str = VERSION
) -> Answer:
    """Return the properties of a version of a blob."""
    policy = {"x-ms-immutability-policy-until-date": until, "x-ms-immutability-policy-mode": mode} if until else {}
    known = {"x-ms-version-id": version} if version else {}
    base = {"ETag": etag, "Last-Modified": "Thu, 09 May 2019 00:52:27 GMT", "x-ms-blob-type": "BlockBlob"}
    return Answer(200, headers={**base, **known, **policy, **({"x-ms-legal-hold": "true"} if held else {})})


def run(root: Path, words: tuple[str, ...], *script: Answer) -> tuple[Ran, Service]:
    with scripted_service.running(*script) as service:
        cli = CliWorld(root, service.connection_string)
        return cli.call(*words[:3], "site/a", *words[3:], "--timeout", "3s", "-o", "json"), service


FREE, HELD = shown(), shown(held=True)
UNTIL_2030, UNTIL_2031, LOCKED = shown(until=Y2030), shown(until=Y2031), shown(until=Y2030, mode="Locked")


class Sent(NamedTuple):
    """What a change sends: its method, what its query says beside the version, and its own headers."""

    method: str
    comp: str
    hold: str | None = None
    until: str | None = None
    mode: str | None = None


@cases(
    ("words", "before", "sent", "told"),
    ((*HOLD, "set"), FREE, Sent("PUT", "legalhold", "true"), (True, None, None)),
    ((*HOLD, "clear"), HELD, Sent("PUT", "legalhold", "false"), (False, None, None)),
    ((*POLICY, "set", "2031-01-01"), FREE, Sent("PUT", "immutabilityPolicies", None, Y2031, "Unlocked"),
     (False, "2031-01-01T00:00:00Z", "unlocked")),
    ((*POLICY, "set", "2030-01-01", "--shorten"), UNTIL_2031,
     Sent("PUT", "immutabilityPolicies", None, Y2030, "Unlocked"), (False, "2030-01-01T00:00:00Z", "unlocked")),
    ((*POLICY, "set", "2031-01-01", "--policy-mode", "Locked", "--cannot-be-undone"), UNTIL_2030,
     Sent("PUT", "immutabilityPolicies", None, Y2031, "Locked"), (False, "2031-01-01T00:00:00Z", "locked")),
    # It stays locked without a word of it.
    ((*POLICY, "set", "2031-01-01", "--cannot-be-undone"), LOCKED,
     Sent("PUT", "immutabilityPolicies", None, Y2031, "Locked"), (False, "2031-01-01T00:00:00Z", "locked")),
    ((*POLICY, "clear"), UNTIL_2030, Sent("DELETE", "immutabilityPolicies"), (False, None, None)),
)  # fmt: skip
def test_a_change_names_the_version_that_was_seen(
    tmp_path: Path, words: tuple[str, ...], before: Answer, sent: Sent, told: tuple[object, ...]
) -> None:
    ran, service = run(tmp_path, (*words, *SEEN), before, DONE)
    method, headers = service.asked[1]
    names = ("x-ms-legal-hold", "x-ms-immutability-policy-until-date", "x-ms-immutability-policy-mode")
    comp = service.paths[1].partition("?comp=")[2].partition("&")[0]
    assert Sent(method, comp, *map(headers.get, names)) == sent
    assert service.paths[1].endswith("versionid=2026-11-21T10%3A00%3A00.0000000Z")
    found = ran.json
    assert (found["legal_hold"], found["immutable_until"], found["policy_mode"]) == told
    assert (found["guard"], found["etag"], found["version_id"], found["outcome"]) == (
        "version",
        ETAG,
        VERSION,
        "committed",
    )


@cases(
    ("words", "before"),
    ((*HOLD, "set"), HELD),
    ((*HOLD, "clear"), UNTIL_2030),
    ((*POLICY, "set", "2030-01-01"), UNTIL_2030),
    ((*POLICY, "set", "2030-01-01", "--cannot-be-undone"), LOCKED),
    ((*POLICY, "clear"), HELD),
)
def test_what_is_so_already_is_not_sent(tmp_path: Path, words: tuple[str, ...], before: Answer) -> None:
    ran, service = run(tmp_path, (*words, *SEEN), before)
    assert (ran.code, ran.json["outcome"], ran.json["attempts"], len(service.asked)) == (0, "unchanged", 0, 1)


@cases(
    ("words", "before", "code", "hint"),
    ((*HOLD, "clear"), shown(OTHER, held=True), 42, "azguard blob show site/a"),
    ((*POLICY, "set", "2030-01-01"), UNTIL_2031, 42, "--shorten"),
    ((*POLICY, "set", "2030-01-01", "--policy-mode", "locked", "--cannot-be-undone"), UNTIL_2031, 42, "--shorten"),
    ((*POLICY, "set", "2031-01-01"), LOCKED, 42, "--cannot-be-undone"),
    ((*POLICY, "set", "2029-01-01", "--shorten"), LOCKED, 43, "azguard blob immutability show site/a"),
    ((*POLICY, "set", "2031-01-01", "--policy-mode", "unlocked"), LOCKED, 43, "azguard blob immutability show site/a"),
    ((*POLICY, "clear"), LOCKED, 43, "azguard blob immutability show site/a"),
    ((*HOLD, "set"), shown(version=""), 40, "--last-writer-wins"),
    ((*HOLD, "set"), Answer(404, "BlobNotFound"), 42, ""),
)
def test_what_could_take_protection_away_is_refused_before_it_is_sent(
    tmp_path: Path, words: tuple[str, ...], before: Answer, code: int, hint: str
) -> None:
    ran, service = run(tmp_path, (*words, *SEEN), before)
    assert (ran.code, {method for method, _ in service.asked}) == (code, {"HEAD"}), ran.err
    assert hint in (ran.error["hint"] or "")


@cases(
    ("words", "script", "code", "sent"),
    # It is there: by us, or by another to the same end.
    ((*HOLD, "set"), (FREE, LOST, HELD), 0, 1),
    ((*HOLD, "clear"), (HELD, LOST, FREE), 0, 1),
    ((*POLICY, "clear"), (UNTIL_2030, LOST, FREE), 0, 1),
    # What protects more is sent again.
    ((*HOLD, "set"), (FREE, LOST, FREE, DONE), 0, 2),
    ((*POLICY, "set", "2031-01-01"), (UNTIL_2030, LOST, UNTIL_2030, DONE), 0, 2),
    # What takes protection away is not.
    ((*HOLD, "clear"), (HELD, LOST, HELD), 74, 1),
    ((*POLICY, "clear"), (UNTIL_2030, LOST, UNTIL_2030), 74, 1),
    ((*POLICY, "set", "2030-01-01", "--shorten"), (UNTIL_2031, LOST, UNTIL_2031), 74, 1),
    # Another has prolonged it meanwhile: sent again it would be shortened.
    ((*POLICY, "set", "2030-01-01"), (FREE, LOST, UNTIL_2031), 74, 1),
    ((*HOLD, "set"), (FREE, LOST, Answer(404, "BlobNotFound")), 74, 1),
    # The second copy of a request that the network sent twice is refused.
    ((*POLICY, "clear"), (UNTIL_2030, Answer(409, "Conflict"), FREE), 0, 1),
    ((*POLICY, "set", "2031-01-01"), (FREE, Answer(409, "BlobImmutableDueToPolicy"), FREE), 43, 1),
)
def test_a_lost_answer_is_settled_by_what_is_there(
    tmp_path: Path, words: tuple[str, ...], script: tuple[Answer, ...], code: int, sent: int
) -> None:
    ran, service = run(tmp_path, (*words, *SEEN), *script)
    assert (ran.code, sum(method != "HEAD" for method, _ in service.asked)) == (code, sent), ran.err
    assert code != 74 or "azguard blob immutability show 'site/a?versionid=" in ran.error["hint"]


def test_a_version_or_the_current_one_is_kept_where_that_is_said(tmp_path: Path) -> None:
    with scripted_service.running(shown(version=""), DONE) as service:
        cli = CliWorld(tmp_path, service.connection_string)
        anyhow = cli.call("blob", "legal-hold", "set", "site/a", "--last-writer-wins")
    assert (anyhow.code, anyhow.json["guard"], service.paths[1]) == (0, "none", "/acc/site/a?comp=legalhold")
    with scripted_service.running(FREE, DONE) as service:
        cli = CliWorld(tmp_path, service.connection_string)
        named = cli.call("blob", "legal-hold", "set", f"site/a?versionid={VERSION}")
    assert (named.code, service.paths[1].count("versionid=")) == (0, 1)


def test_what_would_be_cleared_can_be_looked_at_first(tmp_path: Path) -> None:
    for words, before in (((*HOLD, "clear"), HELD), ((*POLICY, "clear"), UNTIL_2030)):
        ran, service = run(tmp_path, (*words, *SEEN, "--dry-run"), before)
        assert (ran.code, ran.json["outcome"], len(service.asked)) == (0, "would clear", 1)


def test_show_tells_all_that_keeps_a_blob(tmp_path: Path) -> None:
    for words in ((*HOLD, "show"), (*POLICY, "show")):
        found = run(tmp_path, words, shown(held=True, until=Y2030, mode="Locked"))[0].json
        told = [found[name] for name in ("version_id", "legal_hold", "immutable_until", "policy_mode")]
        assert told == [VERSION, True, "2030-01-01T00:00:00Z", "locked"]
