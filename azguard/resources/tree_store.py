"""Files under a prefix of a service, as trees see them, which know no service: each service adds its requests."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, NamedTuple, Protocol

from azguard import naming
from azguard.accounts.account import Target
from azguard.address import Address, Kind
from azguard.errors import Forbidden
from azguard.frozen import frozen
from azguard.guards.resolve import Conditions
from azguard.requests.deadline import Deadline
from azguard.requests.results import Written
from azguard.resources import properties
from azguard.resources.delivery import Admit
from azguard.wire.rows import Operation


class ListedItem(NamedTuple):
    """One file as the service lists it."""

    #: The prefix included.
    name: str
    #: None of a blob of which there are only uncommitted blocks, and of a directory.
    etag: str | None = None
    last_modified: datetime | None = None
    content_length: int | None = None
    #: In base64, where the service vouches for it.
    content_md5: str | None = None
    #: Of a blob, where the listing tells it.
    blob_type: str | None = None
    #: Whether it is a directory, of a service that has such.
    is_folder: bool = False


class TreeFolders(Protocol):
    """The directories of a service that has such, under a prefix."""

    def walk(self, deadline: Deadline) -> Iterator[ListedItem]:
        """Yield all files, and each directory after what is in it, the one that the prefix names at last."""

    def locate(self, name: str) -> Target:
        """Return the directory of that name, the prefix included."""

    def delete(self, target: Target, deadline: Deadline) -> bool:
        """Delete a directory, and return whether it was there; the service refuses it if it is not empty.

        Raises:
            BadRequest: it is not empty.
        """


@frozen(kw_only=True)
class Transfer:
    """One file on its way."""

    target: Target
    conditions: Conditions
    deadline: Deadline
    #: Told the bytes sent or read so far.
    progress: Callable[[int], None]


@frozen(kw_only=True)
class TreePut(Transfer):
    """One file to write."""

    source: BinaryIO
    #: Its properties besides the content, as ``TreeStore.settings`` returns them.
    settings: Any
    op: str
    #: Whether a file that exists is left alone; the conditions only create then.
    skip: bool


@frozen(kw_only=True)
class TreeGet(Transfer):
    """One file to read into a local one, whole or not at all."""

    file: Path
    admit: Admit
    #: In the listing, by which a way to read may be chosen; the file may have another size now.
    size: int | None


@frozen(kw_only=True)
class TreeStore(ABC):
    """Files under a prefix of a service."""

    #: Of each file.
    KIND: ClassVar[Kind]
    #: The operations whose conditions guard a put, a get and a delete. Each put of a file is a rename, for example.
    PUT: ClassVar[Operation]
    GET: ClassVar[Operation]
    DELETE: ClassVar[Operation]

    #: The container or the share, which may be a snapshot.
    root: Target
    #: The beginning of all names: empty, or with a slash at its end.
    prefix: str
    #: Returns the properties of a file of this name, of the service's kind; only a put needs them. Raises a UsageError
    #: if one is such that no file can have.
    settings: Callable[[str], Any]

    @property
    def address(self) -> str:
        """Return the address of the prefix, for people and results."""
        return f"{self.KIND.value}:{self.root.address.container}/{self.prefix}"

    def name(self, relative: str) -> str:
        """Return the address of a file for its line, even if its name is one that cannot be asked for."""
        return f"{self.address}{relative}"

    def cut(self, item: ListedItem) -> str:
        """Return the name of a listed file relative to the prefix."""
        return item.name.removeprefix(self.prefix)

    @property
    def folders(self) -> TreeFolders | None:
        """Return its directories; None where a name with slashes is all that there is."""
        return None

    @property
    def fold(self) -> Callable[[str], str] | None:
        """Return the function that folds the names of one file to one key; None if each name is of its own file."""
        return None

    def find_reason_to_skip(self, name: str) -> str | None:  # where every name may be a file's
        """Return why a file is left out that has this name, the prefix included; None if it is not."""
        return None

    def locate(self, name: str) -> Target:
        """Return the file of that name, the prefix included.

        Raises:
            UsageError: the service takes no such name.
        """
        root, kind = self.root.address, self.KIND
        naming.check(kind.value, kind.value, (root.container, name))
        return Target(self.root.account, Address(kind, (root.container, name), root.snapshot))

    def locate_new(self, name: str) -> Target:
        """Return the file of that name, the prefix included, that is to be written.

        Raises:
            UsageError: the service takes no such name, or programs that use the files could not open it.
        """
        return self.locate(name)

    def check(self, deadline: Deadline) -> None:
        """Refuse to begin where no file can be written; a caller who may not ask for the root may begin.

        Raises:
            NotFound: the root does not exist.
            AzguardError: the service does not answer, or knows no such caller.
        """
        try:
            properties.fetch(self.root, Conditions(), deadline)
        except Forbidden:
            pass

    def find_etag(self, target: Target, deadline: Deadline) -> str | None:
        """Return the version of a file that is there, None if there is none.

        Raises:
            Forbidden: the caller may not look.
        """
        found = properties.find(target, deadline)
        return None if found is None else found.etag

    @abstractmethod
    def list_items(self, deadline: Deadline) -> Iterator[ListedItem]:
        """Yield the files under the prefix, page by page, in constant memory."""

    @abstractmethod
    def put(self, put: TreePut) -> tuple[Any, str | None]:
        """Write a file; return the result and the file's lineage."""

    @abstractmethod
    def get(self, get: TreeGet) -> tuple[Any, str | None]:
        """Read a file; return the result and the file's lineage."""

    @abstractmethod
    def delete(self, target: Target, conditions: Conditions, deadline: Deadline, *, listed: str | None) -> Written:
        """Delete a file; ``listed`` is its ETag as it was just listed."""
