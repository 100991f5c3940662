"""The mutants. Each leaves out one rule, or puts back one fault that was once found."""

from dataclasses import dataclass
from pathlib import Path


class AnchorGone(Exception):
    """The text that a mutant replaces is not there, or there twice: the product has changed, and the mutant must."""


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    name: str
    #: The rule that it leaves out.
    rule: str
    file: str
    old: str
    new: str
    #: The scenario of the explorer that catches it.
    scenario: str
    #: The bound under which it does, by ``Bound``'s fields; None is that of the short tests.
    bound: dict[str, int] | None = None

    def apply(self, root: Path) -> str:
        """Put it into a tree; return the text of the file as it was.

        Raises:
            AnchorGone: the file has not exactly one place for it.
        """
        path = root / self.file
        before = path.read_text()
        if (count := before.count(self.old)) != 1:
            raise AnchorGone(f"{self.name}: {self.file} has {count} places for it, not one:\n{self.old}")
        path.write_text(before.replace(self.old, self.new))
        return before


_ONCE = "azguard/worker/once.py"
_HANDLING = "azguard/worker/handling.py"
_UPDATE = "azguard/updates/update.py"
_LINEAGE = "azguard/requests/lineage.py"
_CALLS = "azguard/requests/calls.py"
_SETTLE = "azguard/requests/settle.py"
_HELD = "azguard/locks/held_lock.py"
_SLOTS = "azguard/locks/slot_leases.py"
_BLOBS = "azguard/locks/lock_blobs.py"
_JOBS = "azguard/locks/job_locks.py"
_CONTENT = "azguard/blobs/updates.py"

