"""How long a module and a function may be: short enough to be read at one sitting."""

import ast

from tests.support.cases import cases
from tests.support.sources import READS_SOURCES, list_nodes
from tests.unit.test_layers import MODULES, ROOMS

pytestmark = READS_SOURCES

MOST_LINES_OF_A_MODULE = 400
MOST_LINES_OF_A_FUNCTION = 40

Function = ast.FunctionDef | ast.AsyncFunctionDef


def declares_options(function: Function) -> bool:
    """Return whether parameters are options of the command line, several lines each."""
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    types = " ".join(ast.unparse(each.annotation) for each in arguments if each.annotation is not None)
    return "Environment" in types or "options." in types


def lines_of(function: Function) -> int:
    """Return how many lines a function has; of a command, those that run: its signature and docstring are its help."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    if not declares_options(function):
        first = function.lineno
    elif body:
        first = body[0].lineno
    else:
        return 0
    return (function.end_lineno or first) - first + 1


@cases("name", *ROOMS)
def test_the_modules_and_functions_of_a_room_are_short(name: str) -> None:
    lines = {module: len(MODULES[module].read_text(encoding="utf-8").splitlines()) for module in ROOMS[name]}
    functions = [
        (module, each.name, lines_of(each))
        for module in ROOMS[name]
        for each in list_nodes(MODULES[module])
        if isinstance(each, Function)
    ]
    assert (
        {module: count for module, count in lines.items() if count > MOST_LINES_OF_A_MODULE},
        [each for each in functions if each[2] > MOST_LINES_OF_A_FUNCTION],
    ) == ({}, [])


@cases(
    ("source", "lines"),
    ("def f(\n    a: int,\n) -> None:\n    return None\n", 4),
    ("def f(\n    env: Environment,\n) -> None:\n    'Help.'\n    pass\n    pass\n", 2),
)
def test_signature_and_docstring_count_unless_they_are_help(source: str, lines: int) -> None:
    function = ast.parse(source).body[0]
    assert isinstance(function, Function)
    assert lines_of(function) == lines
