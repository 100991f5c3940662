"""Results about shares, directories and files: the shapes that scripts rely on."""

import json
from pathlib import Path

import jsonschema

from tests.support import files_world, places
from tests.support.cli_world import CliWorld
from tests.support.smb_emulator import SmbEmulator, open_file

SCHEMAS = json.loads((places.SCHEMAS / "results.json").read_text())


#: Results of commands that have several kinds of them, or that no other test reads: ``Ran.json`` checks what is read.
_RESULTS = """
container create | dir create {share}/d
file put | file put {share}/a.txt --metadata a=1
file get | file get {share}/a.txt -f copy
file copy | file copy {share}/b.txt --source {share}/a.txt
blob write | file delete {share}/b.txt
exists | file exists {share}/a.txt
exists | share exists {share}x
blob write | file metadata set {share}/a.txt --metadata a=2
metadata read | file metadata get {share}/a.txt
blob write | dir metadata set {share}/d --metadata a=2 --last-writer-wins
blob write | share metadata set {share} --metadata a=2 --last-writer-wins
blob write | dir properties set {share}/d --attributes Hidden --last-writer-wins
blob write | share quota {share} 5 --last-writer-wins
share stats | share stats {share}
container create | dir rename {share}/d {share}/e
"""


def test_every_kind_of_result_has_the_shape_that_scripts_rely_on(files_cli: CliWorld) -> None:
    share = files_world.share(files_cli)
    for row in _RESULTS.strip().splitlines():
        kind, _, words = row.format(share=share).partition(" | ")
        ran = files_cli.call(*words.split(), stdin=b"{}")
        assert ran.json, row
        schema = {"$defs": SCHEMAS["$defs"], "$ref": f"#/$defs/{kind}"}
        jsonschema.Draft202012Validator(schema).validate(ran.json)


def test_who_has_a_file_open_is_told_in_the_shape_of_scripts(tmp_path: Path, smb_emulator: SmbEmulator) -> None:
    cli, file = CliWorld(tmp_path, smb_emulator.connection_string), "open/a.txt"
    smb_emulator.service.create_share("open").get_file_client("a.txt").upload_file(b"x")
    with smb_emulator.connect("open") as tree:
        open_file(tree, "a.txt")
        told = [
            ("file handle list", cli.call("file", "handle", "list", file)),
            ("file lock list", cli.call("file", "lock", "list", file)),
            ("file lock break", cli.call("file", "lock", "break", file, "--yes")),
            ("file handle close", cli.call("file", "handle", "close", file, "--close-all")),
        ]
    for name, ran in told:
        schema = {"$defs": SCHEMAS["$defs"], "$ref": f"#/$defs/{name}"}
        jsonschema.Draft202012Validator(schema).validate(ran.json)


def test_every_line_of_a_tree_has_the_shape_that_scripts_rely_on(files_cli: CliWorld) -> None:
    share = files_world.share(files_cli)
    (files_cli.root / "dist/d").mkdir(parents=True)
    files_cli.file("dist/d/a", "1")
    files_cli.file("dist/b:c", "1")
    cases: list[tuple[str, ...]] = [
        ("file", "put", "dist", share, "--recursive", "--dry-run"),
        ("file", "put", "dist", share, "--recursive"),
        ("file", "put", "dist", share, "--recursive", "--unchanged", "skip"),
        ("file", "get", share, "back", "--recursive"),
        ("file", "delete", share, "--recursive", "--dry-run"),
        ("file", "delete", share, "--recursive", "--exclude", "d/a"),
        ("file", "delete", share, "--recursive"),
    ]
    schema = {"$defs": SCHEMAS["$defs"], "$ref": "#/$defs/tree item"}
    told: set[str] = set()
    for words in cases:
        for line in map(json.loads, files_cli.call(*words).out.splitlines()):
            jsonschema.Draft202012Validator(schema).validate(line)
            told.add(line["outcome"])
    assert told == {"would create", "would delete", "created", "unchanged", "read", "kept", "deleted", "failed"}
