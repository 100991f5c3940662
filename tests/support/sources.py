"""The source of the product, parsed once: who reads it is in one process, which keeps what it has parsed."""

import ast
from functools import cache
from pathlib import Path

import pytest

#: The mark of a module of tests that reads the whole source.
READS_SOURCES = pytest.mark.xdist_group("source of the product")


@cache
def parse(path: Path) -> ast.Module:
    """Return the tree of a module; it is shared, so do not change it."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def list_nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return all nodes of a module, as ``ast.walk`` yields them."""
    return tuple(ast.walk(parse(path)))
