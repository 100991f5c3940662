"""The core raises facts: options, hints and example command lines are words of the command line, in ``cli/`` alone."""

import ast
import re
from collections.abc import Iterator, Sequence

from azguard.cli.registry import COMMANDS
from tests.support.cases import cases
from tests.support.sources import READS_SOURCES, list_nodes
from tests.unit.test_layers import MODULES, room

pytestmark = READS_SOURCES

CORE = {name: path for name, path in MODULES.items() if room(name) not in ("cli", "commands")}
OPTION = re.compile(r"(?<![\w-])--[A-Za-z][\w-]*")
COMMAND_LINE = re.compile(rf"(?<!\w)azguard (?:{'|'.join(COMMANDS)}) ")
# The options of other programs, and why the core names them.
ALLOWED = {
    # npm installs Azurite; node and azurite are asked for their versions.
    "azguard.emulators.azurite_install": {
        "--fetch-retries",
        "--fetch-retry-mintimeout",
        "--fetch-timeout",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--no-progress",
        "--no-update-notifier",
        "--omit",
        "--prefix",
        # Node.js loads a file of ours before Azurite.
        "--require",
        "--version",
    },
    # Azurite is started.
    "azguard.emulators.azurite_process": {
        "--disableTelemetry",
        "--inMemoryPersistence",
        "--location",
        "--silent",
        "--skipApiVersionCheck",
    },
    # A program of its own, for other projects.
    "azguard.emulators.files.__main__": {
        "--account",
        "--host",
        "--location",
        "--log",
        "--port",
        "--retention-days",
        "--share-deletion-seconds",
        "--smb-port",
        "--tied",
    },
    # It is started.
    "azguard.emulators.files_process": {"--location", "--port", "--smb-port", "--tied"},
    # Samba is started.
    "azguard.emulators.files.samba": {
        "--debug-stdout",
        "--foreground",
        "--map-root-user",
        "--no-process-group",
        "--user",
        "--version",
    },
    # Samba is asked.
    "azguard.emulators.files.handles": {"--json"},
    # Not another program's: the cache keeps each command as it would be typed, and exports carry it.
    "azguard.cache.records": {"--blob-type", "--reason", "--select"},
}


def texts(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """Yield the texts of a module that are no docstrings."""
    prose = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.value


def find_words(module: str) -> tuple[set[str], list[str], list[str]]:
    """Return the options, the command lines and the hints that stand in a module."""
    nodes = list_nodes(CORE[module])
    said = list(texts(nodes))
    options = {option for text in said for option in OPTION.findall(text)}
    lines = [text for text in said if COMMAND_LINE.search(text)]
    hints = [node.value for node in nodes if isinstance(node, ast.keyword) and node.arg == "hint"]
    return options, lines, list(map(ast.unparse, hints))


@cases("name", *sorted({room(module) for module in CORE}))
def test_a_room_of_the_core_names_no_option_shows_no_command_line_and_gives_no_hint(name: str) -> None:
    modules = [module for module in CORE if room(module) == name]
    allowed: dict[str, tuple[set[str], list[str], list[str]]] = {
        module: (ALLOWED.get(module, set()), [], []) for module in modules
    }
    assert {module: find_words(module) for module in modules} == allowed


def test_every_exception_is_of_a_module_that_is_there() -> None:
    assert set(ALLOWED) <= set(CORE)


@cases(
    ("source", "found"),
    ("raise UsageError('--etag is empty')", ["--etag"]),
    ("raise UsageError(f'{name}: write --param {name}=VALUE')", ["--param"]),
    ('def f():\n    """Do what --etag asks for."""', []),
    ("text = 'a--b, -- and ---'", []),
)
def test_an_option_is_found_in_texts_and_not_in_docstrings(source: str, found: list[str]) -> None:
    assert [option for text in texts(list(ast.walk(ast.parse(source)))) for option in OPTION.findall(text)] == found
