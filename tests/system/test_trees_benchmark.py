"""The benchmark of trees: its table, and AzCopy, which a stand-in takes the place of."""

import os
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from azguard.emulators import background as emulator
from azguard.emulators.azurite_process import Azurite
from benchmarks import many_names, trees
from benchmarks.trees import Cost
from tests.support.places import REPOSITORY

# What AzCopy is told, and does, by the SDK.
STAND_IN = """#!{python}
import sys
from pathlib import Path
from azure.storage.blob import ContainerClient
word, source, target, way, recursive, log = sys.argv[1:]
assert (word, recursive, log) == ("copy", "--recursive=true", "--log-level=NONE")
if way == "--from-to=LocalBlob":
    container = ContainerClient.from_container_url(target)
    folder, star = source.rsplit("/", 1)
    for each in Path(folder).iterdir():
        container.upload_blob(each.name, each.read_bytes())
else:
    assert way == "--from-to=BlobLocal"
    url, star = source.split("/*?")
    star, container = "*", ContainerClient.from_container_url(url + "?" + star)
    for name in container.list_blob_names():
        (Path(target) / name).write_bytes(container.download_blob(name).readall())
assert star == "*"
"""


@pytest.mark.skipif(os.name != "posix", reason="a script as a program")
def test_azcopy_is_measured_where_it_is_there(
    tmp_path: Path, azurite: Azurite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(emulator, "private", lambda *_: nullcontext(azurite))
    azcopy = tmp_path / "azcopy"
    azcopy.write_text(STAND_IN.format(python=sys.executable))
    azcopy.chmod(0o755)
    source = tmp_path / "source"
    source.mkdir()
    for name in ("a", "b c"):
        (source / name).write_text(name)
    ours, tool, _ = trees.list_tools(None, str(azcopy))
    up, down = trees.move(tool, source, tmp_path / "copy")
    assert (ours.name, tool.name, up.seconds > 0, down.mib > 0) == ("azguard", "`azcopy copy`", True, True)


def test_the_table_has_medians_the_highest_memory_and_our_part_of_the_time() -> None:
    ours = [(Cost(1, 1, 50), Cost(2, 1, 60)), (Cost(3, 3, 50), Cost(4, 3, 40)), (Cost(2, 2, 50), Cost(3, 2, 40))]
    other = [(Cost(2, 5, 9), Cost(2, 6, 8))] * 3
    assert trees.write_table("two files", {"azguard": ours, "other": other})[2:] == [
        "| azguard | 2.0 s | 2.0 s | 3.0 s | 2.0 s | 60 MiB |  |",
        "| other | 2.0 s | 5.0 s | 2.0 s | 6.0 s | 9 MiB | 1.00 and 1.50 of it |",
    ]


def test_what_is_not_there_is_not_measured() -> None:
    assert [tool.name.split()[0] for tool in trees.list_tools(None, None)] == ["azguard", "the"]
    assert str(REPOSITORY) in trees.list_tools(None, None)[1].put(Path("x"), "")[1]


@pytest.mark.parametrize("command", ["put", "get"])
def test_the_memory_of_a_tree_does_not_grow_with_its_names(command: str) -> None:
    few, many = (many_names.measure(command, count) for count in (100, 1_000 if command == "get" else 50_000))
    assert (many < few + 12, many <= 150) == (True, True), f"{few} MiB, and then {many} MiB"
