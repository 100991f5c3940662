"""What follows from the rows of a command: the exit statuses that it can end with, and what a new user asks of it.

A line each: what guards it, how long it waits, what it does about a lost answer, what a second run does, and what its
exit statuses mean.
"""

from collections.abc import Collection

from azguard import errors
from azguard.cli.parsing.tree import Command
from azguard.wire.operations.shares import FILE_FORCE_CLOSE_HANDLES
from azguard.wire.operations.tables import TABLE_BATCH
from azguard.wire.rows import Condition, Guard, Lease, Operation, Settlement, Write

# 1 is a bug, and 143 the end by SIGTERM.
_EVERY = {0, 1, 143} | {
    each.exit_code for each in (errors.UsageError, errors.OutputFailed, errors.ConfigError, errors.Interrupted)
}
# What any request may be answered with, or none.
_REMOTE = {
    each.exit_code
    for each in (
        errors.BadRequest, errors.Unauthenticated, errors.Changed, errors.Forbidden, errors.NotFound, errors.Locked,
        errors.Unavailable, errors.GaveUp,
    )
}  # fmt: skip
_UNCHANGED = {Condition.IF_NONE_MATCH, Condition.IF_MODIFIED_SINCE}
# The options, or a word of an argument, that bring statuses of their own.
_BY_OPTION = {
    "--recursive": errors.Partial,
    "--account": errors.Partial,
    "--max-messages": errors.Partial,
    "--stop-on-error": errors.Partial,
    "--full": errors.Partial,
    "--if-exists": errors.Exists,
    "--create": errors.Exists,
    "--op-id": errors.Exists,
    "--any-content": errors.TransformFailed,
    "--wait": errors.GaveUp,
}
# What takes several requests, and reads records that azguard wrote.
_OF_STEPS = (errors.Exists, errors.OutcomeUnknown, errors.LockLost, errors.TransformFailed)
_OF_MANY = (FILE_FORCE_CLOSE_HANDLES,)
_OF_COMMAND = (errors.Partial, errors.TransformFailed, errors.GaveUp, errors.LockLost, errors.NotExecutable,
               errors.CommandNotFound)  # fmt: skip
# The statuses that a script tells apart, each in few words.
_MEANINGS = {
    20: "some failed",
    34: "not modified",
    42: "changed",
    44: "not found",
    45: "exists",
    49: "leased",
    53: "no answer and nothing applied",
    65: "your command or edit failed",
    74: "unknown",
    75: "still busy",
    77: "lock lost",
}
# What azguard does where no look tells whether a write was applied.
_LOST_ANSWERS = {
    Settlement.NO: "azguard asks again.",
    Settlement.NOTHING: "Nothing tells whether the write was applied: 74.",
    Settlement.REPEATED: "azguard sends it again: twice is as good as once.",
    Settlement.RECEIPT: "azguard sends it again: its receipt lets one of two through. If that cannot be known: 74.",
}
# A move says itself which version it moves, and onto what.
_MOVES = ("rename",)


def list_statuses(command: Command) -> list[int]:
    """Return the statuses that a command can end with, besides that of a command that it runs."""
    found = set(_EVERY)
    spec = command.spec
    if spec.is_remote:
        found |= _REMOTE
    names = {name for row in command.own for name in row.flags}
    found |= {error.exit_code for name, error in _BY_OPTION.items() if name in names}
    if runs_command(command):
        found |= {error.exit_code for error in _OF_COMMAND}
    if spec.operation is not None:
        found |= _list_of_operation(spec.operation, names)
    elif spec.is_remote:
        found |= {each.exit_code for each in _OF_STEPS}
    else:
        # Of the cache, a profile, or an emulator.
        found |= {errors.NotFound.exit_code, errors.Changed.exit_code, errors.Unavailable.exit_code}
    return sorted(found)


def runs_command(command: Command) -> bool:
    """Return whether it runs a command of the user's."""
    return any("CMD" in row.metavar for row in command.own)


