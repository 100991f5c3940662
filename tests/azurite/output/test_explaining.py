"""What a refusal says beyond the service's answer: both versions, one's own lease, and names that are near."""

import shlex
import uuid

import pytest

from tests.support import forked
from tests.support.cli_world import CliWorld, Ran
from tests.support.faultproxy import proxy

LEASE = "0f3c1111-2222-3333-4444-555566667777"


@pytest.fixture
def blob(cli: CliWorld) -> str:
    """Return a blob that this scope wrote."""
    name = f"{cli.container()}/config.json"
    assert cli.call("blob", "put", name, stdin=b'{"a": 1}').code == 0
    return name


def etag(cli: CliWorld, blob: str) -> str:
    return str(cli.call("blob", "show", blob).json["etag"])


# A read whose condition failed


@pytest.mark.parametrize("words", [("blob", "get"), ("blob", "show"), ("blob", "exists"), ("lease", "show")])
def test_a_read_whose_version_is_gone_says_what_to_type(cli: CliWorld, blob: str, words: tuple[str, ...]) -> None:
    address = f"blob:{blob}" if words[0] == "lease" else blob
    ran = cli.call(*words, address, "--if-match", '"0x1"', "-o", "json")
    current = etag(cli, blob)
    told = (ran.code, ran.out, ran.error["expected_etag"], ran.error["current_etag"])
    assert told == (42, "", '"0x1"', current)
    now, this = (line.split(": ", 1)[1] for line in ran.error["hint"].splitlines())
    assert (now, this) == (
        f"azguard {' '.join(words)} {address} -o json",
        f"azguard {' '.join(words)} {address} -o json --if-match {shlex.quote(current)}",
    )
    assert [cli.call(*shlex.split(line)[1:]).code for line in (now, this)] == [0, 0]


def test_people_are_told_both_versions_of_a_read(cli: CliWorld, blob: str) -> None:
    ran = cli.call("blob", "get", blob, "--if-match", "0x1")
    assert f'you have "0x1", it is now {etag(cli, blob)}' in ran.err
    ran = cli.call("blob", "get", blob, "--if-unmodified-since", "2020-01-01")
    assert (ran.code, f"it is now {etag(cli, blob)}" in ran.err, "you have" in ran.err) == (42, True, False)


def test_a_conditional_read_of_nothing_says_that_there_is_nothing(cli: CliWorld, blob: str) -> None:
    ran = cli.call("blob", "get", f"{blob}.not", "--if-match", "0x1", "-o", "json")
    assert (ran.code, ran.error["message"]) == (44, f"there is no blob {blob}.not")


def test_a_condition_that_holds_costs_no_further_request(cli: CliWorld, blob: str) -> None:
    current = etag(cli, blob)
    with proxy.running(cli.port, lambda _: proxy.Fault.NONE) as between:
        assert cli.through(between.port).call("blob", "get", blob, "--if-match", current).code == 0
    assert len(between.log) == 1


# One's own lease


WRITES = [
    (("blob", "put", "{blob}"), b"new"),
    (("blob", "delete", "{blob}"), b""),
    (("safe-update", "blob:{blob}", "--set", "a=2"), b""),
    (("safe-update", "blob:{blob}", "--", "sed", "s/1/2/"), b""),
]


@pytest.mark.parametrize(("words", "stdin"), WRITES)
@pytest.mark.parametrize("typed", [(), ("--lease-id", LEASE)])
def test_a_write_refused_by_ones_own_lease_says_so_and_the_hint_works(
    cli: CliWorld, blob: str, words: tuple[str, ...], stdin: bytes, typed: tuple[str, ...]
) -> None:
    assert cli.call("lease", "acquire", f"blob:{blob}").code == 0
    filled = [word.format(blob=blob) for word in words]
    position = filled.index("--") if "--" in filled else len(filled)
    filled[position:position] = [*typed, "-o", "json"]
    ran = cli.call(*filled, stdin=stdin)
    given = "another lease id was given" if typed else "no lease id was given"
    assert (ran.code, ran.error["message"]) == (49, f"{blob} is leased by this scope itself, and {given}")
    lead, _, line = ran.error["hint"].partition(": ")
    assert (lead, "--lease-id @held" in line) == ("that lease is your own", True)
    assert cli.call(*shlex.split(line)[1:], stdin=stdin).code == 0


