"""The copy that the service makes into a temporary file: begun, waited for, checked, and stopped.

No request to copy names the destination, nor the file that is checked: the temporary file gets another name before. So
a request that comes late, or that the network sends twice, changes neither. At worst it leaves a temporary file.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from azguard.conditions.etags import quote
from azguard.errors import AzguardError, GaveUp, NotFound, OutcomeUnknown
from azguard.files import copy_sources, temporary, temporary_notes, writes
from azguard.files.copy_plans import FileCopy
from azguard.files.copy_sources import FileSource
from azguard.files.temporary import TemporaryFile
from azguard.processes.notes import ProcessNotes
from azguard.requests import commits
from azguard.requests.calls import write_timeouts
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.settle import Finding, WriteRequest, send_until_settled
from azguard.resources import copies
from azguard.resources.copies import PENDING, SUCCESS

# What the service calls "that of the source".
_OF_SOURCE = "source"


@dataclass(frozen=True)
class Begun:
    """A copy that the service makes into a temporary file."""

    given: FileCopy
    made: TemporaryFile
    copy_id: str
    #: Files into which a request may still copy whose answer was lost.
    doubtful: list[TemporaryFile]

    def remove_doubtful(self) -> None:
        """Delete what came late, if that can be done; raise no error."""
        for each in self.doubtful:
            each.remove()


def begin(given: FileCopy, notes: ProcessNotes | None, stack: ExitStack) -> Begun:
    """Have the service begin to copy into a temporary file, which ``stack`` removes.

    What a killed process left in the directory is deleted before.

    A request whose answer is lost, and of which nothing is found, is not sent again: it may come late. Instead there is
    another name.

    Raises:
        NotFound, Forbidden: the service may not read the source.
        Unavailable: the service does not answer.
    """
    deadline, doubtful = given.deadline.fresh(), list[TemporaryFile]()
    temporary_notes.sweep(notes, given.target, deadline)
    pauses = copies.pauses()
    while True:
        made = temporary.choose(given.target, {}, given.deadline.fresh, 0, notes)
        stack.callback(made.remove)
        request = WriteRequest[Any](
            target=made.target,
            send=lambda made=made: _send(given, made, deadline),  # type: ignore[misc]  # bound here
            look=lambda left, made=made: _find_begun(made, left),  # type: ignore[misc]  # bound here
            resend=False,
            is_undone_by_caller=True,
        )
        try:
            with commits.suppress():
                answer = send_until_settled(request, deadline).answer
        except OutcomeUnknown as error:
            made.is_doubtful = True
            doubtful.append(made)
            if deadline.passed:
                raise made.build_failed(error.message) from error
            # Longer each time: each name is a file that may have to be deleted.
            deadline.pause(next(pauses))
        except AzguardError as error:
            raise copy_sources.judge(error, given.source) from error
        else:
            return Begun(given, made, str(answer["copy_id"]), doubtful)


def _send(given: FileCopy, made: TemporaryFile, deadline: Deadline) -> Mapping[str, Any]:
    permission = {"permission_key": _OF_SOURCE} if given.settings.keeps_permission else {}
    answer: Mapping[str, Any] = made.client.start_copy_from_url(
        copies.to_url(given.source), **permission, **write_timeouts(deadline)
    )
    return answer


def _find_begun(made: TemporaryFile, patience: Deadline) -> Finding[Any]:
    """Return whether a copy was begun into a file that is no other request's."""
    try:
        found = writes.fetch(made.target, None, patience)
    except NotFound:
        return Finding(Verdict.UNKNOWN)
    return Finding(Verdict.UNKNOWN) if found.copy.id is None else Finding(Verdict.COMMITTED, {"copy_id": found.copy.id})


def await_end(begun: Begun, source: FileSource, tell: Callable[[int, int | None], None]) -> None:
    """Wait until the copy has ended well.

    Raises:
        Changed, NotFound, Forbidden, Unavailable: it was stopped, or failed, by what the service says.
        GaveUp: it takes too long.
    """
    given, made = begun.given, begun.made
    left, last = given.patience, -1
    for pause in copies.pauses():
        found = _fetch(begun, left)
        if found.copy.status != PENDING:
            break
        done, total = copies.read_progress(found.copy.progress)
        tell(done, total)
        if done != last and not given.is_strict:
            left, last = left.fresh(), done
        if left.remaining <= pause:
            raise _to_gave_up(given, done, total)
        left.pause(pause)
    if found.copy.status != SUCCESS:
        raise _to_failure(given, found)
    if found.size != source.size:
        raise made.build_failed(f"it has {found.size:,} bytes, and its source {source.size:,}")
    made.size = made.length = found.size
    made.etag = quote(found.etag)


def _fetch(begun: Begun, deadline: Deadline) -> Any:
    made = begun.made
    try:
        found = writes.fetch(made.target, None, deadline)
    except NotFound as error:
        raise made.build_failed("it was deleted") from error
    if found.copy.id not in (None, begun.copy_id):
        raise made.build_failed("something else was copied into it")
    return found


def keep_apart(begun: Begun) -> None:
    """Give the temporary file a name that no request to copy has, and make sure that it is what was copied."""
    begun.made.rename_away()
    found = _fetch(begun, begun.given.deadline.fresh())
    if found.copy.status not in (None, SUCCESS):
        raise begun.made.build_failed("something else is copied into it")
    begun.made.check()


def _to_failure(given: FileCopy, found: Any) -> AzguardError:
    failure = copies.build_failure(given.target, found, "nothing was written")
    is_abort = failure.reason == "copy_was_aborted"
    return failure.but(reason="file_copy_aborted") if is_abort else failure.but(reason="file_copy_failed")


def _to_gave_up(given: FileCopy, done: int, total: int | None) -> GaveUp:
    return GaveUp(
        f"the copy to {given.target} took too long, with {done:,} of {total or 0:,} bytes; it was stopped, and nothing "
        "was written",
        address=str(given.target.address),
        reason="file_copy_too_slow",
        facts={"copy_progress": f"{done}/{total or 0}"},
    )
