"""OData filters with parameters, which are bound as values and never spliced in as text.

Source: https://learn.microsoft.com/rest/api/storageservices/querying-tables-and-entities
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from azguard.errors import UsageError
from azguard.tables import edm

# A literal with what belongs to it, a placeholder, or one character of anything else. In a literal '' is a quote.
_TOKEN = re.compile(r"(?P<literal>'(?:[^']|'')*')|@(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<other>.)", re.DOTALL)
# What may stand before a placeholder.
_BEFORE = " \t\r\n(,"
# What may stand after a placeholder.
_AFTER = " \t\r\n),"
_PARAMETER = "param"
_BARE = {edm.BOOLEAN: "{}", edm.INT32: "{}", edm.INT64: "{}L"}
_QUOTED = {edm.STRING: "'{}'", edm.DATETIME: "datetime'{}'", edm.GUID: "guid'{}'", edm.BINARY: "X'{}'"}


def bind_parameters(text: str | None, parameters: Iterable[str] = (), argument: str = "filter") -> str | None:
    """Return a filter with every ``@name`` outside a literal replaced by its value; None is no filter.

    ``parameters`` are texts such as ``n:int64=5``: see ``edm.split_typed``; ``argument`` is where it was typed.

    Raises:
        UsageError: a parameter is missing, never used or given twice; a placeholder is not a whole word; a value does
            not have its type; a literal does not end.
    """
    literals = _parse_literals(parameters)
    if (text or "").count("'") % 2:
        raise UsageError("a literal in the filter does not end", argument=argument, reason="filter_literal_open")
    used: set[str] = set()
    pieces: list[str] = []
    for token in _TOKEN.finditer(text or ""):
        name = _find_placeholder(token, literals, argument)
        if name is None:
            pieces.append(token[0])
        else:
            used.add(name)
            pieces.append(literals[name])
    unused = next((name for name in literals if name not in used), None)
    if unused is not None:
        raise UsageError(
            f"the parameter {unused} is not in the filter",
            argument=_PARAMETER,
            reason="filter_parameter_unused",
            values={"name": unused},
        )
    return None if text is None else "".join(pieces)


def _find_placeholder(token: re.Match[str], literals: Mapping[str, str], argument: str) -> str | None:
    """Return the name of the parameter that a token stands for, None if it is text of the filter itself."""
    name: str | None = token["name"]
    if name is None and token["other"] != "@":
        return None
    if name is None or not _stands_alone(token):
        raise UsageError(
            f"the @ at position {token.start() + 1} does not begin a parameter that stands alone",
            argument=argument,
            reason="filter_parameter_malformed",
        )
    if name not in literals:
        raise UsageError(
            f"the filter has @{name}, which has no value",
            argument=argument,
            reason="filter_parameter_without_value",
            values={"name": name},
        )
    return name


def _stands_alone(token: re.Match[str]) -> bool:
    before = token.string[: token.start()][-1:]
    after = token.string[token.end() :][:1]
    # Both are empty at the ends of the filter, and the empty string is in every string.
    return before in _BEFORE and after in _AFTER


def _to_literal(name: str, kind: str, value: Any) -> str:
    """Return a value of an entity's JSON as OData writes it in a filter."""
    sent = edm.check_value(name, kind, value)
    if kind == edm.DOUBLE:
        return _write_double(name, sent)
    if kind in _BARE:
        return _BARE[kind].format(str(sent).lower())
    return _QUOTED[kind].format(sent.hex() if kind == edm.BINARY else str(sent).replace("'", "''"))


def quote(text: str) -> str:
    """Return a text as a literal of a filter."""
    return "'" + text.replace("'", "''") + "'"


def _parse_literals(parameters: Iterable[str]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for text in parameters:
        name, kind, value = edm.split_typed(text)
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise UsageError(f"{name!r} is not a name", argument=_PARAMETER, reason="filter_parameter_name_malformed")
        if name in found:
            raise UsageError(
                f"the parameter {name} is given twice",
                argument=_PARAMETER,
                reason="filter_parameter_given_twice",
                values={"name": name},
            )
        kind = kind or edm.STRING
        found[name] = _to_literal(name, kind, edm.parse_value(name, kind, value))
    return found


def _write_double(name: str, number: float | str) -> str:
    """Return a double in full: not every server reads an exponent here."""
    if isinstance(number, str):
        raise UsageError(f"{name}: {number} cannot be compared with in a filter", reason="filter_number_not_finite")
    from decimal import Decimal

    text = f"{Decimal(repr(number)):f}"
    return text if "." in text else f"{text}.0"