def refused(cli: CliWorld, blob: str, scope: str = "test", **env: str) -> Ran:
    return cli.call("blob", "put", blob, "-o", "json", stdin=b"new", scope=scope, env=env)


def test_the_lease_of_another_scope_is_not_called_ones_own(cli: CliWorld, blob: str) -> None:
    assert cli.call("lease", "acquire", f"blob:{blob}", scope="other").code == 0
    ran = refused(cli, blob)
    assert (ran.code, "itself" in ran.error["message"], "@held" in ran.error["hint"]) == (49, False, False)


@pytest.mark.parametrize(
    "words",
    [
        ("blob", "put", "{blob}", "--last-writer-wins"),
        ("blob", "delete", "{blob}", "--last-writer-wins"),
        ("blob", "metadata", "set", "{blob}", "--metadata", "a=b", "--last-writer-wins"),
        ("blob", "put", "{blob}", "--last-writer-wins", "--lease-id", LEASE),
        ("safe-update", "blob:{blob}", "--set", "a=2"),
    ],
)
def test_a_write_refused_by_a_lease_names_its_holder_and_the_ways_to_go_on(
    cli: CliWorld, blob: str, words: tuple[str, ...]
) -> None:
    held = ("lease", "acquire", f"blob:{blob}", "--infinite", "--reason", "migration")
    assert cli.call(*held, scope="other").code == 0
    filled = [word.format(blob=blob) for word in words]
    with proxy.running(cli.port, lambda _: proxy.Fault.NONE) as between:
        told = cli.through(between.port).call(*filled, stdin=b"new")
    assert (told.code, "(migration)" in told.err, "  held by " in told.err) == (49, True, True), told.err
    ran = cli.call(*filled, "-o", "json", stdin=b"new")
    assert (ran.error["reason"], "@" in ran.error["holder"], ran.error["lease_state"]) == ("migration", True, "leased")
    lines = ran.error["hint"].splitlines()
    commands = [shlex.split(line[line.index("azguard ") :])[1:] for line in lines]
    assert commands == [["lease", "wait", f"blob:{blob}"], ["lease", "break", f"blob:{blob}"]]
    assert (lines[0].startswith("check the id, or "), cli.call(*commands[1], "--yes").code) == (
        "--lease-id" in words,
        0,
    )
    assert [cli.call(*commands[0]).code, cli.call(*filled, stdin=b"new").code == 0] == [0, "--lease-id" not in words]


def test_of_a_lease_without_a_record_no_holder_is_named(cli: CliWorld, blob: str) -> None:
    container = blob.partition("/")[0]
    for address, words in (
        (f"container:{container}", ("container", "delete", container, "--with-contents", "--last-writer-wins")),
        (f"blob:{blob}", ("blob", "delete", blob)),
    ):
        assert cli.call("lease", "acquire", address, scope="other").code == 0
        told = cli.call(*words)
        assert (told.code, "no record says who holds it" in told.err) == (49, True), told.err
        assert f"azguard lease break {address}" in told.err


def test_a_lease_that_is_lost_is_not_called_ones_own(cli: CliWorld, blob: str) -> None:
    assert cli.call("lease", "acquire", f"blob:{blob}").code == 0
    assert cli.call("lease", "break", f"blob:{blob}", "--yes", "--lease-break-period", "0", scope="other").code == 0
    assert cli.call("lease", "acquire", f"blob:{blob}", scope="other").code == 0
    for words in (("blob", "put", blob), ("safe-update", f"blob:{blob}", "--set", "a=2")):
        ran = cli.call(*words, "--lease-id", "@held", "-o", "json", stdin=b"new")
        assert (ran.code, "itself" in ran.error["message"]) == (49, False)


