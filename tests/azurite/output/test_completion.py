"""Shell completion: what is offered, and how a shell asks for it."""

import shlex
import shutil
import subprocess
import sys
from unittest.mock import patch

import pytest

from azguard.cli import completers
from tests.support import forked, queue_world, table_world
from tests.support.cases import cases
from tests.support.cli_world import CliWorld


def offered(cli: CliWorld, line: str, seconds: float = 60.0, **environ: str) -> list[str]:
    # A busy machine is no fault.
    with patch.object(completers, "SECONDS", seconds):
        ran = cli.call(env={"_AZGUARD_COMPLETE": "fish", "_AZGUARD_LINE": line, **environ})
    assert (ran.code, ran.err) == (0, "")
    return [each.partition("\t")[0] for each in ran.out.splitlines()]


@cases(
    ("line", "some"),
    ("azguard ", ["safe-update", "blob", "container", "completion"]),
    ("azguard bl", ["blob"]),
    ("azguard blob ", ["get", "put", "show", "exists", "list", "delete"]),
    ("azguard -o json blob g", ["get"]),
    ("azguard blob put x --if-m", ["--if-match", "--if-modified-since"]),
    ("azguard blob put x --tier ", ["Hot", "Cool", "Cold", "Archive"]),
    ("azguard blob put x --tier C", ["Cool", "Cold"]),
    ("azguard blob put x -o ", ["json", "table", "tsv", "yaml", "none"]),
    ("azguard blob put x --output=t", ["--output=table", "--output=tsv"]),
    ("azguard blob delete x --delete-snapshots ", ["include", "only"]),
    ("azguard message get x --encoding ", ["text", "base64", "raw"]),
    ("azguard lease ", ["acquire", "renew", "change", "release", "break", "show", "list", "wait"]),
    ("azguard lease release ", ["blob:", "container:"]),
    ("azguard status ", ["blob:", "container:", "table:", "entity:"]),
    ("azguard table ", ["create", "list", "delete", "acl"]),
    ("azguard table acl ", ["get", "set"]),
    ("azguard entity q", ["query"]),
    ("azguard cache forget b", ["blob:"]),
    ("azguard help co", ["container", "completion", "conditions"]),
    ("azguard help table ", ["create", "list", "delete", "acl"]),
    ("azguard help table acl ", ["get", "set"]),
    ("azguard help status ", []),
    ("azguard help conditions ", []),
    ("azguard completion ", ["bash", "zsh", "fish", "powershell"]),
)
def test_commands_options_and_their_values_are_offered(offline: CliWorld, line: str, some: list[str]) -> None:
    found = offered(offline, line)
    assert [each for each in found if each in some] == some
    if not line.endswith("azguard "):
        assert all(each.startswith(line.rpartition(" ")[2]) for each in found)


@cases(
    "line",
    "", "azguard blob get x -f ", "azguard blob get x -f co", "azguard blob put x --content-type ",
    "azguard blob get x -- ", "azguard nosuch ", "azguard blob get x extra ", "azguard queue:w",
    "azguard status queue:", "azguard blob get 'unfinished", "azguard file put x --attributes ",
    "azguard lock hold x --until ",
)  # fmt: skip
def test_nothing_is_offered_where_files_or_nothing_belong(offline: CliWorld, line: str) -> None:
    assert [each for each in offered(offline, line) if line.split()[1:2] not in ([], ["nosuch"])] == []


def test_options_that_are_not_honoured_are_not_offered(offline: CliWorld) -> None:
    conditions = (
        "--if-match",
        "--if-none-match",
        "--if-modified-since",
        "--etag",
        "--last-writer-wins",
        "--allow-race",
    )
    assert set(offered(offline, "azguard container create x --")) & set(conditions) == set()
    assert set(conditions[:4]) <= set(offered(offline, "azguard blob put x/y --"))


