"""Results: one shape in five formats on stdout, and nothing else there."""

import io
import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from azguard.blobs.listing import BlobShown
from azguard.cli.output import rendering
from azguard.cli.output.rendering import Layout
from azguard.documents import controls
from azguard.leases.own import OwnLeaseStatus
from azguard.leases.shown import BrokenLease, LeaseFacts
from tests.support import forked, places, table_world
from tests.support.cases import cases
from tests.support.cli_world import CliWorld
from tests.support.terminals import open_terminal

SCHEMAS = json.loads((places.SCHEMAS / "results.json").read_text())
ERROR = json.loads((places.SCHEMAS / "error.json").read_text())


@pytest.fixture
def blob(cli: CliWorld) -> str:
    address = f"{cli.container()}/a.json"
    assert cli.call("blob", "put", address, "--metadata", "owner=me", stdin=b"{}").code == 0
    return address


#: Results of commands that have several kinds of them, or that no other test reads: ``Ran.json`` checks what is read.
_RESULTS = """
blob put | blob put {blob}
blob write | blob set-properties {blob} --content-language en
tier set | blob tier {blob} --tier Cool
lease done | lease acquire blob:{blob}
lease list | lease list {site}
lease list --mine | lease list --mine
lock show | lock show blob:{blob}
lock list | lock list {site}
lease break | lock break blob:{blob} --yes --lease-break-period 0
lease show | lease wait blob:{blob}
blob put | blob put {blob}2 --fence 2
blob page | blob page put {blob}4 --create 1KiB -f page
blob page | blob page clear {blob}4 --length 512
blob copy | blob copy {site}/copy --source {blob}
blob snapshot | blob snapshot {site}/copy
blob copy | blob restore {site}/copy --from snapshot
blob restore --dry-run | blob restore {site}/copy --from snapshot --dry-run -o json
blob delete | blob delete {blob}2 --last-writer-wins
entity write | entity insert {table}/eu/1 n:int32=1
entity write | entity delete {table}/eu/1 --last-writer-wins
entity transaction --dry-run | entity transaction - --dry-run
entity transaction | entity transaction -
safe-update | safe-update blob:{blob} --increment n --snapshot-first --op-id run-1
safe-update | safe-update blob:{blob} --unset nosuch
safe-update | safe-update entity:{table}/eu/1 --create --increment n
safe-update --where | safe-update table:{table} --where 'n eq 1' --increment n
safe-update --dry-run | safe-update entity:{table}/eu/1 --increment n --dry-run -o json
safe-update --status | safe-update blob:{blob} --op-id run-1 --status
cache list | cache list
cache list kept | cache list --kept
cache ended | cache clear --kept --yes
exists | queue exists {queue}
exists | table exists {table}
queue list | queue list --prefix {queue}
queue move | queue move {queue}-poison
message put | message put {queue}-poison
queue poison list | queue poison list {queue}
message delete | message clear {queue} --last-writer-wins --with-contents
queue create | queue delete {queue} --last-writer-wins
"""


def test_every_kind_of_result_has_the_shape_that_scripts_rely_on(cli: CliWorld, blob: str) -> None:
    table, queue = table_world.table(cli), f"q{cli.container()}"
    cli.file("page", b"x" * 512)
    for name in (queue, f"{queue}-poison"):
        assert cli.call("queue", "create", name).code == 0
    line = json.dumps({"op": "insert", "address": f"{table}/eu/2", "entity": {"n": 1}}).encode()
    for row in _RESULTS.strip().splitlines():
        kind, _, words = row.format(blob=blob, site=blob.partition("/")[0], table=table, queue=queue).partition(" | ")
        ran = cli.call(*shlex.split(words), stdin=line)
        assert ran.json, row
        schema = {"$defs": SCHEMAS["$defs"], "$ref": f"#/$defs/{kind}"}
        jsonschema.Draft202012Validator(schema).validate(ran.json)


