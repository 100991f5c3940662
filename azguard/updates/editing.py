"""A person edits content in an editor, and the update loop writes it, merged with what others wrote meanwhile.

Knows no service, and no editor but as a function. The person may take hours, so the loop, its deadline and the queue of
this machine's writers begin when the editor has ended. All attempts, however often the editor is opened, are one op.

What was typed is in a file from the first moment on. The file is deleted when its content is written; otherwise it
stays, with the version that it was made from beside it, so that a later session can go on.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from azguard.documents import diffs
from azguard.documents.diffs import Merged
from azguard.errors import AzguardError, TransformFailed, UsageError
from azguard.folders import make_private
from azguard.frozen import frozen
from azguard.processes import locked_file
from azguard.processes.file_command import ScratchFile
from azguard.requests.deadline import Deadline
from azguard.times import iso
from azguard.updates.recording import LocalRecords, MergedVersion, UpdateReport, UpdateRequest, update_and_record
from azguard.updates.resource import CommittedVersion, CurrentVersion, UpdateResult, find_applied
from azguard.updates.run import check_fence, require_existing

# As large as the content of an update may be.
_MOST_BYTES = 1 << 30
_BASE_SUFFIX = ".base"


@frozen(kw_only=True)
class EditTools:
    """What a session uses of the world outside."""

    #: Opens the editor on a file, and returns when it has ended.
    #:
    #: Raises:
    #:     TransformFailed: it failed.
    run_editor: Callable[[Path], None]
    #: Asks a person whether to open the editor again, and is told why; None without a terminal.
    ask: Callable[[str], bool] | None
    #: Called with what a person wants to know, as a line of text.
    tell: Callable[[str], None]
    #: Where the files of sessions are.
    folder: Path
    #: What the file is called after.
    name: str
    #: Refuses what was made of a source of this content type, by TransformFailed.
    check: Callable[[bytes, bytes, str | None], None]
    #: Completes what was made of a source.
    complete: Callable[[bytes, bytes], bytes] = lambda source, made: made


class EditConflict(Exception):
    """Another writer changed the same place: the editor has to be opened again."""

    def __init__(self, theirs: bytes, merged: Merged, problem: TransformFailed | None) -> None:
        super().__init__("the same place was changed")
        self.theirs = theirs
        self.merged = merged
        #: Why the merge cannot be written, although it has no conflict.
        self.problem = problem


class EditSession:
    """One session: its file, the version that it began with, and what the person made of it."""

    def __init__(self, tools: EditTools, resumed: Path | None = None) -> None:
        self._tools = tools
        self._resumed = resumed
        self._file: ScratchFile | None = None
        self._shown = b""
        self._base = b""
        self._mine = b""
        self._content_type: str | None = None
        self._seen: CurrentVersion | None = None
        #: The last version of others that the change is merged with; None if no other changed the content meanwhile.
        self.merged: CurrentVersion | None = None
        #: The open file of the version that the session began with, which is locked as long as the session lasts.
        self._locked: int | None = None

    @property
    def path(self) -> Path | None:
        """Return the file with what was typed; None before the editor was opened."""
        return None if self._file is None else self._file.path

    @property
    def is_changed(self) -> bool:
        return self._mine != self._base

    def open(self, source: bytes, content_type: str | None) -> None:
        """Let the person edit content, or go on with an earlier session's."""
        self._content_type = content_type
        if self._resumed is None:
            self._file = self._make_file(source)
            self._shown = source
            self._begin_from(source)
        else:
            self._file = ScratchFile(self._resumed)
            self._base = ScratchFile(_base_of(self._resumed)).read(_MOST_BYTES)
        self._mark_in_use()
        self._mine = self._edit()

    def see(self, state: CurrentVersion) -> None:
        """Note which version the next change is made over."""
        self._seen = state

    def change(self, source: bytes) -> bytes:
        """Return the person's content, merged into the current content if another writer has changed the source.

        Raises:
            EditConflict: the person and the other writer changed the same place.
        """
        if source == self._base:
            return self._tools.complete(source, self._mine)
        if not self.is_changed:
            self._tools.tell(f"you changed nothing; what another writer wrote meanwhile{self._when} stays")
            return source
        self.merged = self._seen
        merged = diffs.merge(self._base, self._mine, source)
        problem = None if merged.conflicts else self._find_problem(source, merged.content)
        if merged.conflicts or problem is not None:
            raise EditConflict(source, merged, problem)
        self._tools.tell(f"another writer wrote meanwhile{self._when}: your change is merged with theirs")
        return self._tools.complete(source, merged.content)

    def resolve(self, conflict: EditConflict) -> None:
        """Let the person put together what a merge could not.

        Raises:
            TransformFailed: the person does not want to, or the editor failed.
        """
        assert self._file is not None
        why = f"another writer changed the same place meanwhile{self._when}"
        if conflict.problem is not None:
            why = f"another writer wrote meanwhile{self._when}, and merged with that: {conflict.problem.message}"
        self._tools.tell(f"{why}; the editor opens on both")
        if self._tools.ask is not None and not self._tools.ask("merge them in the editor?"):
            raise TransformFailed(f"{why}; nothing was written")
        self._begin_from(conflict.theirs)
        self._file.write(conflict.merged.content)
        self._mine = self._edit()

    def leave(self, error: AzguardError) -> AzguardError:
        """Return the error with which a session ends; it names the file, if something was typed."""
        if self._file is None:
            return error
        if not self.holds_work():
            self._file.remove()
            return error
        path = str(self._file.path)
        detail = error.detail if "kept" in error.facts else (*error.detail, f"your text is kept in {path}")
        values = {**error.values, "is_edit": True}
        return error.but(detail=detail, facts={**error.facts, "kept": path}, values=values)

    def leave_unsaid(self) -> None:
        """Leave because of a signal, whose end says nothing of files: tell where what was typed is."""
        if self.holds_work():
            self._tools.tell(f"your text is kept in {self.path}")
        elif self._file is not None:
            self._file.remove()

    def close(self) -> None:
        if self._locked is not None:
            os.close(self._locked)

    def finish(self) -> None:
        """Delete the file, because what is in it is written; of an earlier session only where azguard made it."""
        is_ours = self._resumed is None or self._resumed.absolute().parent.parent == self._tools.folder.absolute()
        if self._file is not None and is_ours:
            self._file.remove()

    def holds_work(self) -> bool:
        """Return whether there may be something in the file that is nowhere else."""
        if self._file is None:
            return False
        try:
            return self._resumed is not None or self._file.read(_MOST_BYTES) != self._shown
        except TransformFailed:
            return False  # The person deleted it.

    @property
    def _when(self) -> str:
        """Return when the other writer wrote, as far as the service tells; who it was is not told."""
        at = None if self._seen is None else self._seen.last_modified
        return "" if at is None else f" ({iso(at)})"

    def _begin_from(self, base: bytes) -> None:
        """Take a version as what the person's change is a change of."""
        assert self._file is not None
        ScratchFile(_base_of(self._file.path)).write(base)
        self._base = base

    def _mark_in_use(self) -> None:
        """Keep the version locked until ``close``, so that no other process deletes the files as old."""
        assert self._file is not None
        with suppress(OSError):
            self._locked = locked_file.open_and_try(_base_of(self._file.path), os.O_RDONLY)

    def _make_file(self, content: bytes) -> ScratchFile:
        try:
            make_private(self._tools.folder)
        except OSError:
            return ScratchFile.make(self._tools.name, content)
        return ScratchFile.make(self._tools.name, content, self._tools.folder)

    def _edit(self) -> bytes:
        assert self._file is not None
        while True:
            self._tools.run_editor(self._file.path)
            made = self._file.read(_MOST_BYTES)
            if made == self._base + b"\n":
                made = self._base  # Many editors end the last line by themselves.
            problem = self._find_problem(self._base, made)
            if problem is None:
                return made
            if self._tools.ask is None:
                raise problem
            self._tools.tell(f"error: {problem.message}")
            if not self._tools.ask("open the editor again?"):
                raise problem

    def _find_problem(self, source: bytes, made: bytes) -> TransformFailed | None:
        if made == source:
            return None
        if diffs.has_marks(made) and not diffs.has_marks(source):
            return TransformFailed(
                "the marks of a conflict are still there; nothing was written", reason="edit_has_marks"
            )
        try:
            self._tools.check(source, made, self._content_type)
        except TransformFailed as problem:
            return problem
        return None