@cases(
    ("line", "some", "others"),
    ("azguard blob put a b -r --", {"--jobs", "--tier"}, {"--content-md5", "--file", "--recursive"}),
    ("azguard blob put a -f x --", {"--metadata"}, {"--recursive", "--file"}),
    ("azguard blob put a --metadata x=y --", {"--metadata"}, set()),
    ("azguard lock run a --no-wait --", {"--shared"}, {"--wait", "--no-wait"}),
    ("azguard lock run a --wait=5s --", {"--shared"}, {"--wait", "--no-wait"}),
    ("azguard -o json blob show a --", {"--query"}, set()),
)  # fmt: skip
def test_what_the_line_excludes_is_not_offered(offline: CliWorld, line: str, some: set[str], others: set[str]) -> None:
    found = set(offered(offline, line))
    assert (some - found, others & found) == (set(), set())


def test_containers_and_blobs_are_offered_level_by_level(cli: CliWorld) -> None:
    site = cli.container()
    for name in ("config.json", "a b.txt", "logs/1", "logs/2"):
        cli.call("blob", "put", f"{site}/{name}", stdin=b"x")
    assert [
        offered(cli, f"azguard container show {site[:15]}"),
        offered(cli, f"azguard blob get {site[:15]}"),
        offered(cli, f"azguard blob get {site}/"),
        offered(cli, f"azguard blob get {site}/logs/"),
        offered(cli, f"azguard safe-update blob:{site}/co"),
        offered(cli, f"azguard status container:{site[:15]}"),
        offered(cli, f"azguard lease acquire blob:{site}/co"),
        offered(cli, f"azguard lease list {site[:15]}"),
    ] == [
        [site],
        [f"{site}/"],
        [f"{site}/logs/", f"{site}/a b.txt", f"{site}/config.json"],
        [f"{site}/logs/1", f"{site}/logs/2"],
        [f"blob:{site}/config.json"],
        [f"container:{site}"],
        [f"blob:{site}/config.json"],
        [site],
    ]


def test_both_ends_of_a_copy_and_the_snapshots_of_a_blob_are_offered(cli: CliWorld) -> None:
    site = cli.container()
    cli.call("blob", "put", f"{site}/config.json", stdin=b"x")
    kept = cli.call("blob", "snapshot", f"{site}/config.json").json["snapshot"]
    assert [
        offered(cli, f"azguard blob copy {site}/co"),
        offered(cli, f"azguard blob copy {site}/copy --source {site}/co"),
        offered(cli, f"azguard blob restore {site}/config.json --from "),
    ] == [[f"{site}/config.json"], [f"{site}/config.json"], [f"snapshot={kept}"]]


def test_tables_are_offered(cli: CliWorld) -> None:
    table = table_world.table(cli)
    assert [
        offered(cli, f"azguard table delete {table[:15]}"),
        offered(cli, f"azguard table acl get {table[:15]}"),
        offered(cli, f"azguard entity query {table[:15]}"),
        offered(cli, f"azguard entity get {table[:15]}"),
        offered(cli, f"azguard status entity:{table[:15]}"),
        offered(cli, f"azguard entity get {table}/"),
        offered(cli, f"azguard lease acquire table:{table[:15]}"),
    ] == [[table], [table], [table], [f"{table}/"], [f"entity:{table}/"], [], []]


def test_the_account_options_on_the_line_are_used(cli: CliWorld) -> None:
    site = cli.container()
    anonymous = CliWorld(cli.root)
    anonymous.call("profile", "set", "here", "--connection-string", str(cli.connection_string))
    assert offered(anonymous, f"azguard container show --profile here {site}") == [site]
    assert offered(anonymous, "azguard container show --profile ") == ["here"]
    assert offered(anonymous, f"azguard container show {site}") == []


def test_the_version_that_was_read_is_offered_for_conditions(cli: CliWorld) -> None:
    name = f"{cli.container()}/config.json"
    etag = cli.call("blob", "put", name, stdin=b"x").json["etag"].strip('"')
    assert [
        offered(cli, f"azguard blob put {name} --etag "),
        offered(cli, f"azguard blob put {name} --if-match=0x"),
        offered(cli, f"azguard blob put --etag 0x --scope other {name} --etag "),
        offered(cli, f"azguard blob put --scope other {name} --etag "),
        offered(cli, "azguard blob put --etag "),
    ] == [["@last", etag], [f"--if-match={etag}"], ["@last"], ["@last"], ["@last"]]


