"""What a command shows has the shape that ``help --json`` tells: each result that a test reads is held to it."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import jsonschema

from azguard.cli.help.description import describe_all
from azguard.cli.parsing.tree import Command, walk

# What these print without a file is content.
_CONTENT = ("blob get", "file get")


def check(words: Sequence[str], result: Any) -> None:
    """See that the result of a line fits the schema of its command; of a --query nothing is known."""
    line = walk(words)
    if not isinstance(line.command, Command) or "query" in line.options:
        return
    name = " ".join(line.path)
    shows_content = name in _CONTENT and "file" not in line.options
    validator = _find_validator(name, line.command)
    if validator is not None and not shows_content:
        validator.validate(result)


@cache
def _find_validator(name: str, command: Command) -> jsonschema.Draft202012Validator | None:
    schema = describe_all([(name, command)])["commands"][0]["result"]
    return None if schema is None else jsonschema.Draft202012Validator(schema)
