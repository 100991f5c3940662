"""``azguard edit`` against Azurite, with scripts as editors."""

import json
import os
import shlex
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from azure.storage.blob import BlobClient

from tests.support import forked
from tests.support.cli_world import CliWorld, Ran, command
from tests.support.emulator_world import until
from tests.support.terminal_world import Shell, shell


def azguard() -> str:
    """Return what an editor's script runs azguard by."""
    return shlex.join(forked.command())


@pytest.fixture
def name(cli: CliWorld) -> str:
    """Return a blob of JSON on one line."""
    name = f"{cli.container()}/config.json"
    assert cli.call("blob", "put", name, scope="setup", stdin=b'{"n": 1, "owner": "ops"}').code == 0
    return name


def editor(cli: CliWorld, script: str) -> dict[str, str]:
    """Return an environment in which an editor runs this script; ``$1`` is the file."""
    path = cli.file("editor.sh", f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return {"EDITOR": str(path), "VISUAL": ""}


def edit(cli: CliWorld, name: str, script: str, *words: str) -> Ran:
    address = name if ":" in name else f"blob:{name}"
    return cli.call("edit", address, "-o", "json", *words, env=editor(cli, script))


def content(cli: CliWorld, name: str) -> bytes:
    return cli.call("blob", "get", name, scope="reader").stdout


def files(cli: CliWorld) -> list[Path]:
    return [path for path in (cli.root / ".cache" / "kept").rglob("*") if path.is_file()]


def once(name: str, words: str) -> str:
    """Return a line of an editor's script: another writer's update, the first time only."""
    return f"[ -e done ] || {{ touch done; {azguard()} safe-update blob:{name} -o none --scope other {words}; }}"


# What is written


def test_what_the_editor_leaves_is_written(cli: CliWorld, name: str) -> None:
    ran = edit(cli, name, 'sed -i s/1/2/ "$1"')
    assert (ran.code, ran.json["outcome"], content(cli, name), files(cli)) == (
        0,
        "committed",
        b'{"n": 2, "owner": "ops"}',
        [],
    )


def test_the_words_of_the_editor_are_split_and_visual_comes_first(cli: CliWorld, name: str) -> None:
    env = {"VISUAL": "sed -i s/1/5/", "EDITOR": "false"}
    assert (cli.call("edit", f"blob:{name}", env=env).code, content(cli, name)) == (0, b'{"n": 5, "owner": "ops"}')


def test_what_the_editor_prints_is_no_result(cli: CliWorld, name: str) -> None:
    ran = cli.fork("edit", f"blob:{name}", "-o", "json", env=editor(cli, 'echo hello; sed -i s/1/2/ "$1"'))
    assert ran.json["outcome"] == "committed"


def test_metadata_is_edited_as_json(cli: CliWorld, name: str) -> None:
    ran = edit(cli, name, 'echo \'{"owner": "team"}\' > "$1"', "--metadata")
    found = cli.call("blob", "show", name).json["metadata"]
    assert (ran.code, found, content(cli, name)) == (0, {"owner": "team"}, b'{"n": 1, "owner": "ops"}')


def test_index_tags_and_the_metadata_of_a_container_are_edited_as_json(cli: CliWorld, name: str) -> None:
    site = name.partition("/")[0]
    tags = edit(cli, name, 'echo \'{"stage": "live"}\' > "$1"', "--tags")
    metadata = edit(cli, f"container:{site}", 'echo \'{"owner": "team"}\' > "$1"', "--metadata", "--allow-race")
    assert (tags.code, tags.json["guard"], cli.call("blob", "tags", "get", name).json["tags"]) == (
        0,
        "lease",
        {"stage": "live"},
    )
    assert (metadata.code, cli.call("container", "metadata", "get", site).json["metadata"]) == (0, {"owner": "team"})


def test_a_missing_blob_is_created_from_what_was_typed(cli: CliWorld, name: str) -> None:
    new = f"{name}.txt"
    missing = edit(cli, new, "true")
    made = edit(cli, new, 'echo typed > "$1"', "--create")
    assert (missing.code, made.json["created"], content(cli, new)) == (44, True, b"typed\n")


def test_a_key_of_another_change_opens_no_editor(cli: CliWorld, name: str) -> None:
    assert cli.call("safe-update", f"blob:{name}", "--set", "n=2", "--op-id", "run-71").code == 0
    ran = edit(cli, name, "touch opened", "--op-id", "run-71")
    taken = edit(cli, name, "touch opened", "--op-id", "run-71", "--op-id-any-change")
    assert (ran.code, ran.error["outcome"], taken.json["outcome"], (cli.root / "opened").exists()) == (
        45, "key_of_another_change", "applied_before", False,
    )  # fmt: skip


def test_an_edit_that_changed_nothing_is_done_under_its_key(cli: CliWorld, name: str) -> None:
    runs = [edit(cli, name, "touch opened", "--op-id", "run-71") for _ in range(2)]
    assert [each.json["outcome"] for each in runs] == ["unchanged", "applied_before"]


def test_it_works_inside_a_lease_and_is_kept_outside_of_it(cli: CliWorld, name: str) -> None:
    assert cli.call("lease", "acquire", f"blob:{name}").code == 0
    outside = edit(cli, name, 'sed -i s/1/2/ "$1"', "--scope", "other")
    inside = edit(cli, name, 'sed -i s/1/3/ "$1"', "--lease-id", "@held")
    assert (outside.code, Path(outside.error["kept"]).read_bytes()) == (49, b'{"n": 2, "owner": "ops"}')
    assert (inside.code, content(cli, name)) == (0, b'{"n": 3, "owner": "ops"}')


# Others


def test_members_that_others_changed_are_merged(cli: CliWorld, name: str) -> None:
    ran = edit(cli, name, f'sed -i s/1/2/ "$1"; {once(name, "--set-string owner=dev")}')
    assert (ran.code, json.loads(content(cli, name))) == (0, {"n": 2, "owner": "dev"})
    merged = ran.json["merged_with"]
    said = f"another writer wrote meanwhile ({merged['last_modified']}): your change is merged with theirs"
    assert (said in ran.err, ran.json["conflicts"], merged["etag"] != ran.json["etag"]) == (True, 0, True)


def test_the_editor_opens_on_both_changes_of_one_place(cli: CliWorld, name: str) -> None:
    # The second time the editor takes the sum of both.
    resolve = 'cp "$1" seen; echo \'{"n": 11}\' > "$1"; exit 0'
    script = f'grep -q "<<<<" "$1" && {{ {resolve}; }}; sed -i s/1/2/ "$1"; {once(name, "--set n=9")}'
    ran = edit(cli, name, script)
    assert (ran.code, ran.json["outcome"], json.loads(content(cli, name)), files(cli)) == (
        0,
        "committed",
        {"n": 11},
        [],
    )
    assert (cli.root / "seen").read_text() == (
        '<<<<<<< yours\n{"n": 2, "owner": "ops"}\n=======\n{"n": 9, "owner": "ops"}\n>>>>>>> theirs\n'
    )


def test_an_entity_is_json_whose_properties_are_merged(cli: CliWorld) -> None:
    entity = f"t{os.urandom(8).hex()}/eu/1"
    cli.call("table", "create", entity.split("/", maxsplit=1)[0])
    cli.call("entity", "insert", entity, "n:int64=1", "a=x", "b=y")
    other = f"{azguard()} safe-update entity:{entity} -o none --scope other --set-string b=z"
    ran = edit(cli, f"entity:{entity}", f'sed -i \'s/"a": "x"/"a": "X"/\' "$1"; {other}')
    found = cli.call("entity", "get", entity).json
    assert (ran.code, [found[each] for each in ("n", "n@odata.type", "a", "b")]) == (0, ["1", "Edm.Int64", "X", "z"])


# What must not be written


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ('echo no > "$1"', "the content was JSON, and this is not: line 1, column 1: Expecting value"),
        (': > "$1"', "the file is empty, and the content was not empty"),
        ('sed -i s/1/2/ "$1"; exit 3', "ended with status 3"),
        ('sed -i s/1/2/ "$1"; kill -TERM $$', "ended with status 143"),
    ],
)
def test_what_must_not_be_written_is_65_and_kept(cli: CliWorld, name: str, script: str, words: str) -> None:
    ran = edit(cli, name, script)
    kept = Path(ran.error["kept"])
    assert (ran.code, words in ran.error["message"], content(cli, name)) == (65, True, b'{"n": 1, "owner": "ops"}')
    assert (kept.exists(), kept.parent.stat().st_mode & 0o777, f"--resume {kept}" in ran.error["hint"]) == (
        True,
        0o700,
        True,
    )


