"""Imports go down only: every module is in a room, every room on a floor, and a room imports rooms below its own."""

import ast
import re
from functools import cache
from graphlib import TopologicalSorter
from itertools import groupby
from pathlib import Path

from tests.support.cases import cases
from tests.support.places import REPOSITORY
from tests.support.sources import READS_SOURCES, list_nodes, parse

pytestmark = READS_SOURCES

# From the ground up. Rooms of one floor stand side by side and never import each other.
FLOORS = (
    ("frozen", "errors", "address", "urls", "naming", "times", "columns", "folders", "atomic_files"),
    ("documents", "processes"),
    ("accounts",),
    ("emulators", "wire"),
    ("requests",),
    ("guards",),
    ("cache",),
    ("leases", "updates", "resources"),
    ("blobs", "tables", "queues", "files"),
    ("locks", "worker", "trees"),
    ("demo", "doctor", "batch", "smb", "status"),
    ("cli",),
    ("commands",),
    ("__main__",),
)
# The ground's modules build on each other; each of them is a room of its own, and they make no circle.
GROUND = frozenset(FLOORS[0])
_CLIENTS = re.compile(r"azure\.(storage|data)")
FLOOR_OF = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}


def modules() -> dict[str, Path]:
    """Return every module of the product by its dotted name."""
    found = {}
    for folder, prefix in (("azguard", ""), ("cli", "azguard."), ("commands", "azguard.")):
        for path in sorted((REPOSITORY / folder).rglob("*.py")):
            parts = path.relative_to(REPOSITORY).with_suffix("").parts
            if parts[:2] not in (("azguard", "cli"), ("azguard", "commands")):
                found[prefix + ".".join(parts).removesuffix(".__init__")] = path
    return found


MODULES = modules()


@cache
def imports(path: Path) -> frozenset[str]:
    """Return the modules of the product that a module imports, inside functions and under TYPE_CHECKING too."""
    found: set[str] = set()
    for node in list_nodes(path):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names if each.name.split(".")[0] == "azguard"}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "azguard":
            names = (f"{node.module}.{each.name}" for each in node.names)
            found |= {name if name in MODULES else str(node.module) for name in names}
    return frozenset(found)


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else module


ROOMS = {name: list(modules) for name, modules in groupby(sorted(MODULES, key=room), room)}


@cases("mine", *sorted(set(ROOMS) - {"azguard"}))
def test_a_room_imports_itself_and_the_floors_below(mine: str) -> None:
    allowed = {mine, "azguard"} | {each for each, floor in FLOOR_OF.items() if floor < FLOOR_OF[mine]}
    if mine in GROUND:
        allowed |= GROUND
    found = {(module, each) for module in ROOMS[mine] for each in imports(MODULES[module])}
    assert {(module, each) for module, each in found if room(each) not in allowed} == set()


def test_no_imports_make_a_circle() -> None:
    TopologicalSorter({name: imports(path) for name, path in MODULES.items()}).prepare()


def test_only_the_wire_knows_the_clients_of_the_sdk() -> None:
    naming = {name for name, path in MODULES.items() if _CLIENTS.search(path.read_text(encoding="utf-8"))}
    assert naming == {"azguard.wire.sdk"}


def noun(module: str) -> str:
    """Return the command, or the noun, that a module of ``commands`` is of; empty for other modules."""
    return module.split(".")[2] if module.startswith("azguard.commands.") else ""


def test_commands_are_imported_by_name_only() -> None:
    found = {(name, each) for name, path in MODULES.items() for each in imports(path) if noun(each)}
    assert [(name, each) for name, each in found if noun(each) != noun(name)] == []


def test_the_front_page_of_a_room_is_its_docstring_alone() -> None:
    fronts = {name: path for name, path in MODULES.items() if path.name == "__init__.py" and name != "azguard"}
    bodies = {name: len(parse(path).body) for name, path in fronts.items()}
    assert {name for name, length in bodies.items() if length != 1} == set()


def test_the_front_page_of_a_room_names_each_of_its_modules() -> None:
    rooms = {name.rpartition(".")[0] for name in MODULES if name.count(".") == 2} - {"azguard.commands"}
    pages = {name: ast.get_docstring(parse(MODULES[name])) for name in rooms}
    unnamed = [
        name
        for name in MODULES
        if name.rpartition(".")[0] in rooms
        and f"``{name.rpartition('.')[2]}``" not in (pages[name.rpartition(".")[0]] or "")
    ]
    gone = [
        (name, each)
        for name, page in pages.items()
        for each in re.findall(r"^``(\w+)``", page or "", re.MULTILINE)
        if f"{name}.{each}" not in MODULES
    ]
    assert (unnamed, gone) == ([], [])


def test_every_room_has_a_floor() -> None:
    assert {room(name) for name in MODULES} - {"azguard"} <= set(FLOOR_OF)