def test_every_line_of_a_tree_has_the_shape_that_scripts_rely_on(cli: CliWorld, blob: str) -> None:
    site = blob.partition("/")[0]
    (cli.root / "dist").mkdir()
    cli.file("dist/a", "1")
    (cli.root / "dist/link").symlink_to("a")
    cases: list[tuple[str, ...]] = [
        ("blob", "put", "dist", f"{site}/v", "--recursive", "--dry-run"),
        ("blob", "put", "dist", f"{site}/v", "--recursive"),
        ("blob", "put", "dist", f"{site}/v", "--recursive", "--unchanged", "skip"),
        ("blob", "put", "dist", f"{site}/v", "--recursive", "--if-exists", "skip"),
        ("blob", "get", f"{site}/v", "back", "--recursive"),
        ("blob", "delete", site, "--recursive", "--scope", "other"),
        ("blob", "delete", site, "--recursive"),
    ]
    schema = {"$defs": SCHEMAS["$defs"], "$ref": "#/$defs/tree item"}
    told: set[str] = set()
    for words in cases:
        for line in map(json.loads, cli.call(*words).out.splitlines()):
            jsonschema.Draft202012Validator(schema).validate(line)
            told.add(line["outcome"])
    assert told == {"would create", "created", "skipped", "unchanged", "exists", "read", "failed", "deleted"}


def failures(cli: CliWorld, blob: str) -> list[tuple[int, tuple[str, ...]]]:
    site = blob.partition("/")[0]
    assert cli.call("blob", "put", f"{site}/fenced", "--fence", "2", stdin=b"2").code == 0
    return [
        (2, ("blob", "put", blob, "--etag", "")),
        (2, ("blob", "nosuch")),
        (34, ("blob", "get", blob, "--if-none-match", "@last")),
        (42, ("blob", "put", blob, "--etag", "0x1")),
        (42, ("blob", "delete", f"{site}/never")),
        (44, ("blob", "get", f"{site}/nosuch")),
        (45, ("container", "create", site)),
        (77, ("blob", "put", f"{site}/fenced", "--fence", "1")),
        (49, ("blob", "show", blob, "--lease-id", "0f3c1111-2222-3333-4444-555566667777")),
        (78, ("blob", "show", blob, "--profile", "nosuch")),
        (53, ("blob", "show", "abc/b", "--connection-string", "AccountName=a12;AccountKey=a2V5;BlobEndpoint=http://127.0.0.1:9",
              "--timeout", "0.1s")),
    ]  # fmt: skip


def test_every_error_has_the_shape_that_scripts_rely_on(cli: CliWorld, blob: str) -> None:
    for code, words in failures(cli, blob):
        ran = cli.call(*words, "-o", "json", stdin=b"new")
        assert (ran.code, ran.out) == (code, ""), words
        jsonschema.Draft202012Validator(ERROR).validate(json.loads(ran.err))
        assert ran.error["exit_code"] == code


@pytest.mark.parametrize("how", [(), ("-o", "table"), ("-o", "yaml"), ("-o", "tsv"), ("-o", "none")])
def test_errors_are_for_people_unless_json_was_asked_for(cli: CliWorld, blob: str, how: tuple[str, ...]) -> None:
    for code, words in failures(cli, blob):
        ran = cli.call(*words, *how, stdin=b"new")
        first, *others = ran.err.splitlines()
        assert (ran.code, ran.out, first.startswith("error: "), "{" in first, "Traceback" in ran.err) == (
            code, "", True, False, False,
        ), words  # fmt: skip
        assert all(line.startswith(("  ", "hint: ", "Usage")) for line in others)


def test_quiet_leaves_the_error_and_drops_the_hint(cli: CliWorld, blob: str) -> None:
    ran = cli.call("blob", "delete", f"{blob}x", "-q")
    assert ran.err == f"error: {blob}x was never read here, so no version guards this; nothing was done\n"


def test_debug_shows_where_an_error_came_from(cli: CliWorld, blob: str) -> None:
    ran = cli.call("blob", "show", f"{blob}x", "--debug", "-q")
    assert (ran.code, "Traceback" in ran.err, ran.err.splitlines()[-1]) == (
        44,
        True,
        f"error: there is no blob {blob}x",
    )


def test_the_same_result_in_every_format(cli: CliWorld, blob: str) -> None:
    show = ("blob", "show", blob)
    found = cli.call(*show, "-o", "json").json
    assert yaml.safe_load(cli.call(*show, "-o", "yaml").out) == found
    cells = cli.call(*show, "-o", "tsv").out.rstrip("\n").split("\t")
    assert (len(cells), cells[0], cells[-1]) == (len(found), f"blob:{blob}", '{"owner": "me"}')
    assert cli.call(*show, "-o", "none").out == ""
    assert "content length  2 bytes\n" in cli.call(*show, "-o", "table").out