def test_yaml_must_stay_yaml(cli: CliWorld, name: str) -> None:
    text = f"{name}.yaml"
    cli.call("blob", "put", text, scope="setup", stdin=b"a: 1\n")
    ran = edit(cli, text, 'echo "a: 2" >> "$1"')
    assert (ran.code, ran.error["message"]) == (
        65,
        "the content was YAML, and this is not: line 2: the key 'a' appears twice in one mapping",
    )
    assert edit(cli, text, 'echo "a: 2" >> "$1"', "--any-content").code == 0


# Which editor


def test_an_editor_that_needs_a_terminal_is_refused_without_one(offline: CliWorld) -> None:
    path = offline.file("vi", "#!/bin/sh\n")
    path.chmod(0o755)
    env = offline.environ(env={"EDITOR": str(path), "VISUAL": ""})
    ran = offline.begin("edit", "blob:site/x", env=env, start_new_session=True)
    _, err = ran.communicate(timeout=60)
    assert (ran.returncode, f"error: there is no terminal, so {path} was not started" in err.decode()) == (2, True)


# On a terminal, and killed


@pytest.fixture
def screen(cli: CliWorld) -> Iterator[Shell]:
    """Yield a shell on a terminal of its own."""
    with shell(cli.root, cli.environ()) as made:
        yield made


