"""What commands take and answer, and which exit statuses they can end with, as data: ``azguard help --json``.

The form is held by ``schemas/description.json``. A run under a command of the user's ends with its status as well.
"""

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from azguard import __version__, errors
from azguard.cli.help.pages import HelpText
from azguard.cli.parsing.rows import CONDITIONS, Row
from azguard.cli.parsing.tree import Command
from azguard.cli.rules import Rule
from azguard.wire.operations.shares import FILE_FORCE_CLOSE_HANDLES
from azguard.wire.operations.tables import TABLE_BATCH
from azguard.wire.rows import Condition, Lease, Operation, Write

#: Grows where something is taken away or means something else; what is new is added without that.
FORMAT_VERSION = 1
_SCHEMAS = Path(__file__).parent / "schemas"
_REFERENCE = "#/$defs/"
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
    errors.Partial: {"--recursive", "--account", "--max-messages", "--stop-on-error", "--full"},
    errors.Exists: {"--if-exists", "--create", "--op-id"},
    errors.TransformFailed: {"--any-content"},
    errors.GaveUp: {"--wait"},
}
# What takes several requests, and reads records that azguard wrote.
_OF_STEPS = (errors.Exists, errors.OutcomeUnknown, errors.LockLost, errors.TransformFailed)
_OF_MANY = (FILE_FORCE_CLOSE_HANDLES,)
_OF_COMMAND = (errors.Partial, errors.TransformFailed, errors.GaveUp, errors.LockLost, errors.NotExecutable,
               errors.CommandNotFound)  # fmt: skip


def describe_all(commands: Iterable[tuple[str, Command]]) -> dict[str, Any]:
    """Return the description of commands, each with its words, such as ``blob put``."""
    found = [_describe(name, command) for name, command in commands]
    return {"format_version": FORMAT_VERSION, "version": __version__, "commands": found}


def _describe(name: str, command: Command) -> dict[str, Any]:
    told = HelpText(command.help)
    shown = [row for row in command.rows if not row.is_hidden]
    return {
        "name": name,
        "summary": " ".join(told.summary.split()),
        "notes": [" ".join(each.split()) for each in told.notes],
        "examples": told.examples,
        "topics": told.topics,
        "arguments": [_describe_argument(row) for row in shown if row.is_argument],
        "options": [_describe_option(row) for row in shown if not row.is_argument],
        "rules": [_describe_rule(rule) for rule in command.rules],
        "conditions": _describe_conditions(command),
        "runs_command": runs_command(command),
        "statuses": list_statuses(command),
        "result": _find_schema(name),
        "no_result_because": _find_reason(name),
    }


def _describe_argument(row: Row) -> dict[str, Any]:
    return {
        "metavar": row.metavar,
        "type": _describe_type(row),
        "otherwise": row.otherwise or None,
        "required": row.is_required,
        "repeatable": row.is_many,
        "help": row.help,
    }


def _describe_option(row: Row) -> dict[str, Any]:
    return {
        "names": list(row.flags),
        "off": row.off or None,
        "metavar": row.metavar or None,
        "type": _describe_type(row),
        "bare": row.bare,
        "default": row.default if row.is_flag else row.written_default or None,
        "otherwise": row.otherwise or None,
        "required": row.is_required,
        "repeatable": row.is_many,
        "variable": row.variable or None,
        "secret": row.is_secret,
        "group": row.panel,
        "help": row.help,
    }


def _describe_type(row: Row) -> dict[str, Any]:
    if row.is_flag:
        return {"name": "flag"}
    if row.choices:
        return {"name": "choice", "choices": list(row.choices)}
    if row.type is None or row.type.name == "text":
        return {"name": "file" if "FILE" in row.metavar.split("|") or row.metavar == "DIR" else "text"}
    limits = zip(("least", "most"), row.type.bounds or (), strict=False)
    return {"name": row.type.name, **{name: limit for name, limit in limits if math.isfinite(limit)}}


def _describe_rule(rule: Rule) -> dict[str, Any]:
    return {
        "kind": rule.kind,
        "options": list(rule.options),
        "others": list(rule.others),
        "unless": list(rule.unless),
        "why": rule.why or None,
        "hint": rule.hint or None,
        "checks": rule.does or None,
    }


def _describe_conditions(command: Command) -> dict[str, Any]:
    spec, operation = command.spec, command.spec.operation
    honoured = [] if operation is None else _list_honoured(operation)
    plain = honoured if spec.plain is None else _list_honoured(spec.plain)
    return {
        "options": [row.flags[0] for row in command.rows if row.panel == CONDITIONS and not row.is_hidden],
        "honoured": honoured,
        "only_with_source_url": [each for each in honoured if each not in plain],
        "without_one": None if operation is None else str(operation.write),
        "etag_kept_by": None if operation is None else str(operation.guard),
        "lease": None if operation is None else str(operation.lease),
        "none_because": spec.why_no_conditions,
    }


def _list_honoured(operation: Operation) -> list[str]:
    return sorted(f"--{each}" for each in operation.honours)


@cache
def _load() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((_SCHEMAS / "results.json").read_text("utf-8"))
    return found


def _find_schema(name: str) -> dict[str, Any] | None:
    """Return the JSON Schema of what a command shows, with all that it refers to; None if it shows no data."""
    known = _load()
    kinds = known["commands"][name]
    if isinstance(kinds, str):
        return None
    needed: dict[str, Any] = {}
    for kind in kinds:
        _add_needed(kind, known["$defs"], needed)
    references = [{"$ref": f"{_REFERENCE}{kind}"} for kind in kinds]
    whole = references[0] if len(references) == 1 else {"anyOf": references}
    return {"$schema": known["$schema"], **whole, "$defs": needed}


def _find_reason(name: str) -> str | None:
    """Return the kind of output of a command that shows no data; None if it shows data."""
    found = _load()["commands"][name]
    return found if isinstance(found, str) else None


def _add_needed(kind: str, known: Mapping[str, Any], needed: dict[str, Any]) -> None:
    if kind in needed:
        return
    needed[kind] = known[kind]
    for each in _list_references(known[kind]):
        _add_needed(each, known, needed)


def _list_references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        for key, value in part.items():
            if key == "$ref":
                yield value.removeprefix(_REFERENCE)
            else:
                yield from _list_references(value)
    elif isinstance(part, list):
        for each in part:
            yield from _list_references(each)


def list_statuses(command: Command) -> list[int]:
    """Return the statuses that a command can end with, besides that of a command that it runs."""
    found = set(_EVERY)
    spec = command.spec
    if spec.is_remote:
        found |= _REMOTE
    names = {name for row in command.own for name in row.flags}
    found |= {error.exit_code for error, options in _BY_OPTION.items() if options & names}
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
