"""What a command ends with: an exit status that a function answers is returned, and not dropped."""

import ast
import sys
from collections.abc import Iterator, Sequence
from functools import cache

import pytest

from azguard.__main__ import main
from azguard.errors import ConfigError
from tests.support.cases import cases
from tests.support.sources import READS_SOURCES, list_nodes
from tests.unit.test_layers import MODULES, room

pytestmark = READS_SOURCES

_CLI = {name: path for name, path in MODULES.items() if room(name) in ("cli", "commands")}


@cache
def _find_counted(module: str) -> frozenset[str]:
    """Return the functions and methods of a module that answer a whole number."""
    nodes = list_nodes(MODULES[module]) if module in MODULES else ()
    found = (each for each in nodes if isinstance(each, ast.FunctionDef) and each.returns is not None)
    return frozenset(each.name for each in found if ast.unparse(each.returns or each) in ("int", "int | None"))


_METHODS = _find_counted("azguard.cli.output.results")


def find_dropped(nodes: Sequence[ast.AST], module: str = "") -> Iterator[str]:
    """Yield the calls whose answer, an exit status, no one takes."""
    places = {
        each.asname or each.name: (found.module or "", each.name)
        for found in nodes
        if isinstance(found, ast.ImportFrom)
        for each in found.names
    }
    own = _find_counted(module)
    for found in nodes:
        if not (isinstance(found, ast.Expr) and isinstance(found.value, ast.Call)):
            continue
        match found.value.func:
            case ast.Name(name):
                where, known = places.get(name, ("", name))
                is_dropped = known in _find_counted(where) if where else known in own
            case ast.Attribute(ast.Name(alias), name) if alias in places:
                is_dropped = name in _find_counted(".".join(places[alias]))
            case ast.Attribute(ast.Attribute(_, "out"), name):
                is_dropped = name in _METHODS
            case _:
                is_dropped = False
        if is_dropped:
            yield ast.unparse(found.value.func)


@cases("module", *_CLI)
def test_no_command_drops_the_status_that_it_is_to_end_with(module: str) -> None:
    assert list(find_dropped(list_nodes(_CLI[module]), module)) == []


@cases(
    ("line", "dropped"),
    ("env.out.answer(done, 20)", ["env.out.answer"]),
    ("return env.out.answer(done, 20)", []),
    ("env.out.show(done)", []),
    ("from azguard.locks import run as core\ncore.run(plan)", ["core.run"]),
    ("from azguard.smb import file_lock_run as core\ncore.run_locked(plan)", ["core.run_locked"]),
    ("from azguard.commands.queue.work import finish\nfinish(env, ended)", ["finish"]),
    ("from azguard.commands.queue import work\nwork.finish(env, ended)", ["work.finish"]),
    ("from azguard.queues import moving\nmoving.run(moved, show)", []),
)
def test_a_dropped_status_is_seen(line: str, dropped: list[str]) -> None:
    source = f"def command(env):\n    {line.replace(chr(10), chr(10) + '    ')}\n"
    assert list(find_dropped(list(ast.walk(ast.parse(source))))) == dropped


def test_windows_is_refused_at_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(SystemExit) as ended:
        main()
    assert (ended.value.code, capsys.readouterr()) == (
        ConfigError.exit_code,
        (
            "",
            "error: azguard runs on Linux and macOS\n"
            "hint: on Windows, run it in the Windows Subsystem for Linux (WSL) or in a container\n",
        ),
    )
