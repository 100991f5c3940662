"""Results as what JSON knows, and the text of that in each format for programs; and what ``--query`` picks of them.

Over results that come line by line a query picks from each line, or it picks lines. Lines are not kept, for there may
be a million of them: a query that needs all of them at once is refused.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cache
from typing import Any

from azguard.cli.output import terminal
from azguard.cli.output.stream import HINT
from azguard.documents import controls
from azguard.errors import OutputFailed, UsageError
from azguard.times import iso

# What JSON knows already; not what is derived from it, such as an enum of text.
_AS_IT_IS = frozenset({str, int, float, bool, type(None)})
# The nodes of JMESPath's tree that read a list, and of these the roots that treat each of its items alike.
_READ_LISTS = ("projection", "filter_projection", "flatten", "index_expression")
_PICK_LINES = ("projection", "filter_projection")
_MARGIN = "\n  "
# json.dumps makes another one for each line.
_to_json_line = json.JSONEncoder(ensure_ascii=False).encode


def to_json_form(value: object) -> Any:
    """Return a result as what JSON knows: dataclasses as objects, times as ISO 8601, enums as their value."""
    kind = type(value)
    if kind in _AS_IT_IS:
        return value
    if is_dataclass(kind):
        return {
            name: each if type(each := getattr(value, name)) in _AS_IT_IS else to_json_form(each)
            for name in _list_printed(kind)
        }
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, Mapping):
        return {str(key): to_json_form(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [to_json_form(each) for each in value]
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    return str(value)


@cache
def _list_printed(kind: type) -> tuple[str, ...]:
    """List the fields of a result that are printed, in order; a line of a tree asks for them for each file."""
    names = [each.name for each in fields(kind) if "is_unprinted" not in each.metadata]
    first = [name for name in getattr(kind, "FIRST", ()) if name in names]
    last = [name for name in getattr(kind, "LAST", ()) if name in names and name not in first]
    return (*first, *(name for name in names if name not in {*first, *last}), *last)


def write_json_array(values: Iterator[Any]) -> None:
    """Print values as one array in JSON, as they come."""
    separator = "[\n"
    for value in values:
        sys.stdout.write(f"{separator}  {to_json(value, margin=_MARGIN)}")
        separator = ",\n"
    sys.stdout.write("[]\n" if separator == "[\n" else "\n]\n")


def _is_watched() -> bool:
    """Return whether a terminal gets the result: names and values must not be able to drive it."""
    return terminal.is_terminal(sys.stdout)


def to_json(value: Any, margin: str | None = None) -> str:
    """Return a value in one line, or with a margin in several; ``margin`` is a line break and the first blanks."""
    text = _to_json_line(value) if margin is None else _spread(value, margin)
    return controls.escape_json(text) if _is_watched() else text


def _spread(value: Any, margin: str) -> str:
    """Return JSON of several lines, as json.dumps with an indent does, which takes three times as long."""
    if not value or not isinstance(value, (dict, list)):
        return _to_json_line(value)
    within = f"{margin}  "
    parts = value.values() if isinstance(value, dict) else value
    if not any(each and isinstance(each, (dict, list)) for each in parts):
        items = _find_encoder(within)(value)[1:-1]
    elif isinstance(value, dict):
        items = f",{within}".join(f"{_to_json_line(name)}: {_spread(each, within)}" for name, each in value.items())
    else:
        items = f",{within}".join(_spread(each, within) for each in value)
    return f"{{{within}{items}{margin}}}" if isinstance(value, dict) else f"[{within}{items}{margin}]"


@cache
def _find_encoder(within: str) -> Callable[[Any], str]:
    """Return the function that spreads a value of which no part has parts."""
    return json.JSONEncoder(ensure_ascii=False, separators=(f",{within}", ": ")).encode


def to_yaml(value: Any) -> str:
    """Return a value in YAML."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """A dumper that quotes what would drive a terminal, so that it can be spelled out."""

        def represent_text(self, text: str) -> Any:
            style = '"' if controls.are_in(text) else None
            return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    if not _is_watched():
        return yaml.safe_dump(value, sort_keys=False, allow_unicode=True)
    Dumper.add_representer(str, Dumper.represent_text)
    return controls.escape(yaml.dump(value, Dumper=Dumper, sort_keys=False, allow_unicode=True))


def to_tsv(row: Any) -> str:
    """Return the values of a row, with tabs in between, without the end of the line."""
    if isinstance(row, dict):
        row = list(row.values())
    line = "\t".join(_cell(value) for value in (row if isinstance(row, list) else [row]))
    return controls.escape(line) if _is_watched() else line


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False)
    return str(value).replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def check_lines(query: str | None, sample: dict[str, Any]) -> None:
    """Refuse a query that cannot be applied to one line after the other; ``sample`` is such a line."""
    if query is None:
        return
    import jmespath
    from jmespath.exceptions import JMESPathTypeError

    from azguard.documents.json_text import JMESPATH_FAILURES

    is_possible = not _reads_list(query) or picks_lines(query)
    try:
        jmespath.search(query, [sample] if picks_lines(query) else sample)
    except JMESPathTypeError:
        is_possible = False
    except JMESPATH_FAILURES:
        pass  # of this line, or of a query that is refused below; each real line is tried by itself
    if not is_possible:
        raise UsageError(
            f"--query {query!r} needs all lines at once, and each is printed as it comes",
            hint='pick from each line, or pick lines, such as --query "[?error]"',
        )


def pick_from_line(query: str | None, line: dict[str, Any]) -> list[Any]:
    """Return the values that a query picks from a line: one value, or each value of a query for a list."""
    if query is None or not picks_lines(query):
        return [pick(query, line)]
    picked: list[Any] = pick(query, [line])
    return picked


def pick(query: str | None, value: Any) -> Any:
    """Return the value that a query picks from a plain value; without a query, the value itself."""
    if query is None:
        return value
    import jmespath

    from azguard.documents.json_text import JMESPATH_FAILURES

    try:
        return jmespath.search(query, value)
    except JMESPATH_FAILURES as error:
        # Not a usage error: what was asked for has been done, and its exit status must not deny it.
        raise OutputFailed(f"the operation is done, but --query failed on its result: {error}", hint=HINT) from None


def find_unknown(query: str, value: Any) -> str | None:
    """Return the first name in a query that no part of a plain value has; None if all are there."""
    known = set(_list_keys(value))
    return next((name for name in _list_names(_parse(query)) if name not in known), None)


def picks_lines(query: str) -> bool:
    """Return whether a query is for a list, and picks the same from one line as from all of them."""
    node = _parse(query)
    return _reads_list(query) and node["type"] in _PICK_LINES and "index_expression" not in _list_spine(node)


def _reads_list(query: str) -> bool:
    return bool(set(_list_spine(_parse(query))) & set(_READ_LISTS))


def _list_spine(node: Any) -> list[str]:
    """Return the types of the nodes that lead to the whole input, where the lowest one reads it as a list."""
    found = []
    while node["children"]:
        found.append(node["type"])
        node = node["children"][0]
    return found if node["type"] == "identity" and found and found[-1] in _READ_LISTS else []


def _parse(query: str) -> Any:
    import jmespath

    # JMESPath keeps what it has compiled.
    return jmespath.compile(query).parsed


def _list_names(node: Any) -> Iterator[str]:
    """Yield the names of members in a tree of JMESPath."""
    if node["type"] == "field":
        yield node["value"]
    for child in node["children"]:
        yield from _list_names(child)


def _list_keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
    if isinstance(value, (dict, list)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _list_keys(each)