@pytest.mark.parametrize(
    ("query", "format", "out"),
    [
        ("metadata.owner", "json", '"me"\n'),
        ("metadata.owner", "tsv", "me\n"),
        ("[content_length, name]", "tsv", "2\na.json\n"),
        ("[[content_length, deleted, snapshot]]", "tsv", "2\tfalse\t\n"),
        ("{n: name, size: content_length}", "json", '{\n  "n": "a.json",\n  "size": 2\n}\n'),
        ("nosuch", "json", "null\n"),
        ("nosuch", "tsv", "\n"),
        ("keys(metadata)", "yaml", "- owner\n"),
    ],
)
def test_a_query_picks_from_the_result(cli: CliWorld, blob: str, query: str, format: str, out: str) -> None:
    assert cli.call("blob", "show", blob, "--query", query, "-o", format).out == out


def test_a_list_is_queried_as_a_whole_and_printed_row_by_row(cli: CliWorld, blob: str) -> None:
    site = blob.partition("/")[0]
    cli.call("blob", "put", f"{site}/b", "--content-disposition", "a\\b", stdin=b"x")
    assert cli.call("blob", "list", site, "--query", "length(@)").out == "2\n"
    assert cli.call("blob", "list", site, "--query", "[].[name, content_disposition]", "-o", "tsv").out == (
        "a.json\t\nb\ta\\\\b\n"
    )
    assert [row.split("\t")[1] for row in cli.call("blob", "list", site, "-o", "tsv").out.splitlines()] == [
        "a.json", "b",
    ]  # fmt: skip
    assert cli.call("blob", "list", site, "--prefix", "zz").out == "[]\n"


@cases(
    "options",
    ("--query", ""), ("--query", "a["), ("--query", "nosuch(@)"), ("--query", "length(a, b)"), ("-o", ""),
     ("-o", "xml"), ("-o", "JSON"),
)  # fmt: skip
def test_a_bad_query_or_format_is_refused_before_all_else(cli: CliWorld, blob: str, options: tuple[str, ...]) -> None:
    before = cli.call("blob", "show", blob).json["etag"]
    ran = cli.call("blob", "put", blob, *options, stdin=b"new")
    assert (ran.code, ran.out, cli.call("blob", "show", blob).json["etag"]) == (2, "", before)


