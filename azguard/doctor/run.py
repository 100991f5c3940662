"""All checks in their order: what is planned, what it costs, and the diagnosis."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from azguard.accounts.account import Account, Target
from azguard.address import Kind
from azguard.doctor import account_kind, answers, login, machine, promises, rights, settling, writers
from azguard.doctor.checks import Check, CheckOutcome, Diagnosis, run_each, summarize
from azguard.doctor.stage import CheckStage
from azguard.errors import NotFound
from azguard.frozen import frozen
from azguard.processes.signals import hold_back_interruptions
from azguard.wire.operations.containers import CONTAINER_LIST_BLOBS
from azguard.wire.operations.tables import TABLE_ENTITY_QUERY

if TYPE_CHECKING:
    from azguard.files.guarding import Guarding
    from azguard.folders import Folders
    from azguard.requests.deadline import Deadline

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


def list_checks(plan: DoctorPlan, account: Account, folders: "Folders", environ: Mapping[str, str]) -> list[Check]:
    """Return the checks in their order."""
    services = plan.services
    return [
        *machine.list_checks(account, folders, environ),
        *login.list_checks(),
        *answers.list_checks(services),
        *account_kind.list_checks(services),
        *promises.list_checks(services, is_full=plan.is_full),
        *settling.list_checks(services, is_full=plan.is_full),
        *rights.list_checks(services),
        *(writers.list_checks(plan.writers) if plan.writers is not None else ()),
        *answers.list_last_checks(services),
    ]


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
        of_machine = [check for check in checks if check.service is None and check.part == machine.PART]
        results = watch(_run(stage, of_machine, [check for check in checks if check not in of_machine]))
    hide = None if plan.tells_names else stage.hide_names
    return summarize(results, account=account.name, requests=stage.tap.requests, hide=hide), stage


def _require_named(plan: DoctorPlan, stage: CheckStage) -> None:
    """Ask for what the user named.

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


def _run(stage: CheckStage, of_machine: Sequence[Check], others: Sequence[Check]) -> Iterator[CheckOutcome]:
    yield from run_each(of_machine, stage)
    stage.open_rooms()
    yield from run_each(others, stage)


def _list_names(plan: DoctorPlan, account: Account) -> dict[str, str]:
    """Return the names that a report leaves out, and the word in the place of each."""
    container = {plan.container: "CONTAINER"} if plan.container else {}
    hosts = {urlsplit(endpoint).netloc: "HOST" for endpoint in account.endpoints.values()}
    return {**hosts, **container, account.name: "ACCOUNT"}


@contextmanager
def _removing(stage: CheckStage) -> Iterator[None]:
    try:
        yield
    finally:
        with hold_back_interruptions():
            stage.remove_all()
