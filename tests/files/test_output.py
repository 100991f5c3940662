"""Results about shares, directories and files: the shapes that scripts rely on."""

import json
from pathlib import Path

import jsonschema

from tests.support import files_world, places
from tests.support.cli_world import CliWorld
from tests.support.smb_emulator import SmbEmulator, open_file

SCHEMAS = json.loads((places.SCHEMAS / "results.json").read_text())
ANYHOW = "--last-writer-wins"


def test_every_result_has_the_shape_that_scripts_rely_on(files_cli: CliWorld) -> None:
    share = files_world.share(files_cli)
    file, folder, left = f"{share}/a.txt", f"{share}/d", f"{share}/.azguard-0123456789abcdef.tmp"
    files_world.client(files_cli, left).upload_file(b"x")
    cases: list[tuple[str, tuple[str, ...]]] = [
        ("container create", ("share", "create", share, "--if-exists", "skip")),
        ("container create", ("dir", "create", folder)),
        ("file put", ("file", "put", file, "--metadata", "a=1")),
        ("file get", ("file", "get", file, "-f", "copy")),
        ("file put", ("file", "put", file)),
        ("file copy", ("file", "copy", f"{file}.2", "--source", file)),
        ("blob write", ("file", "delete", f"{file}.2")),
        ("file show", ("file", "show", file)),
        ("dir show", ("dir", "show", folder)),
        ("share show", ("share", "show", share)),
        ("exists", ("file", "exists", file)),
        ("exists", ("share", "exists", f"{share}x")),
        ("file list", ("file", "list", share)),
        ("file list", ("dir", "list", share)),
        ("file prune", ("file", "prune", share)),
        ("share list", ("share", "list", "--prefix", share)),
        ("metadata read", ("file", "metadata", "get", file)),
        ("blob write", ("file", "metadata", "set", file, "--metadata", "a=2")),
        ("blob write", ("dir", "metadata", "set", folder, "--metadata", "a=2", ANYHOW)),
        ("blob write", ("share", "metadata", "set", share, "--metadata", "a=2", ANYHOW)),
        ("blob write", ("file", "properties", "set", file, "--content-type", "a/b")),
        ("blob write", ("dir", "set-properties", folder, "--attributes", "Hidden", ANYHOW)),
        ("share acl", ("share", "acl", "get", share)),
        ("blob write", ("share", "acl", "set", share)),
        ("blob write", ("share", "quota", share, "5", ANYHOW)),
        ("share stats", ("share", "stats", share)),
        ("file permission", ("file", "permission", "show", file)),
        ("file permission created", ("file", "permission", "create", share, "O:SYG:SYD:(A;;FA;;;WD)")),
        ("share list", ("share", "list", "--include", "snapshots,deleted")),
        ("share snapshot", ("share", "snapshot", share)),
        ("container create", ("dir", "rename", folder, f"{share}/e")),
        ("blob write", ("dir", "delete", f"{share}/e", ANYHOW)),
        ("blob write", ("file", "delete", file)),
        ("blob write", ("file", "delete", left, ANYHOW)),
        ("blob write", ("share", "delete", share, ANYHOW, "--delete-snapshots", "include")),
    ]
    for name, words in cases:
        ran = files_cli.call(*words, stdin=b"{}")
        schema = {"$defs": SCHEMAS["$defs"], "$ref": f"#/$defs/{name}"}
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
