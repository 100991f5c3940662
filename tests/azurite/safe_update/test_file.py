"""``azguard safe-update ADDRESS -- TOOL {}``: a tool that edits a file."""

import json
import os
import shlex
import signal
import sys
from pathlib import Path

import pytest

from tests.support import forked
from tests.support.cli_world import CliWorld, Ran
from tests.support.emulator_world import until

PYTHON = sys.executable
EDIT = "import json, sys; p = sys.argv[1]; c = json.load(open(p)); c['n'] += 1; json.dump(c, open(p, 'w'))"


@pytest.fixture
def name(cli: CliWorld) -> str:
    """Return a blob with one counter in it."""
    name = f"{cli.container()}/config.json"
    assert cli.call("blob", "put", name, scope="setup", stdin=b'{"n": 1}').code == 0
    return name


def update(cli: CliWorld, name: str, *words: str) -> Ran:
    return cli.call("safe-update", f"blob:{name}", "-o", "json", *words)


def content(cli: CliWorld, name: str) -> bytes:
    return cli.call("blob", "get", name, scope="reader").stdout


def test_what_the_tool_leaves_in_the_file_is_written(cli: CliWorld, name: str) -> None:
    ran = update(cli, name, "--", "sed", "-i", "s/1/2/", "{}")
    assert (ran.code, ran.json["outcome"], content(cli, name)) == (0, "committed", b'{"n": 2}')


def test_after_a_conflict_the_tool_gets_a_fresh_copy(cli: CliWorld, name: str) -> None:
    # The tool's first run lets another writer in.
    other = f"AZGUARD_CACHE_DIR=elsewhere {shlex.join(forked.command())} safe-update blob:{name} --set m=5 -o none"
    once = 'if [ ! -e "$0.done" ]; then touch "$0.done"; ' + other + "; fi; "
    script = cli.file("tool.sh", once + f'{PYTHON} -c "{EDIT}" "$1"')
    ran = update(cli, name, "--", "sh", str(script), "{}")
    assert (ran.code, ran.json["conflicts"], json.loads(content(cli, name))) == (0, 1, {"n": 2, "m": 5})


def test_the_output_goes_to_stderr_and_the_result_stays_alone_on_stdout(cli: CliWorld, name: str) -> None:
    ran = update(cli, name, "--", "sh", "-c", 'echo working; echo "{}" > "$1"', "sh", "{}")
    assert (ran.json["outcome"], ran.err, content(cli, name)) == ("committed", "working\n", b"{}\n")


def test_output_that_was_meant_as_the_content_is_warned_of(cli: CliWorld, name: str) -> None:
    ran = update(cli, name, "--", "sed", "s/1/2/", "{}")
    assert (ran.code, ran.json["outcome"], content(cli, name)) == (0, "unchanged", b'{"n": 1}')
    assert "warning: the command printed something and left the file {} as it was" in ran.err


def test_a_tool_that_writes_another_file_is_warned_of(cli: CliWorld, name: str) -> None:
    ran = update(cli, name, "--", "cp", "{}", "index.yaml")
    assert (ran.code, ran.json["outcome"]) == (0, "unchanged")
    assert "warning: the command did not write to its file {}, which is what is read back" in ran.err


def test_a_tool_that_finds_nothing_to_change_is_not_warned_of(cli: CliWorld, name: str) -> None:
    ran = update(cli, name, "--", "sed", "-i", "s/9/8/", "{}")
    assert (ran.code, ran.json["outcome"], ran.err) == (0, "unchanged", "")


def test_a_place_inside_a_word_is_left_alone(cli: CliWorld, name: str) -> None:
    ran = update(cli, name, "--", PYTHON, "-c", "a={}; print('{\"a\": 1}')")
    assert (ran.code, content(cli, name)) == (0, b'{"a": 1}\n')


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (': > "$1"', "the command left the file empty"),
        ('rm "$1"', "the file is gone"),
        ('echo no > "$1"', "the command put something else into the file"),
        ('ln -sf /etc/hostname "$1"', "the file is a symbolic link now"),
        ("exit 3", "exited with status 3"),
    ],
)
def test_what_must_not_be_written_is_65(cli: CliWorld, name: str, script: str, words: str) -> None:
    ran = update(cli, name, "--", "sh", "-c", script, "sh", "{}")
    assert (ran.code, content(cli, name)) == (65, b'{"n": 1}')
    assert words in ran.error["message"]


def test_an_empty_file_is_written_if_that_is_meant(cli: CliWorld, name: str) -> None:
    ran = update(cli, name, "--allow-empty", "--", "truncate", "-s0", "{}")
    assert (ran.code, content(cli, name)) == (0, b"")


def test_a_dry_run_shows_what_the_tool_would_do(cli: CliWorld, name: str) -> None:
    ran = cli.call("safe-update", f"blob:{name}", "--dry-run", "--", "sed", "-i", "s/1/2/", "{}")
    assert (ran.code, '+  "n": 2' in ran.out, content(cli, name)) == (0, True, b'{"n": 1}')


def test_a_missing_blob_is_created_from_what_the_tool_makes(cli: CliWorld, name: str) -> None:
    new = f"{name}.txt"
    ran = update(cli, new, "--create", "--", "sh", "-c", 'echo 1 >> "$1"', "sh", "{}")
    assert (ran.code, ran.json["created"], content(cli, new)) == (0, True, b"1\n")


def test_metadata_is_a_file_of_json(cli: CliWorld, name: str) -> None:
    script = 'case $1 in *.metadata.json) echo \'{"owner": "ops"}\' > "$1";; esac'
    ran = update(cli, name, "--metadata", "--", "sh", "-c", script, "sh", "{}")
    assert (ran.code, cli.call("blob", "show", name).json["metadata"]) == (0, {"owner": "ops"})


def test_an_entity_is_a_file_of_json(cli: CliWorld) -> None:
    table = f"t{os.urandom(8).hex()}"
    assert cli.call("table", "create", table).code == 0
    assert cli.call("entity", "insert", f"{table}/eu/1", "n:int32=1").code == 0
    ran = cli.call("safe-update", f"entity:{table}/eu/1", "--", PYTHON, "-c", EDIT, "{}")
    assert (ran.code, cli.call("entity", "get", f"{table}/eu/1").json["n"]) == (0, 2)


def test_content_that_could_not_be_written_is_kept(cli: CliWorld, name: str) -> None:
    assert cli.call("lease", "acquire", f"blob:{name}", scope="holder").code == 0
    ran = update(cli, name, "--", "sed", "-i", "s/1/2/", "{}")
    assert (ran.code, Path(ran.error["kept"]).read_bytes()) == (49, b'{"n": 2}')


def test_a_signal_leaves_nothing_behind(cli: CliWorld, name: str) -> None:
    temporary = cli.root / "tmp"
    temporary.mkdir()
    script = ("sh", "-c", 'echo > "$1.begun"; sleep 60', "sh", "{}")
    running = cli.begin_fork("safe-update", f"blob:{name}", "--", *script, env={"TMPDIR": str(temporary)})
    until(lambda: list(temporary.glob("*/*.begun")) != [])
    running.send_signal(signal.SIGTERM)
    running.communicate(timeout=60)
    assert (running.returncode, list(temporary.iterdir()), content(cli, name)) == (143, [], b'{"n": 1}')
