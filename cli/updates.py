"""From safe-update's options to a plan for the core, and from its end to a result."""

import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import typer

from azguard import edits, safe_update
from azguard.account import Target
from azguard.address import Kind
from azguard.cli import files, values
from azguard.cli.context import Environment
from azguard.cli.groups import ORDER
from azguard.deadline import PATIENCE_SECONDS, Deadline
from azguard.errors import AzguardError, Locked, OutcomeUnknown, UsageError
from azguard.lineage import is_op, new_op, op_of_key
from azguard.safe_update import Attempts, Plan, Tools, Updated
from azguard.settled import Verdict
from azguard.versioned import Versioned

_SECONDS = 60.0
_EDITS = {"set_": "--set", "unset": "--unset", "increment": "--increment", "merge_patch": "--merge-patch",
          "json_patch": "--json-patch", "append": "--append"}  # fmt: skip
_RAW_OP = "op:"
_SECRET_OPTIONS = ("--connection-string", "--account-key", "--sas-token")


@dataclass(frozen=True)
class Asked:
    """The options of safe-update as typed; ``edits`` are (option, text) in their order."""

    edits: tuple[tuple[str, str], ...]
    command: tuple[str, ...]
    metadata: bool
    create: str | None
    op_id: str | None
    guard: str | None
    lease_id: str | None
    fence: int | None
    wait_lease: bool
    no_lineage: bool
    max_attempts: int | None
    timeout: str | None


@dataclass(frozen=True)
class Result:
    """What safe-update prints."""

    address: str
    etag: str | None
    last_modified: datetime | None
    version_id: str | None
    content_length: int | None
    guard: str
    attempts: int
    conflicts: int
    doubts: int
    outcome: str
    created: bool
    op_id: str


@dataclass(frozen=True)
class Status:
    """What became of an op: committed, not_committed or unknown."""

    address: str
    op_id: str
    outcome: str


@dataclass(frozen=True)
class Update:
    """One update, planned."""

    env: Environment
    target: Target
    resource: Versioned
    plan: Plan
    deadline: Deadline
    tools: Tools
    metadata: bool

    def finished(self, ended: Updated) -> Result:
        """Remember the version that was written and return the result."""
        self._remember(ended)
        return Result(
            address=str(self.target.address),
            etag=ended.landed.etag,
            last_modified=ended.landed.last_modified,
            version_id=ended.landed.version_id,
            content_length=None if ended.content is None or self.metadata else len(ended.content),
            guard=ended.guard,
            attempts=ended.attempts,
            conflicts=ended.conflicts,
            doubts=ended.doubts,
            outcome=ended.outcome,
            created=ended.created,
            op_id=f"{_RAW_OP}{self.plan.op}",
        )

    def _remember(self, ended: Updated) -> None:
        if ended.content is None:
            return  # an earlier run of this key wrote it: nothing was read or written now
        if self.metadata:
            # The content is as it was: whoever had read the version before has read this one too.
            self.env.follow(self.target, ended.base, ended.landed.etag, ended.lineage)
            return
        self.env.remember_content(self.target, ended.landed, ended.content, ended.lineage)


def in_order(ctx: typer.Context) -> tuple[tuple[str, str], ...]:
    """Return the built-in edits as (option, text) in the order they were typed."""
    texts: dict[str, Iterator[str]] = {name: iter(ctx.params.get(name) or ()) for name in _EDITS}
    return tuple((_EDITS[name], next(texts[name])) for name in ctx.meta[ORDER] if name in _EDITS)