def test_acquiring_twice_says_who_was_first(cli: CliWorld, blob: str) -> None:
    assert cli.call("lease", "acquire", f"blob:{blob}").code == 0
    ran = cli.call("lease", "acquire", f"blob:{blob}", "-o", "json")
    assert (ran.code, ran.error["message"]) == (49, f"{blob} is leased already, by this scope itself")
    assert f"azguard lease renew blob:{blob}" in ran.error["hint"]
    assert cli.call("lease", "renew", f"blob:{blob}").code == 0


def test_the_lease_of_a_lock_run_around_is_ones_own(cli: CliWorld, blob: str) -> None:
    inside = forked.command("lease", "acquire", f"blob:{blob}", "-o", "json")
    ran = cli.fork("lock", "run", f"blob:{blob}", "--", *inside)
    assert (ran.code, "is leased already, by this scope itself" in ran.err) == (49, True), ran.err


def test_a_container_s_own_lease_is_named_too(cli: CliWorld) -> None:
    container = cli.container()
    assert cli.call("container", "show", container).code == 0
    assert cli.call("lease", "acquire", f"container:{container}").code == 0
    ran = cli.call("container", "delete", container, "--last-writer-wins", "-o", "json")
    assert (ran.code, "is leased by this scope itself" in ran.error["message"]) == (49, True), ran.err


@pytest.mark.parametrize(
    ("words", "way"),
    [
        (("safe-update", "blob:{blob}", "--wait", "1s", "--set", "a=2"), "that lease is your own: "),
        (("safe-update", "blob:{blob}", "--guard=lease", "--wait", "1s", "--set", "a=3"), "that lease is your own: "),
        (("lease", "acquire", "blob:{blob}", "--wait", "1s"), "release it first: "),
        (("lease", "acquire", "{url}", "--wait", "1s"), "release it first: "),
        (("lease", "wait", "blob:{blob}", "--wait", "1s"), "release it first: "),
        (("lock", "run", "blob:{blob}", "--no-wait", "--", "true"), "release it first: "),
    ],
)
def test_waiting_for_ones_own_lease_is_called_vain(cli: CliWorld, blob: str, words: tuple[str, ...], way: str) -> None:
    assert cli.call("lease", "acquire", f"blob:{blob}").code == 0
    url = f"http://127.0.0.1:{cli.port}/devstoreaccount1/{blob}"
    named = [word.format(blob=blob, url=url) for word in words]
    ran = cli.call(*named)
    said = f"error: {blob} is leased by this scope itself, and would not become free by waiting; nothing was done"
    hint = next(line for line in ran.err.splitlines() if line.startswith("hint: "))
    assert (ran.code, said in ran.err.splitlines(), hint.startswith(f"hint: {way}azguard ")) == (75, True, True)
    line = hint.removeprefix(f"hint: {way}")
    assert (url in line, "--wait" in line) == (url in named, False)
    assert cli.call(*shlex.split(line)[1:]).code == 0


@pytest.mark.parametrize(
    "words", [("lock", "run", "{lock}", "--no-wait", "--", "true"), ("lease", "acquire", "{lock}")]
)
def test_the_lease_of_a_lock_run_beside_is_not_to_be_released(cli: CliWorld, blob: str, words: tuple[str, ...]) -> None:
    beside = forked.command(*[word.format(lock=f"blob:{blob}") for word in words])
    ran = cli.fork("lock", "run", f"blob:{blob}", "--", "env", "-u", "AZGUARD_LOCK", "-u", "AZGUARD_LEASE_ID", *beside)
    assert (ran.code in (49, 75), "itself" in ran.err, "lease release" in ran.err) == (True, False, False), ran.err


# Near names


@pytest.fixture
def names(cli: CliWorld) -> tuple[str, str]:
    """Return a container and a table that are there."""
    name = f"names{uuid.uuid4().hex[:8]}"
    assert cli.call("container", "create", name, scope="setup").code == 0
    assert cli.call("table", "create", name, scope="setup").code == 0
    return name, name


