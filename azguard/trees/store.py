"""What a tree needs of a service, so that its code knows none: one small adapter per service implements this."""

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from azguard.accounts.account import Target
from azguard.guards.resolve import Conditions
from azguard.requests.deadline import Deadline
from azguard.requests.results import Written
from azguard.wire.rows import Operation


class ListedItem(Protocol):
    """One file as the service lists it."""

    @property
    def name(self) -> str:
        """Return its name, the prefix included."""

    @property
    def etag(self) -> str | None:
        """Return its version."""

    @property
    def last_modified(self) -> datetime | None:
        """Return when it was written."""

    @property
    def content_length(self) -> int | None:
        """Return how many bytes it has."""

    @property
    def content_md5(self) -> str | None:
        """Return the MD5 of its content in base64, where the service knows it."""


class WalkedItem(ListedItem, Protocol):
    """A file or a directory of a service that has directories."""

    @property
    def is_folder(self) -> bool:
        """Return whether it is a directory."""


class TreeFolders(Protocol):
    """The directories of a service that has such, under a prefix."""

    def walk(self, deadline: Deadline) -> Iterator[WalkedItem]:
        """Yield all files, and each directory after what is in it, the one that the prefix names at last."""

    def locate(self, name: str) -> Target:
        """Return the directory of that name, the prefix included."""

    def delete(self, target: Target, deadline: Deadline) -> bool:
        """Delete a directory, and return whether it was there; the service refuses it if it is not empty.

        Raises:
            BadRequest: it is not empty.
        """


class TreeStore(Protocol):
    """Files under a prefix of a service."""

    @property
    def address(self) -> str:
        """Return the address of the prefix, for people and results."""

    @property
    def prefix(self) -> str:
        """Return the beginning of all names: empty, or with a slash at its end."""

    @property
    def put_operation(self) -> Operation:
        """Return the operation whose conditions guard a put."""

    @property
    def get_operation(self) -> Operation:
        """Return the operation whose conditions guard a get."""

    @property
    def delete_operation(self) -> Operation:
        """Return the operation whose conditions guard a delete."""

    @property
    def folders(self) -> TreeFolders | None:
        """Return its directories; None where a name with slashes is all that there is."""

    @property
    def fold(self) -> Callable[[str], str] | None:
        """Return the function that folds the names of one file to one key; None if each name is of its own file."""

    def find_reason_to_skip(self, name: str) -> str | None:
        """Return why a file is left out that has this name, the prefix included; None if it is not."""

    def locate(self, name: str) -> Target:
        """Return the file of that name, the prefix included.

        Raises:
            UsageError: the service takes no such name.
        """

    def locate_new(self, name: str) -> Target:
        """Return the file of that name, the prefix included, that is to be written.

        Raises:
            UsageError: the service takes no such name, or programs that use the files could not open it.
        """

    def describe_settings(self, target: Target) -> str:
        """Return the settings besides the content that a put of this file sends, as one text.

        Raises:
            UsageError: a setting is one that no file can have.
        """

    def check(self, deadline: Deadline) -> None:
        """Refuse to begin where no file can be written.

        Raises:
            NotFound: what the prefix is in does not exist.
            AzguardError: the service does not answer, or knows no such caller.
        """

    def list_items(self, deadline: Deadline) -> Iterator[ListedItem]:
        """Yield what is under the prefix, page by page, in constant memory."""

    def find_etag(self, target: Target, deadline: Deadline) -> str | None:
        """Return the version that is there, None if there is none.

        Raises:
            Forbidden: the caller may not look.
        """

    def put(
        self,
        target: Target,
        source: BinaryIO,
        conditions: Conditions,
        op: str,
        deadline: Deadline,
        progress: Callable[[int], None],
        *,
        skip: bool,
    ) -> tuple[Any, str | None]:
        """Write a file; return the result and the file's lineage; ``progress`` is told the bytes sent so far.

        With ``skip`` the conditions only create, and a file that exists is left alone.
        """

    def get(
        self,
        target: Target,
        conditions: Conditions,
        file: Path,
        deadline: Deadline,
        progress: Callable[[int], None],
        admit: Callable[[str], None],
        *,
        size: int | None,
    ) -> tuple[Any, str | None]:
        """Read a file into another file, whole or not at all; return the result and the file's lineage.

        ``size`` is the size in the listing, by which a way to read may be chosen; the file may have another size now.
        ``admit``: see ``delivery.Admit``.
        """

    def delete(self, target: Target, conditions: Conditions, deadline: Deadline, *, listed: str | None) -> Written:
        """Delete a file; ``listed`` is its ETag as it was just listed."""