def planned(env: Environment, address: str, asked: Asked) -> Update:
    """Return the update that the options describe.

    Raises:
        UsageError: they contradict each other, or one is malformed.
    """
    target = env.locate(address, writable=True)
    if target.kind is not Kind.BLOB:
        raise UsageError(f"safe-update does not take a {target.kind} address", hint="blob:CONTAINER/NAME")
    deadline = env.patience(asked.timeout, _SECONDS)
    lease_id = env.lease_id(target, asked.lease_id)
    plan = Plan(
        transform=_transform(env, target, asked, deadline),
        op=_op(target, asked.op_id),
        create=_create(asked),
        guard_by_lease=_by_lease(asked),
        stamps=not asked.no_lineage,
        lease_id=lease_id,
        fence=asked.fence,
        wait_lease=asked.wait_lease,
        max_attempts=asked.max_attempts,
        reach_seconds=PATIENCE_SECONDS if asked.timeout is None else None,
    )
    tell = _story(env, deadline)
    keep, past = _keeper(env, target, plan), Attempts(env.folders.attempts, plan.op, keyed=asked.op_id is not None)
    tools = Tools(turn=lambda: _turn(env, target, deadline, tell), tell=tell, keep=keep, attempts=past)
    return Update(
        env, target, _resource(target, asked.metadata, lease_id, asked.fence), plan, deadline, tools, asked.metadata
    )


def show_preview(env: Environment, address: str, asked: Asked) -> None:
    """Print the diff of what an update would do: as text, or inside the result if a format was asked for."""
    from azguard import diffs

    update = planned(env, address, asked)
    found = safe_update.preview(update.resource, update.plan, env.deadline)
    diff = diffs.unified(found.before or b"", found.after, update.target.address.short)
    outcome = "unchanged" if found.before == found.after else "dry_run"
    if env.shared.get("output") or env.out.query:
        env.show({"address": str(update.target.address), "etag": found.etag, "outcome": outcome, "diff": diff})
    elif diff:
        sys.stdout.write(diff if diff.endswith("\n") else diff + "\n")
    else:
        env.out.say(f"{update.target} would not change")


def status(env: Environment, address: str, asked: Asked) -> tuple[Status, int]:
    """Return what became of an op, and the exit status that says so."""
    if asked.edits or asked.command:
        raise UsageError("--status changes nothing", hint="leave the edits and the command out")
    target = env.locate(address)
    op = _op(target, asked.op_id)
    verdict = safe_update.became_of(_resource(target, asked.metadata), op, env.deadline)
    outcome, code = {
        Verdict.COMMITTED: ("committed", 0),
        Verdict.NOT_YET: ("not_committed", 44),
    }.get(verdict, ("unknown", 74))
    return Status(str(target.address), f"{_RAW_OP}{op}", outcome), code


def _resource(target: Target, metadata: bool, lease_id: str | None = None, fence: int | None = None) -> Versioned:
    from azguard import versioned_blob

    return (versioned_blob.BlobMetadata if metadata else versioned_blob.BlobContent)(target, lease_id, fence)


def _transform(env: Environment, target: Target, asked: Asked, deadline: Deadline) -> Callable[[bytes], bytes]:
    if asked.edits and asked.command:
        raise UsageError(f"{asked.edits[0][0]} and a command do not go together", hint="run safe-update twice")
    if asked.command:
        environ = {**env.environ, "AZGUARD_ADDRESS": str(target.address)}
        return lambda content: _filtered(asked.command, content, environ, deadline)
    if not asked.edits:
        raise UsageError(
            "nothing to do: no edit and no command",
            hint="add --set PATH=JSON or another edit, or a command: -- jq '.replicas += 1'",
        )
    chosen = [edits.parse(option, text, files.read, metadata=asked.metadata) for option, text in asked.edits]
    if not asked.metadata:
        return lambda content: edits.apply(chosen, content)
    return lambda content: edits.apply_to_metadata_text(chosen, content)


def _filtered(command: tuple[str, ...], content: bytes, environ: dict[str, str], deadline: Deadline) -> bytes:
    from azguard import filter_command

    return filter_command.run(
        command, content, environ=environ, deadline=deadline.started + deadline.seconds, clock=deadline.clock
    )


def _create(asked: Asked) -> bytes | None:
    if asked.create is None:
        return None
    if asked.metadata:
        raise UsageError("--create and --metadata do not go together", hint="create the blob first: azguard blob put")
    chosen = [edits.parse(option, text, files.read) for option, text in asked.edits]
    return edits.initial(asked.create or None, chosen)