def on_a_terminal(cli: CliWorld, *words: str, **environ: str) -> tuple[int, str]:
    """Run azguard with a terminal of 80 columns as its three streams and return what it showed."""
    ours, theirs = open_terminal()
    screen = {"TERM": "xterm", "COLUMNS": "80", **environ}
    running = cli.begin_fork(*words, env=screen, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break  # Linux says so when the other side is closed
        if not piece:
            break
        shown += piece
    os.close(ours)
    return running.wait(), shown.decode().replace("\r\n", "\n")


def test_a_terminal_gets_a_panel_with_colours(cli: CliWorld, blob: str) -> None:
    code, shown = on_a_terminal(cli, "blob", "show", blob)
    assert (code, "\x1b[1mcontent length" in shown, "{" in shown) == (0, True, False)


@pytest.mark.parametrize(
    ("options", "reads_back"),
    [(("-o", "json"), json.loads), (("-o", "yaml"), yaml.safe_load), (("-o", "tsv"), None), (("-o", "table"), None)],
)
def test_what_would_drive_a_terminal_is_spelled_out_there_and_goes_through_a_pipe_as_it_is(
    cli: CliWorld, options: tuple[str, str], reads_back: Callable[[str], object] | None
) -> None:
    hostile = "a\x1b[2J\x9b2J\u202eb\U000e0041\x7f"
    row = f"{table_world.table(cli)}/p/r"
    assert cli.call("entity", "insert", row, f"note={hostile}").code == 0
    _, shown = on_a_terminal(cli, "entity", "get", row, *options, "--query", "[note]", "--no-color")
    assert controls.are_in(shown) is False
    assert r"\u202e" in shown
    if reads_back is not None:
        assert reads_back(shown) == [hostile]
        assert "\u202e" in cli.call("entity", "get", row, *options, "--query", "[note]").out


def test_errors_and_exports_cannot_drive_a_terminal(cli: CliWorld) -> None:
    name = f"{cli.container()}/a\u202eb"
    cli.call("blob", "put", name, stdin=b"1")
    for words in (("cache", "export"), ("blob", "get", f"{name}c", "-o", "json"), ("blob", "get", f"{name}c")):
        _, shown = on_a_terminal(cli, *words, "--no-color")
        assert (controls.are_in(shown), r"a\u202eb" in shown) == (False, True)
        piped = cli.call(*words)
        assert "\u202e" in piped.out + piped.err or words[-1] == f"{name}c"


def test_a_terminal_gets_one_line_for_a_write(cli: CliWorld, blob: str) -> None:
    code, shown = on_a_terminal(cli, "blob", "put", blob, "-f", "/dev/null", "--allow-empty", "--no-progress")
    assert (code, shown) == (0, f"\x1b[32m✓\x1b[0m updated {blob}: 2 → 0 bytes\n")


def test_a_terminal_is_told_which_key_an_increment_created(cli: CliWorld, blob: str) -> None:
    code, shown = on_a_terminal(cli, "safe-update", blob, "--increment", "hist", "--no-color")
    assert (code, shown) == (0, f"✓ updated {blob}: 2 → 11 bytes, created hist\n")


def test_a_terminal_is_told_how_long_the_content_was_before_an_update(cli: CliWorld, blob: str) -> None:
    code, shown = on_a_terminal(cli, "safe-update", f"blob:{blob}", "--append", "x", "--no-color")
    assert (code, shown) == (0, f"✓ updated {blob}: 2 → 3 bytes\n")


@pytest.mark.parametrize("options", [("-v",), ("-o", "table")])
def test_all_fields_of_a_write_are_behind_an_option(cli: CliWorld, blob: str, options: tuple[str, ...]) -> None:
    code, shown = on_a_terminal(cli, "blob", "delete", blob, *options)
    assert (code, "if-match" in shown) == (0, True)


def test_a_query_on_a_terminal_shows_what_it_picks(cli: CliWorld, blob: str) -> None:
    assert on_a_terminal(cli, "blob", "delete", blob, "--query", "guard") == (0, "if-match\n")


@pytest.mark.parametrize(("words", "environ"), [(("--no-color",), {}), ((), {"NO_COLOR": "1"}), ((), {"TERM": "dumb"})])
def test_no_color_means_no_colour(cli: CliWorld, blob: str, words: tuple[str, ...], environ: dict[str, str]) -> None:
    code, shown = on_a_terminal(cli, "blob", "show", blob, *words, **environ)
    assert (code, "\x1b[1m" in shown) == (0, False)


@pytest.mark.parametrize(
    ("command", "hint"),
    [("put", " name a file"), ("metadata set", " write --metadata KEY=VALUE; or name a file")],
)
def test_a_terminal_as_stdin_is_no_content(cli: CliWorld, blob: str, command: str, hint: str) -> None:
    code, shown = on_a_terminal(cli, "blob", *command.split(), blob)
    assert (code, shown.splitlines()[0]) == (2, "\x1b[1;31merror:\x1b[0m nothing to write: stdin is a terminal")
    assert hint in shown


BLOBS = Layout(BlobShown.COLUMNS)
ROWS = [
    {"address": f"blob:site/{name}", "name": name, "etag": '"0x8DC1234567890AB"', "content_length": 1234567,
     "last_modified": "2026-11-21T10:00:00Z", "content_type": "text/plain", "lease_state": "available", "metadata": {}}
    for name in ("a", "long/" * 20 + "b")
]  # fmt: skip


@cases(
    ("width", "columns"),
    (200, ["name", "content_length", "last_modified", "etag", "content_type"]),
    (80, ["name", "content_length", "last_modified", "content_type"]),
    (60, ["name", "content_length", "last_modified"]),
    (40, ["name", "content_length"]),
    (20, ["name"]),
)
def test_a_table_shows_the_columns_that_fit(width: int, columns: list[str]) -> None:
    assert rendering.fitting(ROWS, BLOBS, width) == columns


@pytest.mark.parametrize(("width", "fields"), [(50, ("snapshot",)), (80, ("snapshot", "version_id"))])
def test_the_ids_of_what_is_kept_are_shown_whole_and_a_time_to_the_second(
    monkeypatch: pytest.MonkeyPatch, width: int, fields: tuple[str, ...]
) -> None:
    moment = "2026-11-21T10:00:00.1234500Z"
    ids = dict.fromkeys(fields, moment)
    rows = [{**each, **ids, "last_modified": "2026-11-21T10:00:01.123456Z"} for each in ROWS]
    monkeypatch.setenv("COLUMNS", str(width))
    text = "\n".join(line for shown in (rows, rows[0]) for line in rendering.render(shown, BLOBS, color=False))
    assert (text.count(moment), ":01.1" in text) == (3 * len(ids), False), text


def test_a_pipe_gets_all_columns_and_whole_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("sys.stdout", io.StringIO())
    rows = [{**each, "name": f"{'long/' * 40}{each['name']}"} for each in ROWS]
    lines = rendering.render(rows, BLOBS, color=False)
    assert [line.split()[0] for line in lines if "long/" in line] == [each["name"] for each in rows]
    assert "etag" in lines[1]


def test_a_lease_is_shown_where_there_is_one() -> None:
    assert "lease_state" in rendering.fitting([{**ROWS[0], "lease_state": "leased"}, ROWS[1]], BLOBS, 200)


@cases(
    ("width", "columns"),
    (200, ["address", "scope", "until", "lease_id", "confirmed"]), (80, ["address", "lease_id", "confirmed"]),
     (60, ["address", "lease_id"]),
)  # fmt: skip
def test_a_lease_that_is_held_is_shown_with_the_id_to_release_it_by(width: int, columns: list[str]) -> None:
    held = {"address": "blob:site/a", "lease_id": "0" * 36, "confirmed": True, "duration": 60, "scope": "1",
            "until": "2026-11-21T10:00:00.123456Z"}  # fmt: skip
    assert rendering.fitting([held], Layout(OwnLeaseStatus.COLUMNS), width) == columns


def leased(clock: str) -> dict[str, object]:
    return {"address": "blob:tfstate/prod", "state": "held", "held_by": "alice@build1", "age": 10_800, "clock": clock,
            "owner": {"who": "alice", "pid": None}}  # fmt: skip


@pytest.mark.parametrize(
    ("clock", "columns"),
    [("service", ["address", "state", "holder", "age"]), ("holder", ["address", "state", "holder", "age", "clock"])],
)
def test_an_age_by_the_clock_of_its_holder_is_marked(
    capsys: pytest.CaptureFixture[str], clock: str, columns: list[str]
) -> None:
    rendering.show([leased(clock)], Layout(LeaseFacts.COLUMNS), color=False)
    shown = capsys.readouterr().out.split()
    assert (shown[: len(columns)], "3h" in shown) == (columns, True)


def test_what_holds_a_record_is_told_without_what_is_missing_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    rendering.show({"broken": leased("service")}, Layout(inner=BrokenLease.COLUMNS), color=False)
    assert "age 3h clock service owner who alice" in " ".join(capsys.readouterr().out.split())


def test_names_cannot_drive_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    rendering.show([{"name": "a\x1b[2Jb\x07"}], BLOBS, color=False)
    assert ("\x1b" in capsys.readouterr().out) is False


@pytest.mark.parametrize("words", [("blob", "list"), ("container", "list")])
def test_a_pipe_that_closes_ends_a_listing_quietly(cli: CliWorld, blob: str, words: tuple[str, ...]) -> None:
    site = [blob.partition("/")[0]] if words[0] == "blob" else []
    shell = f"{' '.join(forked.command(*words, *site))} | head -c 1; echo ${{PIPESTATUS[0]}}"
    ran = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, cwd=cli.root, env=cli.environ())
    assert (ran.stdout[0], ran.stderr, ran.stdout[1:].strip() in ("0", "141")) == ("[", "", True)


