"""The text of plain values in each format for programs."""

import json
import sys
from collections.abc import Iterator
from typing import Any

from azguard.cli.output import terminal
from azguard.documents import controls

_MARGIN = "\n  "
# json.dumps makes another one for each line.
_to_json_line = json.JSONEncoder(ensure_ascii=False).encode


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
    within = f"{margin}  "
    if isinstance(value, dict) and value:
        items = f",{within}".join(f"{_to_json_line(name)}: {_spread(each, within)}" for name, each in value.items())
        return f"{{{within}{items}{margin}}}"
    if isinstance(value, list) and value:
        items = f",{within}".join(_spread(each, within) for each in value)
        return f"[{within}{items}{margin}]"
    return _to_json_line(value)


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
