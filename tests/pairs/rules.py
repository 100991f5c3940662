"""What a rule of ``azguard help --json`` says of a line: read here from its words, as the author of a program would."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

Rule = Mapping[str, Any]


def find_broken(rules: Sequence[Rule], typed: Collection[str], kind: str | None) -> Rule | None:
    """Return the first rule that a line breaks; ``kind`` is that of its first address. None if the line is allowed."""
    return next((rule for rule in rules if _breaks(rule, typed, kind)), None)


def _breaks(rule: Rule, typed: Collection[str], kind: str | None) -> bool:
    if rule["kind"] == "checked" or any(name in typed for name in rule["unless"]):
        return False
    given = [name for name in rule["options"] if name in typed or name == f"{kind}:"]
    match rule["kind"]:
        case "excludes":
            return bool(given) and any(name in typed for name in rule["others"])
        case "needs":
            return bool(given) and not any(name in typed for name in rule["others"])
        case "one_of":
            return len(given) != 1
        case "any_of":
            return not given
        case "at_most_one":
            return len(given) > 1
        case "only_for":
            return bool(given) and kind is not None and kind not in rule["others"]
    raise AssertionError(f"{rule['kind']} is no kind of rule")


def tell(rule: Rule) -> str:
    """Return a rule in one line."""
    others = f" {', '.join(rule['others'])}" if rule["others"] else ""
    return f"{rule['kind']} {', '.join(rule['options'])}:{others}"
