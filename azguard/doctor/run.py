"""All checks in their order: what is planned, what it costs, and the diagnosis."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

from azguard import __version__, columns
from azguard.accounts.account import Account, Target
from azguard.address import Kind
from azguard.doctor import account as account_checks
from azguard.doctor import machine, promises, settling
from azguard.doctor.stage import Check, CheckFinding, CheckStage, CheckVerdict, not_possible
from azguard.errors import AzguardError, NotFound
from azguard.frozen import frozen
from azguard.processes.signals import hold_back_interruptions
from azguard.requests import commits
from azguard.requests.service_errors import translate
from azguard.wire.failures import NoAnswer, Refusal, Unreadable
from azguard.wire.operations.containers import CONTAINER_LIST_BLOBS
from azguard.wire.operations.tables import TABLE_ENTITY_QUERY

if TYPE_CHECKING:
    from azguard.files.guarding import Guarding
    from azguard.folders import Folders
    from azguard.requests.deadline import Deadline

#: Grows where something is taken away or means something else; what is new is added without that.
FORMAT_VERSION = 1
# Of what is made for the checks, the part of a name that is random says nothing.
_OWN_NAME = re.compile(r"azguard-?doctor-?[0-9a-f]{12}")
# To make the room of a service, and to delete it.
_OF_A_ROOM = 2


@frozen
class DoctorPlan:
    """What is to be checked."""

    #: Of the account: blob, table, queue, file.
    services: tuple[str, ...]
    #: The container to work in; None makes one.
    container: str | None = None
    #: The container or table whose writers are looked for; None is none.
    writers: Target | None = None
    #: Whether each operation is tried under each condition, not only those that most commands rest on.
    is_full: bool = False
    #: Whether the names of the account and of its user are told.
    tells_names: bool = False


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


def list_checks(plan: DoctorPlan, account: Account, folders: "Folders", environ: Mapping[str, str]) -> list[Check]:
    """Return the checks in their order."""
    checks = [
        *machine.list_checks(account, folders, environ),
        *account_checks.list_first_checks(plan.services),
        *promises.list_checks(is_full=plan.is_full),
        *settling.list_checks(is_full=plan.is_full),
        *account_checks.list_last_checks(plan.services, plan.writers),
    ]
    return [check for check in checks if check.service in (None, *plan.services)]


def count_requests(plan: DoctorPlan, checks: Sequence[Check]) -> int:
    """Return about how many requests the checks send."""
    counted = sum(check.requests for check in checks)
    # In a container that was given, each blob is deleted by itself.
    pieces = sum(check.service == "blob" for check in checks) if plan.container else 0
    return counted + pieces + _OF_A_ROOM * len(plan.services)


def diagnose(
    plan: DoctorPlan,
    account: Account,
    checks: Sequence[Check],
    deadline: "Deadline",
    guarding: "Guarding",
    watch: Callable[[Iterator[CheckOutcome]], list[CheckOutcome]] = list,
) -> tuple[Diagnosis, CheckStage]:
    """Run the checks, and remove what they made, also after an interruption; ``watch`` sees each result as it comes.

    Raises:
        NotFound: a container or a table that the user named is not there.
    """
    stage = CheckStage(account, plan.services, plan.container, deadline, guarding)
    stage.names |= _list_names(plan, account)
    _require_named(plan, stage)
    with _removing(stage):
        results = watch(_run_each(checks, stage))
    if not plan.tells_names:
        results = [replace(each, detail=stage.hide_names(each.detail)) for each in results]
    counts = {verdict: sum(each.verdict == verdict for each in results) for verdict in CheckVerdict}
    diagnosis = Diagnosis(
        format_version=FORMAT_VERSION,
        azguard_version=__version__,
        account=account.name if plan.tells_names else None,
        requests=stage.tap.requests,
        holds=counts[CheckVerdict.HOLDS],
        differs=counts[CheckVerdict.DIFFERS],
        not_possible=counts[CheckVerdict.NOT_POSSIBLE],
        checks=results,
    )
    return diagnosis, stage


def _list_names(plan: DoctorPlan, account: Account) -> dict[str, str]:
    """Return the names that a report leaves out, and the word in the place of each."""
    container = {plan.container: "CONTAINER"} if plan.container else {}
    hosts = {urlsplit(endpoint).netloc: "HOST" for endpoint in account.endpoints.values()}
    return {**hosts, **container, account.name: "ACCOUNT"}


def _require_named(plan: DoctorPlan, stage: CheckStage) -> None:
    """Ask for the container and the table that the user named.

    Raises:
        NotFound: it is not there.
    """
    given = None if plan.container is None else stage.locate(Kind.CONTAINER, plan.container)
    for target in filter(None, (given, plan.writers)):
        operation = TABLE_ENTITY_QUERY if target.kind is Kind.TABLE else CONTAINER_LIST_BLOBS
        asked: dict[str, Any] = {"top": 1} if target.kind is Kind.TABLE else {"maxresults": 1}
        found = stage.send(operation, stage.through_tap(target), **asked)
        if isinstance(found.error, NotFound):
            raise found.error


@contextmanager
def _removing(stage: CheckStage) -> Iterator[None]:
    try:
        yield
    finally:
        with hold_back_interruptions():
            stage.remove_all()


def _run_each(checks: Sequence[Check], stage: CheckStage) -> Iterator[CheckOutcome]:
    """Run the checks: those of the machine, then the others in rooms that are made for them."""
    of_machine = [check for check in checks if check.part == machine.PART]
    yield from (_run(check, stage) for check in of_machine)
    stage.open_rooms()
    yield from (_run(check, stage) for check in checks if check not in of_machine)


def _run(check: Check, stage: CheckStage) -> CheckOutcome:
    # What a check writes is not what the user waits for: a signal that came meanwhile ends the run after it.
    with commits.step():
        found = _find(check, stage)
    detail = _OWN_NAME.sub("azguard-doctor-…", found.detail)
    return CheckOutcome(check.part, check.name, check.service, found.verdict.value, detail)


def _find(check: Check, stage: CheckStage) -> CheckFinding:
    missing = stage.find_obstacle(check.service)
    if missing is not None:
        return not_possible(missing)
    try:
        return check.run(stage)
    except AzguardError as error:
        commits.raise_interruption(error)
        return not_possible(error.message)
    # A check judges the answers to what it tries; these are answers to its preparations.
    except (NoAnswer, Refusal, Unreadable) as error:
        return not_possible(translate(error, stage.find_target(check.service)).message)