def test_a_pipe_that_closes_hides_no_write(cli: CliWorld, blob: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    words = forked.command("blob", "snapshot", blob)
    ran = subprocess.run(words, stdout=writer, stderr=subprocess.PIPE, text=True, cwd=cli.root, env=cli.environ())
    os.close(writer)
    told = ran.stderr.startswith("error: the operation is done, but its result cannot be written")
    assert (ran.returncode, told) == (73, True)


def test_a_closed_stderr_changes_nothing(cli: CliWorld, blob: str) -> None:
    ran = subprocess.run(
        f"{' '.join(forked.command('blob', 'show', blob + 'x'))} 2>&-", shell=True, capture_output=True, cwd=cli.root,
        env=cli.environ(), check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout) == (44, b"")


def spoil_nothing(folder: Path) -> None:
    """Leave the cache as it is."""


def spoil_with_garbage(folder: Path) -> None:
    (folder / "etags.db").write_bytes(b"no database" * 1000)


def spoil_with_a_file(folder: Path) -> None:
    for each in sorted(folder.rglob("*"), reverse=True):
        each.rmdir() if each.is_dir() else each.unlink()
    folder.rmdir()
    folder.write_text("a file where the folder should be")


@pytest.mark.parametrize(
    ("spoil", "warns"), [(spoil_nothing, False), (spoil_with_garbage, True), (spoil_with_a_file, True)]
)
def test_a_bad_cache_fails_nothing(cli: CliWorld, blob: str, spoil: Callable[[Path], None], warns: bool) -> None:
    spoil(cli.root / ".cache")
    ran = cli.fork("blob", "get", blob)
    assert (ran.code, ran.out, ran.err.startswith("warning: ")) == (0, "{}", warns)
    assert cli.fork("blob", "put", f"{blob}new", stdin=b"x").code == 0


def test_verbose_and_no_progress_are_taken_by_every_command(cli: CliWorld, blob: str) -> None:
    found: Any = cli.call("-v", "--no-progress", "blob", "show", blob, "-v").json
    assert found["name"] == "a.json"


@pytest.mark.parametrize(
    "words",
    [
        ("blob", "show", "{blob}"),
        ("blob", "get", "{blob}", "-f", "copy"),
        ("blob", "list", "{site}"),
        ("blob", "put", "{blob}", "--metadata", "a=b"),
        ("container", "show", "{site}"),
        ("lease", "show", "blob:{blob}"),
        ("lock", "list", "{site}"),
        ("safe-update", "blob:{blob}", "--append", "x"),
        ("status", "blob:{blob}"),
        ("table", "list"),
        ("lock", "run", "blob:{blob}lock", "--", "true"),
    ],
)
def test_verbose_tells_each_request_with_its_answer_and_time(cli: CliWorld, blob: str, words: tuple[str, ...]) -> None:
    cli.call("blob", "get", blob)
    site = blob.partition("/")[0]
    ran = cli.fork("-v", *(word.format(blob=blob, site=site) for word in words), stdin=b"new")
    told = re.findall(
        r"^ *\d+\.\d{3} s  (?:GET|HEAD|PUT|POST) http://\S+: [2-4]\d\d[ \w]* in \d+ ms$", ran.err, re.MULTILINE
    )
    assert (ran.code, bool(told)) == (0, True), ran.err


def test_verbose_tells_each_pause_before_a_request_is_made_again(cli: CliWorld) -> None:
    account = "AccountName=a12;AccountKey=a2V5;BlobEndpoint=http://127.0.0.1:9"
    ran = cli.call("blob", "show", "abc/b", "--connection-string", account, "--timeout", "0.4s", "-v")
    told = [line[11:] for line in ran.err.splitlines() if line.lstrip()[:1].isdigit()]
    assert told[0].startswith("HEAD http://127.0.0.1:9/abc/b: no answer after ")
    assert "waiting 0.10 s before the next request" in told


def test_a_terminal_is_told_which_lock_is_held(cli: CliWorld, blob: str) -> None:
    code, shown = on_a_terminal(cli, "lock", "run", f"blob:{blob}lock", "--", "echo", "done")
    assert (code, shown) == (0, f"holding {blob}lock (fence 1)\ndone\n")


def test_a_log_is_not_told_which_lock_is_held(cli: CliWorld, blob: str) -> None:
    ran = cli.fork("lock", "run", f"blob:{blob}lock", "--", "echo", "done")
    assert (ran.code, ran.out, ran.err) == (0, "done\n", "")