def _list_of_operation(operation: Operation, names: Collection[str]) -> set[int]:
    found: set[type[errors.AzguardError]] = set()
    if operation.writes:
        found.add(errors.OutcomeUnknown)
    elif operation.honours & _UNCHANGED:
        found.add(errors.NotModified)
    # A transaction creates what its lines say.
    if operation.creates or operation is TABLE_BATCH:
        found.add(errors.Exists)
    if operation.fences or operation.lease is Lease.SUBJECT:
        found.add(errors.LockLost)
    # What is written in pieces, and what closes one handle after another.
    if operation.write is Write.APPENDS or (operation.writes and "--offset" in names) or operation in _OF_MANY:
        found.add(errors.Partial)
    return {each.exit_code for each in found}


def explain(command: Command, path: str) -> list[tuple[str, str]]:
    """Return the questions that apply to a command, each with its answer; none for one of this machine alone."""
    if not command.spec.is_remote:
        return []
    names = {name for row in command.rows if not row.is_hidden for name in row.flags}
    found = (
        ("Guard", _explain_guard(command, path, names)),
        ("Waiting", _explain_waiting(command)),
        ("A lost answer", _explain_lost_answer(command.spec.operation, names)),
        ("A second run", _explain_second_run(command.spec.operation, path, names)),
        ("Exit status", _explain_statuses(command, path, names)),
    )
    return [(question, text) for question, text in found if text]


def _explain_guard(command: Command, path: str, names: Collection[str]) -> str:
    operation, reason = command.spec.operation, command.spec.why_no_conditions
    if operation is None:
        return "" if reason is None else f"{_capitalize(reason, path)}."
    if operation.guard in (Guard.NONE, Guard.COMPARE) or not operation.writes or path.endswith(_MOVES):
        return ""
    if operation.write is Write.CHANGES:
        return "The version that this scope has read; if it has read none, the write is refused (42)."
    if operation.write in (Write.PUTS, Write.CREATES) and "--last-writer-wins" in names:
        return "The version that this scope has read; if it has read none, the write only creates."
    return ""


def _capitalize(reason: str, path: str) -> str:
    """Return a reason as a sentence; the name of a command is no word to write with a capital letter."""
    name = path.partition(" ")[2]
    return reason if reason.startswith(name) else f"{reason[0].upper()}{reason[1:]}"


def _explain_waiting(command: Command) -> str:
    defaults = {name: row.written_default or row.otherwise for row in command.rows for name in row.flags}
    wait, seconds = defaults.get("--wait", ""), defaults.get("--timeout", "")
    parts = ["Only with --wait" if wait == "do not wait" else f"{wait} (--wait)"] if wait else []
    # Only the lock of the table is waited for.
    parts = [f"Only with --with-table-lock, {parts[0]}"] if "--with-table-lock" in defaults else parts
    parts += [f"{seconds} for an answer of the service (--timeout)"] if seconds else []
    return f"{'; '.join(parts)}." if parts else ""


def _explain_lost_answer(operation: Operation | None, names: Collection[str]) -> str:
    if operation is None and "--op-id" not in names:
        return ""
    looks = "azguard looks, and writes again only if the write was not applied. If that cannot be known: 74."
    return looks if operation is None else _LOST_ANSWERS.get(operation.settle, looks)


def _explain_second_run(operation: Operation | None, path: str, names: Collection[str]) -> str:
    if "--op-id" in names:
        return "It changes nothing, with the same --op-id."
    creates = operation is not None and operation.write is Write.CREATES and "--last-writer-wins" not in names
    if creates and "--if-exists" in names:
        return "45, since it exists; 0 with --if-exists skip."
    if path.endswith(" delete") and operation is not None and operation.write is Write.CHANGES:
        return "44, since it is gone."
    return ""


def _explain_statuses(command: Command, path: str, names: Collection[str]) -> str:
    if path.endswith(" lock run"):
        return "The command's own; else 53 no answer, 75 held by others, 77 lost."
    if path.endswith(" queue work"):
        return "0 done, 20 some failed, 53 no answer, 75 stopped after failures in a row."
    if command.spec.operation is None and "--op-id" not in names:
        return ""
    found = (f"{status} {_MEANINGS[status]}" for status in list_statuses(command) if status in _MEANINGS)
    return f"{', '.join(['0 done', *found])}."
