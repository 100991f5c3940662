"""A noun whose commands stand in several modules: each is imported when it is asked for."""

from types import MappingProxyType
from typing import Any

from azguard.cli.groups import group
from docs.manual import find_root

PARTS = MappingProxyType({"acl": "table", "delete": "container", "version": "version"})


def noun() -> Any:
    """Return a group with one command of its own and three of other modules."""
    app = group("A noun.")

    @app.command(name="show")
    def show() -> None:
        """Show it."""

    @app.command(name="also")
    def also() -> None:
        """Show more."""

    found = app.build()
    found.modules = PARTS
    return found


def test_its_own_commands_are_listed_before_those_of_other_modules() -> None:
    found = noun()
    assert found.get_command(None, "version").name == "version"
    assert found.list_commands(None) == ["show", "also", "acl", "delete", "version"]


def test_a_module_is_imported_when_its_command_is_asked_for() -> None:
    found = noun()
    assert list(found.commands) == []
    found.get_command(None, "delete")
    assert list(found.commands) == ["delete"]


def test_a_command_is_built_when_it_is_asked_for() -> None:
    found = noun()
    found.get_command(None, "also")
    assert list(found.commands) == ["also"]


def test_a_module_holds_a_group_of_the_name_or_the_command_among_others_or_alone() -> None:
    found = noun()
    assert found.get_command(None, "acl").list_commands(None) == ["get", "set"]
    assert "--with-contents" in {option for param in found.get_command(None, "delete").params for option in param.opts}
    assert found.get_command(None, "version").help.startswith("Print the version")


def test_a_command_that_no_module_has_is_none() -> None:
    assert noun().get_command(None, "nothing") is None


def test_a_command_of_two_words_stands_beside_the_one_of_the_first() -> None:
    found = noun()
    found.modules = {"show all": "version", "version": "version"}
    typed = [["show", "all", "x"], ["show", "x"], ["show"], ["also", "all"]]
    assert [found.find_command(words) for words in typed] == [("show all", 2), ("show", 1), ("show", 1), ("also", 1)]
    assert (found.find(["show", "all"]).name, found.find(["show"]).name) == ("show all", "show")
    assert (found.find(["nothing"]), found.find(["show", "x"])) == (None, None)


def test_the_properties_of_a_resource_are_set_by_either_order_of_the_words() -> None:
    nouns = ("blob", "dir", "file")
    found = [find_root().find([noun, "properties", "set"]) for noun in nouns]
    assert [each.name for each in found if each is not None] == ["set-properties"] * len(nouns)
