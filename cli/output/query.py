"""``--query`` over results that come line by line: it picks from each line, or it picks lines.

Lines are not kept, for there may be a million of them: a query that needs all of them at once is refused.
"""

from typing import TYPE_CHECKING, Any

from azguard.documents import json_text
from azguard.errors import UsageError

if TYPE_CHECKING:
    from azguard.cli.output.results import Output

# The nodes of JMESPath's tree that read a list, and of these the roots that treat each of its items alike.
_READ_LISTS = ("projection", "filter_projection", "flatten", "index_expression")
_PICK_LINES = ("projection", "filter_projection")


def check(query: str | None, sample: dict[str, Any]) -> None:
    """Refuse a query that cannot be applied to one line after the other; ``sample`` is such a line."""
    if query is None:
        return
    import jmespath
    from jmespath.exceptions import JMESPathTypeError

    is_possible = not _reads_list(query) or _picks_lines(query)
    try:
        jmespath.search(query, [sample] if _picks_lines(query) else sample)
    except JMESPathTypeError:
        is_possible = False
    except json_text.JMESPATH_FAILURES:
        pass  # of this line, or of a query that is refused below; each real line is tried by itself
    if not is_possible:
        raise UsageError(
            f"--query {query!r} needs all lines at once, and each is printed as it comes",
            hint="pick from a line, such as --query outcome, or pick lines, such as --query \"[?outcome=='failed']\"",
        )


def pick(out: "Output", line: dict[str, Any]) -> list[Any]:
    """Return the values that the query picks from a line: one value, or each value of a query for a list."""
    if out.query is None or not _picks_lines(out.query):
        return [out.pick(line)]
    picked: list[Any] = out.pick([line])
    return picked


def _picks_lines(query: str) -> bool:
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