def _by_lease(asked: Asked) -> bool:
    chosen = values.choice(asked.guard, "--guard", ("lineage", "lease"))
    if chosen == "lease" and asked.lease_id is not None:
        raise UsageError("--guard lease and --lease-id contradict each other", hint="leave one of them out")
    if chosen == "lineage" and asked.no_lineage:
        raise UsageError("--guard lineage and --no-lineage contradict each other", hint="leave one of them out")
    if asked.no_lineage and asked.op_id is not None:
        raise UsageError(
            "--no-lineage and --op-id contradict each other: the lineage is where the id is kept",
            hint="leave one of them out",
        )
    if asked.wait_lease and asked.lease_id is not None:
        raise UsageError("--wait-lease and --lease-id contradict each other", hint="leave one of them out")
    return chosen == "lease"


def _op(target: Target, key: str | None) -> str:
    if key is None:
        return new_op(os.urandom(12))
    if not key.strip():
        raise UsageError("--op-id is empty", hint="an unset shell variable looks like this; leave it out, or set it")
    if not key.startswith(_RAW_OP):
        return op_of_key(key, str(target.address))
    op = key.removeprefix(_RAW_OP)
    if not is_op(op):
        raise UsageError(
            f"--op-id: {key!r} is not an id that azguard made",
            hint=f"copy it whole from the result, or choose a key of your own that does not begin with {_RAW_OP}",
        )
    return op


def _story(env: Environment, deadline: Deadline) -> Callable[[str], None]:
    """Return what tells the story of an update for ``--verbose``: a line for each event, with the time elapsed."""
    return lambda text: env.out.tell(f"{deadline.elapsed:7.3f} s  {text}")


def _turn(
    env: Environment, target: Target, deadline: Deadline, tell: Callable[[str], None]
) -> AbstractContextManager[Any]:
    from azguard.turns import Turn

    return Turn(env.folders.queues, f"{target.endpoint} {target.address}", deadline, tell)


def _keeper(env: Environment, target: Target, plan: Plan) -> Callable[[AzguardError, bytes | None], None]:
    def keep(error: AzguardError, content: bytes | None) -> None:
        from azguard import kept_work

        path = None if content is None else kept_work.keep(env.folders.kept, target, content, datetime.now(UTC))
        if path is not None:
            error.detail = (*error.detail, f"the new content is kept in {path}")
            error.facts["kept"] = str(path)
        again = _again(env.argv, plan)
        if isinstance(error, OutcomeUnknown):
            error.hint = _after_unknown(target, plan, again)
        elif not isinstance(error, Locked):
            error.hint = f"resume it: {again}"

    return keep


def _after_unknown(target: Target, plan: Plan, again: str) -> str:
    if not plan.stamps:
        return f"without a lineage only you can tell: azguard {target.kind} get {shlex.quote(target.address.short)}"
    ask = f"azguard safe-update {shlex.quote(str(target.address))} --op-id {_RAW_OP}{plan.op} --status"
    return f"ask what became of it: {ask}\n      if it was not applied, run it again under the same id: {again}"


def _again(argv: tuple[str, ...], plan: Plan) -> str:
    """Return the command line that resumes an update under the same op id, without its secrets."""
    own = list(argv[: argv.index("--")] if "--" in argv else argv)
    rest = list(argv[len(own) :])
    shown: list[str] = []
    for word in own:
        secret = shown and shown[-1] in _SECRET_OPTIONS and not word.startswith("@")
        name, equals, _ = word.partition("=")
        url, query, _ = word.partition("?") if word.startswith(("http://", "https://")) else (word, "", "")
        if secret:
            shown.append("@FILE")
        elif equals and name in _SECRET_OPTIONS:
            shown.append(f"{name}=@FILE")
        else:
            shown.append(f"{url}?SAS" if query else word)
    if plan.stamps and not any(word.split("=")[0] == "--op-id" for word in own):
        shown += ["--op-id", f"{_RAW_OP}{plan.op}"]
    return shlex.join(["azguard", *shown, *rest])
