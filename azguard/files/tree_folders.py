"""The directories of a share, for trees of files: walked, made where they are missing, and deleted when they are empty.

Source: https://learn.microsoft.com/rest/api/storageservices/list-directories-and-files, /create-directory and
/delete-directory
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from azguard.accounts.target import Target
from azguard.address import Address, Kind
from azguard.errors import Exists, NotFound
from azguard.files import listing, writes
from azguard.files.described import EntryListed
from azguard.requests import commits
from azguard.requests.calls import write_timeouts
from azguard.requests.commits import Verdict
from azguard.requests.deadline import Deadline
from azguard.requests.settle import Finding, WriteRequest, send_until_settled

# So many directories are remembered as made: a tree may have more of them than fit the memory.
_MOST_FOLDERS = 10_000


class Walked(NamedTuple):
    """A file or a directory below another one."""

    #: From the root of the share.
    name: str
    is_folder: bool
    etag: str | None = None
    last_modified: datetime | None = None
    content_length: int | None = None
    #: The service keeps what a writer once said of the content, whatever was written since: it proves nothing.
    content_md5: None = None


class _Made:
    """The directories that are known to be there, and those being made: one thread makes each."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._names = set[str]()
        self._under_way: dict[str, threading.Lock] = {}

    @contextmanager
    def once(self, name: str) -> Iterator[bool]:
        """Yield whether a directory is to be made here and now; others that ask for it wait until it is."""
        if name in self._names:
            yield False
            return
        with self._lock:
            own = self._under_way.setdefault(name, threading.Lock())
        with own:
            yield name not in self._names
            with self._lock:
                if len(self._names) >= _MOST_FOLDERS:
                    self._names.clear()
                self._names.add(name)
                self._under_way.pop(name, None)

    def forget(self, name: str) -> None:
        """Forget that a directory is there."""
        with self._lock:
            self._names.discard(name)


@dataclass(frozen=True)
class FileFolders:
    """The directories of a share below one of them, with that itself. Threads may use it at the same time."""

    #: It may be a snapshot.
    share: Target
    #: Empty, or the directory with a slash at its end.
    prefix: str
    _made: _Made = field(default_factory=_Made)

    def walk(self, deadline: Deadline) -> Iterator[Walked]:
        """Yield all files, and each directory after what is in it; nothing if the first one is not there.

        One page of the listing is kept for each directory on the way down, so that memory does not grow with the tree.

        Raises:
            NotFound: there is no such share.
        """
        first = self.prefix.rstrip("/")
        if first:
            yield from self._walk(first, deadline)
            return
        yield from self._walk_below("", deadline)

    def locate(self, name: str) -> Target:
        """Return the directory of that path."""
        share = self.share.address
        return Target(self.share.account, Address(Kind.DIR, (share.container, name), share.snapshot))

    def ensure(self, name: str, deadline: Deadline) -> None:
        """Make a directory, and those that it is in, unless they are there.

        Raises:
            AzguardError: one cannot be made, for example because a file has its name.
        """
        if not name:
            return
        with self._made.once(name) as is_new:
            if not is_new:
                return
            try:
                self._create(name, deadline)
            except NotFound as error:
                if error.reason != "parent_not_found":
                    raise
                self.ensure(name.rpartition("/")[0], deadline)
                self._create(name, deadline)

    def forget(self, name: str) -> None:
        """Forget that a directory was there."""
        self._made.forget(name)

    def delete(self, target: Target, deadline: Deadline) -> bool:
        """Delete a directory, which the service refuses if it is not empty; return whether it was there.

        Raises:
            BadRequest: it is not empty.
        """
        client = target.account.directory(target.address)
        try:
            self._settle(
                target,
                lambda: client.delete_directory(**write_timeouts(deadline)),
                deadline,
                if_there=Verdict.NOT_YET,
                if_not_there=Verdict.COMMITTED,
            )
        except NotFound:
            return False
        return True

    def _create(self, name: str, deadline: Deadline) -> None:
        target = self.locate(name)
        client = target.account.directory(target.address)
        try:
            self._settle(
                target,
                lambda: client.create_directory(**write_timeouts(deadline)),
                deadline,
                if_there=Verdict.COMMITTED,
                if_not_there=Verdict.NOT_YET,
            )
        except Exists:
            # That is all that was wanted.
            pass

    def _settle(
        self, target: Target, send: Callable[[], Any], deadline: Deadline, *, if_there: Verdict, if_not_there: Verdict
    ) -> None:
        """Send what may be done twice, because a directory without content has no version that could be lost."""

        def look(patience: Deadline) -> Finding[Any]:
            try:
                writes.fetch(target, None, patience)
            except NotFound:
                return Finding(if_not_there)
            return Finding(if_there)

        request = WriteRequest[Any](
            target=target,
            send=send,
            look=look,
            # What a refusal says is enough, even if it is of a second copy of the request.
            look_after_refusal=lambda _: Finding(Verdict.UNKNOWN),
            is_idempotent=True,
        )
        with commits.suppress():
            send_until_settled(request, deadline)

    def _walk(self, name: str, deadline: Deadline) -> Iterator[Walked]:
        try:
            yield from self._walk_below(name, deadline)
        except NotFound as error:
            if error.service_code == "ShareNotFound":
                raise
            # Deleted since it was listed, or never there.
            return
        yield Walked(name, is_folder=True)

    def _walk_below(self, name: str, deadline: Deadline) -> Iterator[Walked]:
        """Yield what is in a directory, with what is below it."""
        for each in listing.list_entries(self._locate_listed(name), deadline, prefix=None, limit=None):
            path = f"{name}/{each.name}" if name else each.name
            if each.type == Kind.DIR:
                yield from self._walk(path, deadline)
            else:
                yield _to_walked(path, each)

    def _locate_listed(self, name: str) -> Target:
        return self.locate(name) if name else self.share


def _to_walked(path: str, found: EntryListed) -> Walked:
    return Walked(
        name=path,
        is_folder=False,
        etag=found.etag,
        last_modified=found.last_modified,
        content_length=found.content_length,
    )
