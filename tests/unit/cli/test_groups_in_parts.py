"""A noun whose commands stand in several modules: each is imported when it is asked for."""

from importlib import import_module
from types import MappingProxyType

from azguard.cli.parsing.tree import Command, Group, root
from azguard.cli.registry import COMMANDS, find_module, list_modules
from tests.unit.test_layers import MODULES

PARTS = MappingProxyType({"metadata": "container", "delete": "container", "version": "about"})


def noun(modules: MappingProxyType[str, str] = PARTS) -> Group:
    """Return a group of commands of other modules."""
    return Group("A noun.", "noun", modules)


def test_the_rows_of_a_folder_name_all_that_its_files_declare_and_its_files_are_all_in_rows() -> None:
    nouns = [name for name, entry in COMMANDS.items() if entry.files]
    rows = {f"azguard.commands.{module}" for noun in nouns for module in list_modules(noun).values()}
    folders = tuple(f"azguard.commands.{find_module(noun)}." for noun in nouns)
    assert rows == {name for name in MODULES if name.startswith(folders)}
    for noun in nouns:
        modules = list_modules(noun)
        for module in set(modules.values()):
            declared = import_module(f"azguard.commands.{module}").app.list_names()
            assert sorted(declared) == sorted(name for name, each in modules.items() if each == module)


def test_every_file_of_commands_is_that_of_a_noun() -> None:
    files = {name.split(".")[2] for name in MODULES if name.startswith("azguard.commands.")}
    assert files == {find_module(name).partition(".")[0] for name in COMMANDS}


def test_a_module_is_imported_when_its_command_is_asked_for() -> None:
    found = noun()
    assert found._declared == {}
    found.get("delete")
    assert list(found._declared) == ["delete"]


def test_a_module_holds_a_group_of_the_name_or_the_command_among_others() -> None:
    found = noun()
    metadata, delete, version = (found.get(name) for name in PARTS)
    assert isinstance(metadata, Group)
    assert (found.list_names(), metadata.list_names()) == (list(PARTS), ["get", "set"])
    assert isinstance(delete, Command)
    assert "--with-contents" in delete.list_options()
    assert isinstance(version, Command)
    assert version.help.startswith("Print the version")


def test_a_command_that_no_module_has_is_none() -> None:
    assert noun().get("nothing") is None


def test_a_command_of_two_words_stands_beside_the_one_of_the_first() -> None:
    found = noun(MappingProxyType({"append seal": "blob.append", "append": "blob.append", "delete": "container"}))
    typed = [["append", "seal", "x"], ["append", "x"], ["append"], ["delete", "all"]]
    heads = [("append seal", 2), ("append", 1), ("append", 1), ("delete", 1)]
    assert [found.find_command(words) for words in typed] == heads
    assert [getattr(found.find(words), "name", "") for words in (["append", "seal"], ["append"])] == [
        "append seal",
        "append",
    ]
    assert (found.find(["nothing"]), found.find(["append", "x"])) == (None, None)


def test_the_properties_of_a_blob_are_set_by_either_order_of_the_words() -> None:
    found = root.find(["blob", "properties", "set"])
    assert found is not None
    assert found.name == "set-properties"
