"""Name the functions of options and commands that refuse something, and that stand in no row.

python -m tests.support.unlisted_rules
"""

import ast
import sys
from pathlib import Path

from azguard.cli.parsing.tree import root
from tests.support.places import REPOSITORY


def list_unlisted() -> list[str]:
    """Return the functions of options and commands that refuse something, and that no rule and no type names."""
    commands = [command for _, command in root.walk()]
    named = {rule.by for command in commands for rule in command.rules}
    readers = [row.type.read for command in commands for row in command.own if row.type is not None]
    named |= {f"{read.__module__.rpartition('.')[2]}.{read.__name__}" for read in readers}
    # What types.py raises is of one value alone.
    options = [path for path in (REPOSITORY / "cli" / "options").glob("*.py") if path.stem != "types"]
    paths = sorted([*options, *(REPOSITORY / "commands").rglob("*.py")])
    found = [(path, name) for path in paths for name in _list_refusing(path) if f"{path.stem}.{name}" not in named]
    return [f"{path.relative_to(REPOSITORY)} {name}" for path, name in found]


def _list_refusing(path: Path) -> list[str]:
    """Return the functions of a module that raise a UsageError."""
    functions = [each for each in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(each, ast.FunctionDef)]
    return [each.name for each in functions if any("UsageError(" in ast.unparse(line) for line in _list_raises(each))]


def _list_raises(function: ast.FunctionDef) -> list[ast.Raise]:
    return [each for each in ast.walk(function) if isinstance(each, ast.Raise)]


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in list_unlisted())
