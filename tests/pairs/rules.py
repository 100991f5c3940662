"""What a rule of ``azguard help --json`` says of a line: read here from its words, as the author of a program would."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

Rule = Mapping[str, Any]


def find_broken(rules: Sequence[Rule], typed: Collection[str], kind: str | None) -> Rule | None:
    """Return the first rule that a line breaks; ``kind`` is that of its first address. None if the line is allowed."""
    return next((rule for rule in rules if _breaks(rule, typed, kind)), None)


def _breaks(rule: Rule, typed: Collection[str], kind: str | None) -> bool:
    if any(name in typed for name in rule["unless"]):
        return False
    given = [name for name in rule["options"] if name in typed or name == f"{kind}:"]
    beside = [name for name in rule["others"] if name in typed]
    return {
        "excludes": bool(given and beside),
        "needs": bool(given) and not beside,
        "one_of": len(given) != 1,
        "any_of": not given,
        "at_most_one": len(given) > 1,
        "only_for": bool(given) and kind is not None and kind not in rule["others"],
        "checked": False,
    }[rule["kind"]]


def tell(rule: Rule) -> str:
    """Return a rule in one line."""
    others = f" {', '.join(rule['others'])}" if rule["others"] else ""
    return f"{rule['kind']} {', '.join(rule['options'])}:{others}"