def begin(screen: Shell, cli: CliWorld, name: str, script: str) -> None:
    env = editor(cli, script)
    line = shlex.join(command("edit", f"blob:{name}"))
    screen.type(f"VISUAL= EDITOR={shlex.quote(env['EDITOR'])} {line}; echo status=$?\n")


def test_on_a_terminal_a_person_is_asked_to_mend_it(cli: CliWorld, name: str, screen: Shell) -> None:
    begin(screen, cli, name, 'grep -q no "$1" && { echo \'{"n": 7}\' > "$1"; exit 0; }; echo no > "$1"')
    screen.wait_for("open the editor again? [Y/n]")
    assert "the content was JSON, and this is not" in screen.shown
    screen.type("\n")
    screen.wait_for("status=0")
    assert content(cli, name).strip() == b'{"n": 7}'


def test_the_editor_has_the_terminal_and_ctrl_c(cli: CliWorld, name: str, screen: Shell) -> None:
    reads = "while ! read line; do :; done"
    script = f'trap "echo caught >> $0.caught" INT; touch "$0.begun"; {reads}; echo "{{\\"n\\": $line}}" > "$1"'
    begin(screen, cli, name, script)
    until((cli.root / "editor.sh.begun").exists)
    screen.type("\x03")
    until((cli.root / "editor.sh.caught").exists)
    screen.type("5\n")
    screen.wait_for("status=0")
    assert content(cli, name).strip() == b'{"n": 5}'


def test_azguard_that_is_killed_leaves_the_file(cli: CliWorld, name: str) -> None:
    script = 'echo \'{"n": 8}\' > "$1"; touch "$0.begun"; sleep 60'
    running = cli.begin("edit", f"blob:{name}", env=editor(cli, script), start_new_session=True)
    until((cli.root / "editor.sh.begun").exists)
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate(timeout=60)
    (kept,) = [path for path in files(cli) if path.suffix == ".json"]
    ran = edit(cli, name, "true", "--resume", str(kept))
    assert (ran.code, content(cli, name)) == (0, b'{"n": 8}\n')


@pytest.mark.parametrize("end", ["exit 1", "exit 0"])
def test_a_signal_to_azguard_ends_an_edit_and_keeps_what_was_typed(cli: CliWorld, name: str, end: str) -> None:
    """It is passed on to the editor, which may save and end with 0: that is not what was asked for."""
    script = f'echo \'{{"n": 8}}\' > "$1"; trap "{end}" TERM; touch "$0.begun"; while :; do sleep 0.05; done'
    running = cli.begin_fork("edit", f"blob:{name}", "-o", "json", env=editor(cli, script))
    until((cli.root / "editor.sh.begun").exists)
    running.send_signal(signal.SIGTERM)
    _, told = running.communicate(timeout=60)
    error = json.loads(told)["error"]
    assert (running.returncode, error["kind"], f"--resume {error['kept']}" in error["hint"]) == (
        143,
        "interrupted",
        True,
    )
    assert Path(error["kept"]).read_text() == '{"n": 8}\n'


def test_a_guard_by_lease_holds_none_while_the_person_types(cli: CliWorld, name: str) -> None:
    container, _, blob = name.partition("/")
    client = BlobClient.from_connection_string(cli.connection_string or "", container, blob)
    ran = edit(cli, name, f'{azguard()} lease show blob:{name} --query state -o tsv > state; sed -i s/1/2/ "$1"',
               "--guard", "lease")  # fmt: skip
    assert (ran.json["guard"], (cli.root / "state").read_text(), client.get_blob_properties().lease.state) == (
        "lease",
        "free\n",
        "available",
    )


def test_what_many_people_add_at_once_is_all_there_once(cli: CliWorld, name: str) -> None:
    """Each of six has the editor open at the same time: they wait for each other in it."""
    script = (
        'touch "in.$NAME"; while [ $(ls in.* | wc -l) -lt 6 ]; do sleep 0.05; done; '
        'sed -i "s/}$/, \\"$NAME\\": 1}/" "$1"'
    )
    env = editor(cli, script)
    names = [f"p{number}" for number in range(6)]
    with ThreadPoolExecutor(6) as pool:
        ran = list(pool.map(lambda each: cli.fork("edit", f"blob:{name}", env={**env, "NAME": each}), names))
    assert ([each.code for each in ran], json.loads(content(cli, name)), files(cli)) == (
        [0] * 6,
        {"n": 1, "owner": "ops", **dict.fromkeys(names, 1)},
        [],
    )