def edit_and_record(
    request: UpdateRequest,
    tools: EditTools,
    records: LocalRecords,
    *,
    start_deadline: Callable[[], Deadline],
    resumed: Path | None = None,
) -> UpdateReport:
    """Let a person edit a resource, write what they made exactly once, and record the version that was written.

    ``request`` is the update, but for its transform, which is the person. ``start_deadline`` begins the time that the
    service gets for a write. ``resumed`` is the file that an earlier session left.

    Raises:
        AzguardError: as ``update`` says; the error names the file with what was typed in its fact ``kept``.
    """
    session = EditSession(tools, resumed)
    try:
        report = _run(request, session, records, start_deadline)
    except AzguardError as error:
        raise session.leave(error) from error.__cause__
    except BaseException:
        session.leave_unsaid()
        raise
    else:
        session.finish()
    finally:
        session.close()
    return report


def _run(
    request: UpdateRequest, session: EditSession, records: LocalRecords, start_deadline: Callable[[], Deadline]
) -> UpdateReport:
    plan = request.plan
    state = request.resource.read(request.deadline)
    # With a key of an earlier run that is done there is nothing to edit: the loop finds that out, too.
    if find_applied(state, plan.op) is None:
        require_existing(request.resource, plan, state)
        check_fence(request.resource, plan, state)
        source = plan.create if state.etag is None and plan.create is not None else state.source
        session.open(source, state.content_type)
        if state.etag is None and not session.is_changed:
            nothing = UpdateResult(CommittedVersion(None), "unchanged", guard="if-none-match")
            return UpdateReport.of(request.target, plan.op, nothing, has_length=False)
    changed = replace(
        request, plan=replace(plan, transform=session.change, see=session.see), keep=lambda content: session.path
    )
    while True:
        try:
            report = update_and_record(replace(changed, deadline=start_deadline()), records)
        except EditConflict as conflict:
            session.resolve(conflict)
        else:
            merged = report.merged_with or MergedVersion.of(session.merged)
            return replace(report, merged_with=merged if report.outcome == "committed" else None)


def check_resumable(path: Path) -> None:
    """See that a file is one that a session left.

    Raises:
        UsageError: it is not there, or the version that it was made from is not beside it.
    """
    for each in (path, _base_of(path)):
        if not each.is_file():
            raise UsageError(f"{each} is not there", reason="edit_not_resumable")


def _base_of(path: Path) -> Path:
    return path.with_name(path.name + _BASE_SUFFIX)