MUTANTS = (
    Mutant(
        "a second run of a tree does not know what the first wrote",
        "2, --op-id",
        "azguard/trees/uploads.py",
        "return op_of_key(key, endpoints.plain(target.endpoint), str(target.address))",
        "return fresh_op()",
        "tree put, again",
    ),
    Mutant(
        "a lost answer is a refusal",
        "2, rule 0",
        _CALLS,
        "return CallOutcome.NOT_SENT if was_never_sent else CallOutcome.IN_DOUBT",
        "return CallOutcome.NOT_SENT if was_never_sent else CallOutcome.REFUSED",
        "put",
    ),
    Mutant(
        "a 503 is a refusal",
        "2, rule 0",
        _CALLS,
        "is_refused = found in REFUSALS or",
        "is_refused = found in REFUSALS or found == 503 or",
        "put",
    ),
    Mutant(
        "a refusal of a single write is believed",
        "2, rule 1",
        _SETTLE,
        "        if is_perhaps_ours(error, self.request.target):\n            try:",
        "        if self.attempts < 0:\n            try:",
        "put, sent twice",
    ),
    Mutant(
        "a refusal of an update is believed",
        "2, rule 1",
        _UPDATE,
        "if sent.outcome is CallOutcome.REFUSED and sent.error and is_perhaps_ours(sent.error, run.resource.target):",
        "if sent.outcome is CallOutcome.NOT_SENT and sent.error:",
        "update, no lineage, sent twice",
    ),
    Mutant(
        "a refusal ends an earlier doubt",
        "2, rule 1",
        _UPDATE,
        "            run.doubted = before  # This",
        "            run.doubted = None  # This",
        "update, lineage",
        {"faults": 1, "foreign": 1},
    ),
    Mutant(
        "a refusal under a lease that was broken is believed",
        "2, rule 1",
        "azguard/updates/doubt.py",
        "    is_open = ours_alone or (alike and not run.plan.leaves_trace)",
        "    is_open = alike and not run.plan.leaves_trace",
        "update, lease, sent twice",
    ),
    Mutant(
        "a write that was refused under a lease that had ended is forgotten",
        "2, rule 1",
        "azguard/updates/doubt.py",
        '    if verdict is Verdict.NOT_YET and run.guard == "lease":',
        "    if verdict is Verdict.NOT_YET and run.attempts < 0:",
        "update, lease, copied",
        {"faults": 2, "stops": 1},
    ),
    Mutant(
        "the answer to another request is believed",
        "2, rule 3",
        "azguard/wire/client.py",
        "if (echo := answered.get(REQUEST_ID)) and (given := asked.get(REQUEST_ID)) and echo != given:",
        "if not answered:",
        "lock, renewed",
    ),
    Mutant(
        "the Date of an answer is the service's clock",
        "2, rule 4",
        "azguard/requests/service_codes.py",
        "return None if found is None else datetime.fromisoformat(found[1])",
        "import azguard.times; return azguard.times.find_http_date(error.response.headers.get('Date'))",
        "workers, one stopped",
    ),
    Mutant(
        "a record alone says that a lock is held",
        "2, rule 5",
        _JOBS,
        "    state = _look_at_lease(known, deadline)\n    if hold is not None:",
        "    state = lease_state.look(known.target, deadline)\n    if hold is not None:",
        "hold, check, release",
    ),
    Mutant(
        "a record on a lock speaks for every lease",
        "2, rule 5",
        "azguard/leases/owners.py",
        '        if not self.lease:\n            return "that lease is over"',
        '        if self.lease == ".":\n            return "that lease is over"',
        "lock, shown",
    ),
    Mutant(
        "a listing ends with its first page",
        "2, rule 6",
        _CALLS,
        "        if marker is None:\n            return\n        seen.add(marker)",
        "        return\n        seen.add(marker)",
        "lock, readers",
    ),
    Mutant(
        "azguard does not look for its own write",
        "2, lineage",
        _LINEAGE,
        "return any(op == entry for entry, _ in self.entries) or (isinstance(op, str)",
        "return op is None or (isinstance(op, str)",
        "updates, lineage",
    ),
    Mutant(
        "the lineage keeps one write",
        "2, lineage",
        _LINEAGE,
        "entries=((op, bare(parent)), *self.entries)[:DEPTH]",
        "entries=((op, bare(parent)), *self.entries)[:1]",
        "updates, lineage",
    ),
    Mutant(
        "each attempt has an op of its own",
        "2, lineage",
        "azguard/updates/run.py",
        "lineage = state.lineage.after(plan.op, state.etag)",
        "lineage = state.lineage.after(self.tools.new_op(), state.etag)",
        "updates, lineage",
    ),
    Mutant(
        "a version that was replaced proves that the write was not",
        "2, lineage",
        _LINEAGE,
        "        return Verdict.NEVER\n    return Verdict.UNKNOWN",
        "        return Verdict.NEVER\n    return Verdict.NEVER",
        "update, lineage",
        {"faults": 1, "foreign": 1},
    ),
    Mutant(
        "an unchanged version proves that the write was not",
        "2, the fence",
        _UPDATE,
        "            ended = supersede(run, self.lease)\n        except OutcomeUnknown as failure:",
        "            run.doubted = None\n            ended = None\n        except OutcomeUnknown as failure:",
        "update, given up",
    ),
    Mutant(
        "a write that is sent again has no condition",
        "2, the loop",
        _CONTENT,
        "        return lambda held: CommittedVersion.of(commit(_condition_on(state, held)))",
        "        sent: list[int] = []\n\n"
        "        def send(held: str | None) -> CommittedVersion:\n"
        "            sent.append(1)\n"
        "            under = _condition_on(state, held) if len(sent) == 1 else Conditions(lease_id=held)\n"
        "            return CommittedVersion.of(commit(under))\n\n"
        "        return send",
        "update, lineage",
        {"faults": 1, "foreign": 1},
    ),
    Mutant(
        "a write loses the metadata of others",
        "2, the loop",
        _CONTENT,
        "        stamp = with_lineage(settings.metadata or {}, state.carry_on(lineage)).get(KEY)",
        "        stamp = with_lineage(settings.metadata or {}, state.carry_on(lineage)).get(KEY)\n"
        "        settings = replace(settings, metadata={})",
        "updates, lineage",
    ),
    Mutant(
        "a key names every change",
        "2, --op-id",
        "azguard/updates/resource.py",
        "    if change is None or applied.change is None or applied.change == change.digest:",
        "    if change is None or applied.change is None or applied.at is None or applied.change:",
        "op-id of another change",
    ),
    Mutant(
        "a key whose change was there is forgotten",
        "2, --op-id",
        _UPDATE,
        "            if work.is_unchanged and not run.plan.is_remembered:",
        "            if work.is_unchanged:",
        "op-id, nothing to change",
    ),
    Mutant(
        "a run that was killed leaves no doubt",
        "2, --op-id",
        "azguard/updates/run.py",
        "        if self.tools.journal is not None and self.plan.leaves_trace:\n"
        "            self.tools.journal.record_sending",
        "        if self.tools.journal is not None and self.attempts < 0:\n"
        "            self.tools.journal.record_sending",
        "op-id twice",
        {"foreign": 1, "kills": 1},
    ),
    Mutant(
        "a put over any version keeps the word that no key is left out",
        "2, --op-id",
        _LINEAGE,
        "has_all_keys = self.has_all_keys and parent != UNSEEN",
        "has_all_keys = True",
        "op-id, asked after a put over any version",
    ),
    Mutant(
        "an update that changes nothing leaves a doubt",
        "2, --guard ledger",
        _UPDATE,
        "        if run.doubted is not None:\n            return supersede(run, self.lease)\n        return run.end(",
        "        return run.end(",
        "entity, ledger, created by another",
    ),
    Mutant(
        "a run that was killed before it told its end leaves no doubt",
        "2, --op-id",
        "azguard/updates/run.py",
        "            self.tools.once_told(journal.forget)",
        "            journal.forget()",
        "op-id, killed at its end",
    ),
    Mutant(
        "a lease is acquired on any version",
        "2, --guard lease",
        _CONTENT,
        'headers={Condition.IF_MATCH.header: state.etag or "*"},',
        "headers={},",
        "updates, lease",
    ),
    Mutant(
        "a ledger without the row of the update",
        "2, --guard ledger",
        "azguard/tables/updates.py",
        "return lambda _: CommittedVersion(_transact(self.target, changes, deadline))",
        "return lambda _: CommittedVersion(_transact(self.target, changes[:1], deadline))",
        "entity, ledger",
    ),
    Mutant(
        "a lease on another version tells of a write",
        "2, --guard lease",
        "azguard/updates/leases.py",
        "if not self.held or self._id is None or state.etag != self._over:",
        "if not self.held or self._id is None or state.etag == self._id:",
        "update, lease, on what is refused",
    ),
    Mutant(
        "equal tags are ours although the lease was lost",
        "2, everything else",
        "azguard/blobs/tags.py",
        "    if not is_held:",
        "    if not is_held and current.tags != wanted:",
        "tags",
    ),
    Mutant(
        "a row that gives an update up is a commit",
        "2, --guard ledger",
        "azguard/tables/updates.py",
        "is_void = found.entity.get(_OUTCOME) == _VOID",
        "is_void = found.entity.get(_OUTCOME) == _NAME",
        "entity, ledger, op-id given up",
    ),
    Mutant(
        "the version that another made after ours is said to be ours",
        "2, the loop",
        "azguard/updates/doubt.py",
        "    if _is_ours(run, state):",
        "    if _is_ours(run, state) or run.attempts:",
        "updates, lineage",
    ),
    Mutant(
        "a ledger proves nothing once the lineage is gone",
        "7, a needless 74",
        "azguard/updates/doubt.py",
        "        if state.in_ledger is False and run.doubted is not run.unledgered",
        "        if state.in_ledger is False and state.lineage.entries and run.doubted is not run.unledgered",
        "entity, ledger, op-id twice",
        {"faults": 1, "foreign": 1},
    ),
    Mutant(
        "a file that has grown since is not searched for our write",
        "7, a needless 74",
        "azguard/files/replacing.py",
        "    if not is_of(found, version.op):\n        etag: str",
        "    if not is_of(found, version.op) or found.size != made.length:\n        etag: str",
        "file put",
        {"faults": 1, "foreign": 1},
    ),
    Mutant(
        "a lease that is not held any more may still be held",
        "7, a needless 74",
        "azguard/leases/actions.py",
        "        return Finding(Verdict.NOT_YET) if is_held else Finding(Verdict.COMMITTED, {})\n\n    def judge",
        "        return Finding(Verdict.NOT_YET) if is_held else Finding(Verdict.UNKNOWN)\n\n    def judge",
        "lock, release given up",
    ),
    Mutant(
        "a put is sent for a version that was replaced before",
        "7, a needless 74",
        "azguard/blobs/refusals.py",
        'if key == "If-Match"}',
        'if key == ""}',
        "put, again",
        {"faults": 1, "foreign": 1},
    ),
    Mutant(
        "a delete may have been done of a version that was replaced before",
        "7, a needless 74",
        "azguard/blobs/deletes.py",
        "    if before.is_another:",
        '    if before.is_another and before.etag == "":',
        "delete, again",
        {"faults": 1, "foreign": 1},
    ),
    Mutant(
        "an append goes to any place",
        "2, everything else that writes",
        "azguard/blobs/content/append_blob.py",
        "        place = {} if position is None else {Condition.APPEND_POSITION.header: str(position)}",
        "        place: dict[str, str] = {}",
        "append",
    ),
    Mutant(
        "a lease that may be ours is not given back",
        "4",
        "azguard/updates/leases.py",
        "        if lease_id is None:\n            return\n        self._id = None",
        "        if lease_id is None or not self.held:\n            return\n        self._id = None",
        "update, lease, given up",
    ),
    Mutant(
        "a look carries the lease id of the write that it settles",
        "4",
        _CONTENT,
        "        return replace(self, lease_id=None).read(deadline)",
        "        return self.read(deadline)",
        "update, caller's lease",
        {"faults": 1, "foreign": 2},
    ),
    Mutant(
        "a fence is not raised",
        "5.2",
        _BLOBS,
        "        fence=(fence_before or 0) + 1,",
        "        fence=fence_before or 1,",
        "lock, two runs",
    ),
    Mutant(
        "the term of a lock counts from its answer",
        "5.5",
        _SLOTS,
        "            ends=sent_at + settings.seconds,",
        "            ends=settings.now() + settings.seconds,",
        "lock, to the end of its lease",
    ),
    Mutant(
        "the term of a renewal counts from its answer",
        "5.5",
        _HELD,
        "                self.ends = sent_at + self._held.seconds",
        "                self.ends = self._now() + self._held.seconds",
        "lock, renewed",
    ),
    Mutant(
        "a refused renewal is a lost answer",
        "5.6",
        _HELD,
        "    return is_lease_problem(error) or status(error) == HTTPStatus.NOT_FOUND\n\n\ndef release",
        "    return status(error) == HTTPStatus.NOT_FOUND\n\n\ndef release",
        "lock, renewed",
    ),
    Mutant(
        "a job releases the lock of another",
        "5.10",
        "azguard/locks/hold_records.py",
        "return hold.scope == self.scope and scope.is_own_job(hold.job, self.job)",
        "return hold.scope == self.scope",
        "hold, check, release",
    ),
    Mutant(
        "a message is deleted before its key is noted as done",
        "6",
        _HANDLING,
        "        try:\n            self._hold.finish()\n        except Changed:",
        "        try:\n"
        "            self._inbox.delete(self._taken, self._receipt)\n"
        "            self._hold.finish()\n"
        "        except Changed:",
        "workers, one message",
    ),
    Mutant(
        "a key that is done runs again",
        "6",
        _ONCE,
        '        if row.get("state") == DONE:\n            is_other',
        '        if row.get("state") == POISONED:\n            is_other',
        "workers, one stopped",
    ),
    Mutant(
        "a claim is taken over before its end",
        "6",
        _ONCE,
        "return None if now is not None and now >= until else HeldByAnother",
        "return None if now is not None else HeldByAnother",
        "workers, one stopped",
    ),
    Mutant(
        "a claim is used that another has taken over since",
        "6, once-table",
        _ONCE,
        "        if claimed.etag is not None:\n            return claimed\n",
        "        if claimed is not None:\n            return claimed\n",
        "workers, one stopped for long",
        {"faults": 1, "stops": 1, "switches": 0},
    ),
    Mutant(
        "a bad message is deleted before its copy is there",
        "6",
        _HANDLING,
        "            copy = self._inbox.send_to_poison(self._taken)",
        "            self._inbox.delete(self._taken, self._receipt)\n"
        "            copy = self._inbox.send_to_poison(self._taken)",
        "worker, poison",
    ),
    Mutant(
        "a message is deleted with the receipt before the last",
        "6",
        _HANDLING,
        "        self._receipt = self._inbox.hide(self._taken, receipt, seconds)\n",
        "        self._inbox.hide(self._taken, receipt, seconds)\n",
        "worker, poison",
        {"stops": 1, "switches": 0},
    ),
    Mutant(
        "a temporary file that may come late is forgotten",
        "files",
        "azguard/files/temporary.py",
        "            made.is_doubtful = True\n            made.remove()\n            commits.raise_interruption",
        "            made.remove()\n            commits.raise_interruption",
        "file update",
        {"faults": 1},
    ),
    Mutant(
        "the write of an entity drops its lineage",
        "2, lineage",
        "azguard/tables/writes.py",
        "Lineage.parse(self.conditions.lineage).after(self.op, parent)",
        "Lineage().after(self.op, parent)",
        "entity, op-id, replace between",
    ),
    Mutant(
        "the next writer drops the keys",
        "2, --op-id",
        _LINEAGE,
        "has_all_keys=has_all_keys or begins)",
        "has_all_keys=has_all_keys or begins, keys=AppliedKeys())",
        "op-id, put between",
    ),
    Mutant(
        "a copy takes any version of its source",
        "2, single writes",
        "azguard/resources/copies.py",
        "return {Condition.SOURCE_IF_MATCH.header: self.found.etag}",
        "return {}",
        "copy, of a source that changes",
    ),
    Mutant(
        "equal bytes at the end are taken for ours",
        "2, append",
        "azguard/blobs/content/append_blob.py",
        "if proof is Proof.CONTENT or (",
        "if proof in (Proof.NONE, Proof.CONTENT) or (",
        "append, equal lines",
    ),
    Mutant(
        "a blob is put over a higher fence",
        "5.2",
        "azguard/blobs/refusals.py",
        "    fences.refuse_higher(target, fence, theirs)\n    if theirs is None:\n",
        "    if True:\n",
        "put, fenced",
    ),
    Mutant(
        "tags are replaced that were not read",
        "2, guards",
        "azguard/blobs/tags.py",
        "    _compare(target, conditions.expected_etag, current)\n",
        "",
        "tags",
    ),
    Mutant(
        "tags that were there before may be ours",
        "2, rule 1",
        "azguard/blobs/tags.py",
        "        look_after_refusal=(lambda _: Finding(Verdict.NEVER)) if current.tags == wanted else None,\n",
        "",
        "tags, the same and answered",
    ),
    Mutant(
        "the blocks of two puts have the same ids",
        "2, large blobs",
        "azguard/blobs/content/put_blob.py",
        'encode_id(f"{place.op}{index:08d}")',
        'encode_id(f"{index:024d}")',
        "put, of blocks",
    ),
    Mutant(
        "blocks are taken for ours that are not",
        "2, large blobs",
        "azguard/blobs/content/upload.py",
        "        if [block.id for block in listed.committed] != list(ids):\n"
        "            return Finding(Verdict.UNKNOWN)\n",
        "",
        "put, of blocks, alone",
        {"faults": 1, "foreign": 1},
    ),
    Mutant(
        "a break is of whatever lease is there",
        "4",
        "azguard/leases/breaking.py",
        'return Conditions({Condition.IF_MATCH.header: state.etag}, "if-match", state.etag)',
        "return Conditions()",
        "lease, broken",
    ),
    Mutant(
        "a lease that was given up in doubt is forgotten",
        "4",
        "azguard/leases/guard.py",
        "            self.records.give_up(self.target, self.lease_id, _SECONDS)\n",
        "            self._forget()\n",
        "lease, of a guarded write",
    ),
    Mutant(
        "a lease is forgotten whose record is left",
        "files",
        "azguard/leases/process_leases.py",
        "is_done=is_released and not self.may_have_record",
        "is_done=is_released",
        "file metadata update, late",
        {"faults": 2, "kills": 1, "stops": 1},
    ),
    Mutant(
        "a change of a lease that may come late is forgotten",
        "files",
        "azguard/leases/process_leases.py",
        "        self.note.is_left = old.note.is_left\n",
        "",
        "file metadata update, late",
        {"faults": 2, "stops": 1},
    ),
    Mutant(
        "a record of a holder comes late, and undoes a write",
        "files",
        "azguard/files/guarding.py",
        "    if held.may_move:\n",
        "    if False:\n",
        "file metadata update",
    ),
    Mutant(
        "a late copy gives a lock without a process a term again",
        "5.10",
        "azguard/locks/steps.py",
        "        if not held.may_come_late:\n            return\n",
        "        return\n",
        "hold, for ever",
    ),
    Mutant(
        "a late copy locks for ever what was lost",
        "5.10",
        "azguard/locks/steps.py",
        "    with suppress(AzguardError):  # Another holder writes its own record.\n",
        "    if not lease_id:\n",
        "hold, for ever",
    ),
    Mutant(
        "a lease that was broken with a period is released as if it was held",
        "5.6",
        "azguard/locks/held_lock.py",
        '    return BROKEN if found.state == "breaking" else None\n',
        "    return None\n",
        "hold, lost to another",
        {"foreign": 1},
    ),
    Mutant(
        "a request for a lease that may come late is forgotten",
        "4",
        _SLOTS,
        "        if self._may_come_late(slot):\n",
        "        if False:\n",
        "lock, broken and taken again",
    ),
)
