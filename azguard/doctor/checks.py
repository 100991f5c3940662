"""A check is a row; one engine runs all rows and finds a verdict for each."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from azguard import __version__, columns
from azguard.errors import AzguardError
from azguard.frozen import frozen
from azguard.requests.service_errors import translate
from azguard.wire.failures import NoAnswer, Refusal, Unreadable

if TYPE_CHECKING:
    from azguard.doctor.stage import CheckStage

#: Grows where something is taken away or means something else; what is new is added without that.
FORMAT_VERSION = 1
# Of what is made for the checks, the part of a name that is random says nothing.
_OWN_NAME = re.compile(r"azguard-?doctor-?[0-9a-f]{12}")


class CheckVerdict(StrEnum):
    """What a check found."""

    HOLDS = "holds"
    DIFFERS = "differs"
    NOT_POSSIBLE = "not possible here"


class CheckFinding(NamedTuple):
    """A verdict, with what came, or why it is not possible here."""

    verdict: CheckVerdict
    detail: str = ""


def holds(detail: str = "") -> CheckFinding:
    """Return that it is as azguard promises, and what is known beside that."""
    return CheckFinding(CheckVerdict.HOLDS, detail)


def differs(detail: str) -> CheckFinding:
    """Return that it is not as azguard promises, and what came instead."""
    return CheckFinding(CheckVerdict.DIFFERS, detail)


def not_possible(why: str) -> CheckFinding:
    """Return that it cannot be tried here, and why."""
    return CheckFinding(CheckVerdict.NOT_POSSIBLE, why)


class Check(NamedTuple):
    """One check: a row of the table."""

    #: The part of the table: machine, login, account, promises, lost answers, rights, writers.
    part: str
    #: What is checked, in a few words.
    name: str
    #: Tries it.
    run: "Callable[[CheckStage], CheckFinding]"
    #: The service that it asks: blob, table, queue or file; None for the machine.
    service: str | None = None
    #: About how many requests it takes.
    requests: int = 0


@frozen
class CheckOutcome:
    """One check and what it found."""

    COLUMNS: ClassVar = (columns.CHECK, columns.VERDICT, columns.DETAIL)

    part: str
    check: str
    service: str | None
    verdict: str
    detail: str


@frozen(kw_only=True)
class Diagnosis:
    """All checks, and what they found."""

    format_version: int
    azguard_version: str
    #: None where names are not to be told.
    account: str | None
    #: How many requests were sent.
    requests: int
    holds: int
    differs: int
    not_possible: int
    checks: Sequence[CheckOutcome]


def run_each(checks: Iterable[Check], stage: "CheckStage") -> Iterator[CheckOutcome]:
    """Run the checks in their order, and yield what each one found."""
    for check in checks:
        found = _run(check, stage)
        detail = _OWN_NAME.sub("azguard-doctor-…", found.detail)
        yield CheckOutcome(check.part, check.name, check.service, found.verdict.value, detail)


def _run(check: Check, stage: "CheckStage") -> CheckFinding:
    missing = stage.find_obstacle(check.service)
    if missing is not None:
        return not_possible(missing)
    try:
        return check.run(stage)
    except AzguardError as error:
        return not_possible(error.message)
    # A check judges the answers to what it tries; these are answers to its preparations.
    except (NoAnswer, Refusal, Unreadable) as error:
        return not_possible(translate(error, stage.find_target(check.service)).message)


def summarize(
    results: Sequence[CheckOutcome], *, account: str, requests: int, hide: Callable[[str], str] | None
) -> Diagnosis:
    """Return the diagnosis; ``hide`` takes the names of the account out of a text, and None lets all names stand."""
    if hide is not None:
        results = [replace(each, detail=hide(each.detail)) for each in results]
    counts = [sum(each.verdict == verdict for each in results) for verdict in CheckVerdict]
    return Diagnosis(
        format_version=FORMAT_VERSION,
        azguard_version=__version__,
        account=account if hide is None else None,
        requests=requests,
        holds=counts[0],
        differs=counts[1],
        not_possible=counts[2],
        checks=results,
    )