@pytest.mark.parametrize(
    "words",
    [
        ("blob", "get", "{near}/a"), ("blob", "list", "{near}"), ("blob", "put", "{near}/a"),
        ("container", "show", "{near}"), ("entity", "get", "{near}/p/r"), ("entity", "query", "{near}"),
        ("entity", "insert", "{near}/p/r", "n=1"), ("safe-update", "blob:{near}/a", "--set", "a=1", "--create"),
        ("lease", "acquire", "blob:{near}/a"),
    ],
)  # fmt: skip
def test_a_container_or_table_that_is_misspelt_is_answered_by_its_right_name(
    cli: CliWorld, names: tuple[str, str], words: tuple[str, ...]
) -> None:
    near = names[0].replace("names", "name")
    ran = cli.call(*[word.format(near=near) for word in words], "-o", "json", stdin=b"x", scope="fresh")
    first, *others = ran.error["hint"].splitlines()
    assert (ran.code, first) == (44, f"did you mean {names[0]}?"), ran.err
    noun = "table" if words[0] == "entity" else "container"
    assert [each.strip() for each in others] == [f"or create it: azguard {noun} create {near}"]


def test_what_is_in_the_cache_is_offered_without_a_request(cli: CliWorld, blob: str) -> None:
    container = blob.partition("/")[0]
    misspelt = container[1:]
    with proxy.running(cli.port, lambda _: proxy.Fault.NONE) as between:
        through = cli.through(between.port)
        assert through.call("blob", "get", blob).code == 0
        before = len(between.log)
        ran = through.call("blob", "get", f"{misspelt}/config.json", "-o", "json")
    assert (ran.error["hint"].splitlines()[0], len(between.log) - before) == (f"did you mean {container}?", 1)


def test_a_blob_that_is_misspelt_is_answered_by_its_right_name(cli: CliWorld, blob: str) -> None:
    inside = blob.replace("config", "in/a/folder")
    assert cli.call("blob", "put", inside, stdin=b"{}").code == 0
    for right, wrong in ((blob, blob.replace("config", "confg")), (inside, inside.replace("older", "lder"))):
        ran = cli.call("blob", "get", wrong, "-o", "json")
        assert (ran.code, ran.error["hint"]) == (44, f"did you mean {right}?")


def test_a_neighbour_is_no_misspelling(cli: CliWorld, blob: str) -> None:
    container = blob.partition("/")[0]
    assert cli.call("blob", "put", f"{container}/job-17.json", stdin=b"{}").code == 0
    ran = cli.call("blob", "get", f"{container}/job-18.json", "-o", "json")
    assert (ran.code, ran.error["hint"]) == (44, None)


def test_nothing_near_leaves_the_way_to_create_it(cli: CliWorld) -> None:
    name = f"q{uuid.uuid4().hex}"
    ran = cli.call("blob", "get", f"{name}/a", "-o", "json", scope="fresh")
    assert ran.error["hint"] == f"check the name: azguard container list; to create it: azguard container create {name}"


@pytest.mark.parametrize("words", [("-q",), ()])
def test_what_was_read_here_and_is_gone_costs_no_listing_and_quiet_neither(
    cli: CliWorld, blob: str, words: tuple[str, ...]
) -> None:
    missing = f"{blob}x" if words else blob
    assert cli.call("blob", "delete", blob, "--last-writer-wins", scope="other").code == 0
    with proxy.running(cli.port, lambda _: proxy.Fault.NONE) as between:
        # The scope has read it under this endpoint, too.
        through = cli.through(between.port)
        assert through.call("blob", "put", blob, "--last-writer-wins", stdin=b"1").code == 0
        assert through.call("blob", "delete", blob, "--last-writer-wins", scope="other").code == 0
        before = len(between.log)
        assert through.call("blob", "get", missing, *words).code == 44
    assert len(between.log) - before == 1
