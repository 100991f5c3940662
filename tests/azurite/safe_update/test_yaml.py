"""``azguard safe-update`` with built-in edits of YAML."""

import sys

import pytest

from tests.support.cli_world import CliWorld

VALUES = b"# values\nimage:\n  tag: '1.25'   # of the shop\n\nreplicas: 3\n"


@pytest.fixture
def name(cli: CliWorld) -> str:
    return f"{cli.container()}/values.yaml"


def content(cli: CliWorld, name: str) -> bytes:
    return cli.call("blob", "get", name, scope="reader").stdout


def test_the_name_makes_it_yaml(cli: CliWorld, name: str) -> None:
    cli.call("blob", "put", name, stdin=VALUES)
    ran = cli.call("safe-update", f"blob:{name}", "--set-string", "image.tag=1.26", "--increment", "replicas")
    assert (ran.code, content(cli, name)) == (0, VALUES.replace(b"1.25", b"1.26").replace(b"3", b"4"))


def test_the_content_type_makes_it_yaml(cli: CliWorld, name: str) -> None:
    plain = name.removesuffix(".yaml")
    cli.call("blob", "put", plain, "--content-type", "application/yaml", stdin=VALUES)
    ran = cli.call("safe-update", f"blob:{plain}", "--unset", "image")
    assert (ran.code, content(cli, plain)) == (0, b"# values\n\nreplicas: 3\n")


def test_without_either_it_is_no_json(cli: CliWorld, name: str) -> None:
    plain = name.removesuffix(".yaml")
    cli.call("blob", "put", plain, stdin=VALUES)
    ran = cli.call("safe-update", f"blob:{plain}", "--unset", "image", "-o", "json")
    assert (ran.code, "is not JSON" in ran.error["message"], content(cli, plain)) == (65, True, VALUES)


def test_what_is_created_is_yaml_from_the_start(cli: CliWorld, name: str) -> None:
    ran = cli.call("safe-update", f"blob:{name}", "--create", "--set", 'image.tag="1"', "--increment", "replicas")
    assert (ran.code, content(cli, name)) == (0, b'image:\n  tag: "1"\nreplicas: 1\n')


def test_a_patch_from_stdin_is_read_once(cli: CliWorld, name: str) -> None:
    cli.call("blob", "put", name, stdin=VALUES)
    ran = cli.call("safe-update", f"blob:{name}", "--merge-patch", "-", stdin=b'{"replicas": 5, "image": null}')
    assert (ran.code, content(cli, name)) == (0, b"# values\n\nreplicas: 5\n")


def test_a_dry_run_shows_the_lines_that_change_alone(cli: CliWorld, name: str) -> None:
    cli.call("blob", "put", name, stdin=VALUES)
    ran = cli.call("safe-update", f"blob:{name}", "--increment", "replicas", "--dry-run")
    lines = [line for line in ran.out.splitlines() if line.startswith(("-", "+"))][2:]
    assert (ran.code, lines, content(cli, name)) == (0, ["-replicas: 3", "+replicas: 4"], VALUES)


def test_several_documents_are_refused_with_the_way_out(cli: CliWorld, name: str) -> None:
    cli.call("blob", "put", name, stdin=b"a: 1\n---\nb: 1\n")
    ran = cli.call("safe-update", f"blob:{name}", "--set", "a=2", "-o", "json")
    assert (ran.code, ran.error["message"], ran.error["hint"]) == (
        65,
        "the content is not YAML that can be edited: it has 2 documents",
        "a command can edit it: -- yq -i '.a = 1' {}",
    )


def test_the_reader_of_yaml_is_imported_only_for_yaml(cli: CliWorld, name: str) -> None:
    json = f"{name}.json"
    cli.call("blob", "put", json, stdin=b"{}")
    for module in [each for each in sys.modules if each.startswith("ruamel")]:
        del sys.modules[module]
    ran = cli.call("safe-update", f"blob:{json}", "--set", "a=1")
    assert (ran.code, [each for each in sys.modules if each.startswith("ruamel")]) == (0, [])
