"""What the parser uses of Typer's inside: a release of Typer that moves it fails here, in words."""

from typing import Any

from azguard.cli.errors import Facts
from azguard.cli.parsing import parser
from azguard.cli.parsing.parser import ParsedGroup, build
from azguard.cli.parsing.tree import root
from tests.support.command_tree import command_at


def _context(words: list[str]) -> Any:
    return build(root).make_context("azguard", words, obj=Facts())


def test_a_parameter_has_the_coercion_that_is_replaced() -> None:
    params = [parser._build_param(row) for row in root.rows]
    assert [param.name for param in params if "_runtime_param" not in vars(param)] == [], (
        "Typer's parameters no longer have _runtime_param: see what reads their values now, "
        "and give parser._Reader.get_params the like, so that text stays text without pydantic"
    )


def test_one_line_is_read_with_the_options_that_it_can_mean() -> None:
    node = command_at(("blob", "get"))
    lines = (["--etag=@last", "--if-match"], ["-qf-"], ["--", "--scope"], ["-"])
    short = {row.name for row in node.rows if row.is_argument or any(len(flag) == 2 for flag in row.flags)}
    arguments = {row.name for row in node.rows if row.is_argument}
    found = [{param.name for param in parser._build_for(node, words).params} for words in lines]
    assert found == [arguments | {"etag", "if_match"}, short, arguments | {"scope"}, short]


def test_a_context_tells_the_words_behind_a_group() -> None:
    assert _context(["blob", "list"])._protected_args[:1] == ["blob"], (
        "Typer's contexts no longer have _protected_args: find how a group sees that no command follows, "
        "and use it in parser.ParsedGroup.invoke"
    )


def test_a_parser_tells_the_order_of_the_options() -> None:
    group = build(root)
    assert isinstance(group, ParsedGroup)
    order = group.read_once(_context(["version"]), ["--quiet", "-o", "json", "version"])
    assert [param.name for param in order] == ["quiet", "output"], (
        "the parser of a context no longer returns the parameters in the order in which they were typed: "
        "parser._Reader.read_once needs it for safe-update, whose edits are applied in that order"
    )


def test_the_parser_of_a_context_is_made_once() -> None:
    context = _context(["version"])
    parsed = context.obj.parsed[1]
    assert context.command.make_parser(context) is parsed, (
        "Typer asks for a parser by another name than make_parser: then a line is read twice, which costs 5 ms"
    )
