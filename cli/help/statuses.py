"""The exit statuses that a command can end with, from what kind of command it is.

A run under a command of the user's ends with the status of that command as well.
"""

from collections.abc import Collection

from azguard import errors
from azguard.cli.parsing.tree import Command
from azguard.wire.operations.shares import FILE_FORCE_CLOSE_HANDLES
from azguard.wire.operations.tables import TABLE_BATCH
from azguard.wire.rows import Condition, Lease, Operation, Write

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
