"""Checks of the writers beside us: whose last writes have no lineage, and who else may write.

What azguard wrote last has its lineage, unless it was told to leave none. A tool that keeps what others left is not
seen, such as one that merges into an entity.
"""

from collections.abc import Iterator
from functools import partial

from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.blobs import listing
from azguard.doctor.checks import Check, CheckFinding, differs, holds
from azguard.doctor.stage import CheckStage
from azguard.guards.resolve import Conditions
from azguard.requests.lineage import KEY, Lineage
from azguard.resources import access_policies
from azguard.tables import edm, entities

PART = "writers"
_MOST_NAMES = 10
# The permissions of a stored policy that let its holder change something.
_WRITE_LETTERS = frozenset("acwdxyutmpio")


def list_checks(target: Target) -> Iterator[Check]:
    """Yield the checks of the writers of a container or a table. They write nothing, and so need no room."""
    what = "entities" if target.kind is Kind.TABLE else "blobs"
    yield Check(PART, f"last writes of {what}", partial(check_last_writes, target), requests=1)
    yield Check(PART, "who else may write", partial(check_policies, target), requests=1)


def check_last_writes(target: Target, stage: CheckStage) -> CheckFinding:
    """Count what was written last without a lineage, and name some of it."""
    count, foreign = 0, list[str]()
    for name, lineage in _walk(stage.through_tap(target), stage):
        count += 1
        if not lineage.entries:
            foreign.append(name)
    if not foreign:
        return holds(f"all {count} by azguard")
    named = ", ".join(foreign[:_MOST_NAMES]) + (", …" if len(foreign) > _MOST_NAMES else "")
    share = round(100 * len(foreign) / count)
    return differs(f"{len(foreign)} of {count} ({share} %) without a lineage, so not by azguard: {named}")


def _walk(target: Target, stage: CheckStage) -> Iterator[tuple[str, Lineage]]:
    """Yield the name of each blob or entity, and its lineage."""
    if target.kind is Kind.TABLE:
        select = ",".join((*edm.KEYS, KEY))
        for page in entities.read_pages(target, stage.deadline, None, select):
            yield from (("/".join(str(each.entity[key]) for key in edm.KEYS), each.lineage) for each in page)
        return
    for item in listing.walk(target, stage.deadline, include=("metadata",)):
        yield item.name, Lineage.find(item.metadata)


def check_policies(target: Target, stage: CheckStage) -> CheckFinding:
    """Tell which stored access policies allow writes, to each holder of a SAS that names one."""
    found = access_policies.get(stage.through_tap(target), Conditions(), stage.deadline).policies
    writing = [
        f"{name} ({policy['permission']})"
        for name, policy in found.items()
        if _WRITE_LETTERS & set(policy.get("permission") or "")
    ]
    if writing:
        return differs(f"a SAS of each of these stored access policies: {', '.join(writing)}")
    return holds("no stored access policy allows it; a key, a role, or another SAS does")
