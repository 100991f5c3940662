"""What to do next where an update did not end well: the kept work, and the command that resumes it."""

import shlex
from collections.abc import Callable
from datetime import UTC, datetime

from azguard.accounts.target import Target
from azguard.cli import command_line
from azguard.cli.context import Environment
from azguard.errors import AzguardError, Locked, OutcomeUnknown
from azguard.updates.plan import UpdatePlan
from azguard.updates.result import RAW_OP


def keeper(env: Environment, target: Target, plan: UpdatePlan) -> Callable[[AzguardError, bytes | None], AzguardError]:
    """Return what saves the content that an update could not write, and says how to resume the update."""

    def keep(error: AzguardError, content: bytes | None) -> AzguardError:
        error = _with_saved(env, target, error, content)
        again = _again(env.argv, plan)
        if isinstance(error, OutcomeUnknown):
            return error.but(hint=_after_unknown(target, plan, again))
        if isinstance(error, Locked):
            return error
        return error.but(hint=f"resume it: {again}")

    return keep


def _with_saved(env: Environment, target: Target, error: AzguardError, content: bytes | None) -> AzguardError:
    from azguard.updates import unsaved

    if content is None:
        return error
    path = unsaved.save_unwritten_content(env.folders.kept, target, content, datetime.now(UTC))
    if path is None:
        return error
    detail = (*error.detail, f"the new content is kept in {path}")
    return error.but(detail=detail, facts={**error.facts, "kept": str(path)})


def _after_unknown(target: Target, plan: UpdatePlan, again: str) -> str:
    if not plan.leaves_trace:
        return f"without a lineage only you can tell: azguard {target.kind} get {shlex.quote(target.address.short)}"
    ask = f"azguard safe-update {shlex.quote(str(target.address))} --op-id {RAW_OP}{plan.op} --status"
    return f"ask for its outcome: {ask}\n      if it was not applied, run it again under the same id: {again}"


def _again(argv: tuple[str, ...], plan: UpdatePlan) -> str:
    """Return the command line that resumes an update under the same op id, without its secrets."""
    own, rest = command_line.split(argv)
    if plan.leaves_trace and command_line.find_value(own, "--op-id") is None:
        own += ["--op-id", f"{RAW_OP}{plan.op}"]
    return command_line.show(["azguard", *own, *rest])
