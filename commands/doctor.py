"""``azguard doctor``: does all that azguard promises hold here?"""

from typing import TYPE_CHECKING, Annotated

from azguard.accounts import endpoints
from azguard.accounts.account import Target
from azguard.address import Kind
from azguard.cli import completers
from azguard.cli.context import Environment
from azguard.cli.options import common
from azguard.cli.options.types import DURATION, TEXT, ValueType
from azguard.cli.parsing.rows import flag, option
from azguard.cli.parsing.tree import Group
from azguard.cli.rules import checked
from azguard.errors import Forbidden, Partial, UsageError

if TYPE_CHECKING:
    from azguard.doctor.run import Diagnosis

_SECONDS, _FULL_SECONDS = 60.0, 900.0
_GUARDED_ALONE = (
    "only rights make guarded writes the only ones: a role for the identity of azguard's jobs alone, keys off, "
    "no stored access policy that allows writes"
)


def _read_services(text: str, name: str) -> tuple[str, ...]:
    named = tuple(each.strip() for each in text.split(","))
    if unknown := next((each for each in named if each not in endpoints.SERVICES), None):
        raise UsageError(f"{name}: {unknown!r} is not a service", hint="blob, table, queue, file")
    return named


_NAMES = ValueType("services", _read_services)
app = Group()


@app.command(
    spec=common.remote("doctor tries all conditions itself, on what it makes"),
    rules=(checked("--writers", "a container or a table", "doctor._locate"),),
)
def doctor(
    env: Environment,
    container: Annotated[
        str | None,
        option(
            "--container",
            "NAME",
            "Work in this container.",
            TEXT,
            completer=completers.containers,
            otherwise="make one, and delete it",
        ),
    ] = None,
    only: Annotated[
        tuple[str, ...] | None,
        option("--only", "SERVICE,...", "Check only these: blob, table, queue, file.", _NAMES, otherwise="all"),
    ] = None,
    writers: Annotated[
        str | None,
        option(
            "--writers",
            "CONTAINER|TABLE",
            "Look also for other writers: container:NAME or table:NAME.",
            TEXT,
            completer=completers.containers,
        ),
    ] = None,
    full: Annotated[bool, flag("--full", "Try each operation under each condition.")] = False,
    with_names: Annotated[bool, flag("--with-names", "Tell the names of the account and its user.")] = False,
    timeout: Annotated[
        float | None, option("--timeout", "DURATION", "Try for this long.", DURATION, otherwise="60s; with --full 15m")
    ] = None,
) -> int:
    """Check whether all that azguard promises holds on this machine, with this login and on this account.

    Each line of the table is a check. It holds; or it differs, with what came; or it is not possible here, with the
    reason. Exit 0 if all hold, 20 if some differ. Attach the result with -o json to a report of a problem: it has no
    key, and without --with-names no name of the account or its user.

    It writes only in a container, table, queue and share that it makes, whose names begin with azguard-doctor, and
    deletes them at the end, also after Ctrl-C. It tells first about how many requests it sends. By default it tries
    what safe-update, lock run and guarded writes rest on, in less than a minute.

    Examples:
        azguard doctor
        azguard doctor --only table,queue -o json
    """
    from azguard.cli.input import addresses
    from azguard.doctor import run

    plan = run.DoctorPlan(
        services=only or tuple(env.account.endpoints),
        container=None if container is None else env.locate(container, Kind.CONTAINER).address.container,
        writers=None if writers is None else _locate(env, writers),
        is_full=full,
        tells_names=with_names,
    )
    checks = run.list_checks(plan, env.account, env.folders, env.environ)
    env.out.info(f"about {run.count_requests(plan, checks)} requests{'' if full else ', which cost less than a cent'}")
    seconds = timeout or (_FULL_SECONDS if full else _SECONDS)
    deadline = env.patience(None, seconds)
    guarding = addresses.guarding(env)
    found, stage = run.diagnose(
        plan, env.account, checks, deadline, guarding, lambda each: env.out.gather(each, "checks")
    )
    status = _show(env, found)
    if container is None and isinstance(stage.obstacles.get("blob"), Forbidden):
        env.out.info("hint: --container NAME works in a container of yours")
    if writers is not None:
        env.out.info(_GUARDED_ALONE)
    if stage.services and len(stage.obstacles) == len(stage.services):
        raise stage.obstacles[stage.services[0]]
    return status


def _locate(env: Environment, text: str) -> Target:
    """Return a container, or a table where its kind is named."""
    kind = None if text.startswith((f"{Kind.TABLE}:", "http:", "https:")) else Kind.CONTAINER
    target = env.locate(text.removeprefix(f"{Kind.CONTAINER}:"), kind)
    if target.kind not in (Kind.CONTAINER, Kind.TABLE):
        raise UsageError(f"--writers: {text} is neither a container nor a table", hint="container:NAME or table:NAME")
    return target


def _show(env: Environment, found: "Diagnosis") -> int:
    """Show the findings, as a table or whole; return the exit status."""
    is_table = env.out.format in ("table", "tsv") and not env.out.query
    status = env.out.answer(found.checks if is_table else found, Partial.exit_code if found.differs else 0)
    if is_table:
        # The table shows the beginning of it.
        for each in found.checks:
            if each.verdict != "holds":
                env.out.info(f"{each.verdict}: {each.check}: {each.detail}")
    env.out.info(f"{found.holds} hold, {found.differs} differ, {found.not_possible} are not possible here")
    return status