def test_the_version_of_an_entity_is_offered_whole(cli: CliWorld) -> None:
    entity = f"{table_world.table(cli)}/p/r"
    etag = cli.call("entity", "insert", entity, "n=1").json["etag"]
    assert offered(cli, f"azguard entity delete {entity} --etag ") == ["@last", etag]


def test_the_receipt_that_this_scope_got_is_offered(cli: CliWorld) -> None:
    jobs = queue_world.queue(cli, "work")
    (got,) = cli.call("message", "get", jobs).json
    line = f"azguard message delete {jobs}/{got['id']} --pop-receipt "
    assert [offered(cli, line), offered(cli, f"azguard message delete --scope other {jobs}/1 --pop-receipt ")] == [
        ["@last", got["pop_receipt"]], ["@last"],
    ]  # fmt: skip


def test_locks_are_offered_by_their_bare_names(cli: CliWorld) -> None:
    container = cli.container()
    for name in ("deploy", "deploy-prod", "other", "a/b"):
        cli.call("blob", "put", f"{container}/{name}", stdin=b"x")
    line = f"azguard lock run --lock-container {container} "
    assert [
        offered(cli, f"{line}dep"),
        offered(cli, f"{line}deploy deploy-"),
        offered(cli, "azguard lock show oth", AZGUARD_LOCK_CONTAINER=container),
        offered(cli, f"azguard lock break {container}/de"),
        offered(cli, f"azguard safe-update {container}/ot"),
    ] == [
        ["deploy", "deploy-prod"],
        ["deploy-prod"],
        ["other"],
        [f"{container}/deploy", f"{container}/deploy-prod"],
        [f"{container}/other"],
    ]


@cases("before", "lock run a", "safe-update site/x", "-o json lock run a b", "emulator run")
def test_a_command_behind_two_dashes_is_left_to_the_shell(offline: CliWorld, before: str) -> None:
    assert offered(offline, f"azguard {before} -- ") == offered(offline, f"azguard {before} -- jq -") == ["--"]
    assert offered(offline, f"azguard {before} -- ", _AZGUARD_COMPLETE="powershell") == []


def test_profiles_are_offered(offline: CliWorld) -> None:
    for name in ("prod", "test"):
        offline.call("profile", "set", name, "--emulator")
    assert offered(offline, "azguard profile show p") == ["prod"]


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:9/acc", "http://nosuch.invalid/acc"])
def test_a_service_that_does_not_answer_offers_nothing_and_says_nothing(offline: CliWorld, endpoint: str) -> None:
    text = f"AccountName=acc;AccountKey=a2V5;BlobEndpoint={endpoint}"
    assert offered(offline, "azguard container show ", 0.5, AZURE_STORAGE_CONNECTION_STRING=text) == []


def test_a_service_that_is_mute_is_given_up_on_in_time(offline: CliWorld) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as mute:
        text = f"AccountName=acc;AccountKey=a2V5;BlobEndpoint=http://127.0.0.1:{mute.getsockname()[1]}/acc"
        # Waiting for an answer would take longer than any test may.
        environ = {"AZURE_STORAGE_CONNECTION_STRING": text, "AZGUARD_WRITE_TIMEOUT": "600s"}
        assert offered(offline, "azguard blob get site/", 0.5, **environ) == []


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("line", "word", "reply"),
    [
        ("azguard contain", "contain", ["container"]),
        ("azguard blob get SITE/co", "SITE/co", ["SITE/config.json"]),
        ("azguard blob get SITE/a", "SITE/a", [r"SITE/a\ b.txt"]),
        ("azguard blob get 'SITE/a", "'SITE/a", ["SITE/a b.txt"]),
        ('azguard blob get "SITE/a b', "b", ["SITE/a b.txt"]),
        ("azguard status blob:'SITE/a ", "", ["SITE/a b.txt"]),
        ("azguard status blob:SITE/a\\ ", "SITE/a\\ ", [r"SITE/a\ b.txt"]),
        ("azguard safe-update blob:SITE/co", "SITE/co", ["SITE/config.json"]),  # bash splits at the colon
        ("azguard blob put x --output=js", "js", ["json"]),
        ("azguard blob get x -f ", "", []),
    ],
)
def test_bash_completes_a_line(cli: CliWorld, line: str, word: str, reply: list[str]) -> None:
    site = cli.container() if "SITE" in line else "none"
    for name in ("config.json", "a b.txt") if "SITE" in line else ():
        cli.call("blob", "put", f"{site}/{name}", stdin=b"x")
    script = f"""
        azguard() {{ {" ".join(forked.command())} "$@"; }}
        eval "$(azguard completion bash)"
        COMP_LINE={shlex.quote(line.replace("SITE", site))}
        COMP_POINT=${{#COMP_LINE}}
        _azguard azguard {shlex.quote(word.replace("SITE", site))} before 2>/dev/null
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    ran = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd=cli.root, env=cli.environ())
    assert [each for each in ran.stdout.splitlines() if each] == [each.replace("SITE", site) for each in reply]


# What a shell shows for a command that stands behind "--"; bash without the package bash-completion.
_BEHIND_DASHES = {
    "bash": """
        COMP_LINE='azguard lock run deploy -- azg_mi'; COMP_POINT=${#COMP_LINE}
        COMP_WORDS=(azguard lock run deploy -- azg_mi); COMP_CWORD=5
        azg_mine() { :; }; _azguard azguard azg_mi -- 2>/dev/null; echo "${COMPREPLY[@]}"
    """,
    "fish": "function azg_mine; end; complete -C 'azguard lock run deploy -- azg_mi'",
    # Completion itself needs a terminal: the script is to have loaded what it registers with.
    "zsh": "(( $+functions[compdef] )) && [[ $_comps[azguard] == _azguard ]] && echo azg_mine",
}


@cases("shell", *_BEHIND_DASHES)
def test_a_shell_completes_its_own_commands_behind_two_dashes(offline: CliWorld, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    (offline.root / "azguard").write_text(f'#!/bin/sh\nexec {" ".join(forked.command())} "$@"\n')
    (offline.root / "azguard").chmod(0o755)
    (offline.root / "script").write_text(offline.call("completion", shell).out)
    environ = {**offline.environ(), "HOME": str(offline.root)}
    environ["PATH"] = f"{offline.root}:{environ['PATH']}"
    # No configuration of this machine, such as one that has called compinit.
    quiet = {"bash": ["--norc", "--noprofile"], "fish": ["--no-config"], "zsh": ["-f"]}[shell]
    ran = subprocess.run(
        [shell, *quiet, "-c", f"source ./script\n{_BEHIND_DASHES[shell]}"],
        capture_output=True,
        text=True,
        cwd=offline.root,
        env=environ,
        check=False,
    )
    assert ran.stdout.split()[:1] == ["azg_mine"], ran.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_every_shell_has_a_script_that_it_can_read(offline: CliWorld, shell: str) -> None:
    ran = offline.call("completion", shell)
    assert (ran.code, "_AZGUARD_COMPLETE" in ran.out, "azguard" in ran.out) == (0, True, True)
    reader = {"bash": ["bash", "-n"], "zsh": ["zsh", "-n"], "fish": ["fish", "--no-execute"]}.get(shell)
    if reader and shutil.which(reader[0]):
        checked = subprocess.run(reader, input=ran.out, capture_output=True, text=True, check=False)
        assert (checked.returncode, checked.stderr) == (0, "")


def test_completing_is_only_imported_to_complete(offline: CliWorld) -> None:
    code = (
        "import sys; from azguard.cli.app import run; run(['blob', '--help']); "
        "print([name for name in sys.modules if 'completion' in name and 'azguard' in name])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=offline.environ())
    assert ran.stdout.splitlines()[-1] == "[]"
