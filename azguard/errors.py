"""Every way azguard can fail, as a tree of exceptions.

::

    AzguardError                1   internal          a bug, or an answer of an unknown kind
    ├── UsageError              2   usage             refused before any request
    ├── Partial                20   partial           some items of a batch failed
    ├── NotModified            34   not_modified      conditional read: unchanged
    ├── BadRequest             40   bad_request       the service refused the request as malformed
    ├── Unauthenticated        41   unauthenticated
    ├── Changed                42   changed           the condition failed: another write came since you read
    │   └── Gone                                      …or deleted it
    ├── Forbidden              43   forbidden
    ├── NotFound               44   not_found
    ├── Exists                 45   exists            create-only, and it exists; a key of another change
    ├── Locked                 49   locked            leased by another, wrong or missing lease id
    ├── Unavailable            53   unavailable       unreachable, throttled or failing; nothing was applied
    ├── TransformFailed        65   transform_failed  your command or patch failed; nothing written
    ├── OutputFailed           73   output_failed     done, but its result could not be written
    ├── OutcomeUnknown         74   unknown           sent, and it cannot be known whether it was applied
    ├── GaveUp                 75   gave_up           still busy or contended at the deadline
    ├── LockLost               77   lock_lost         your lease ended under your command, or a higher fence has written
    ├── ConfigError            78   config            bad configuration or profile
    ├── NotExecutable         126   not_executable    the command to run cannot be executed
    ├── CommandNotFound       127   command_not_found there is no such command to run
    └── Interrupted           130   interrupted       Ctrl-C

Exceptions carry facts; the words around them are chosen by the command line.
"""

from collections.abc import Callable, Mapping
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeVar

E = TypeVar("E", bound="AzguardError")
# The names of the fields of each kind of error, once they were asked for.
_FIELDS: dict["type[AzguardError]", frozenset[str]] = {}


@dataclass
class AzguardError(Exception):
    """What happened, in one sentence, and the facts known about it.

    It cannot be changed once it is built: ``but`` builds another one.
    """

    #: What happened, in one plain sentence, which names no option of the command line.
    message: str
    address: str | None = None
    #: What to type next. Only the command line sets it; the core names the ``reason``.
    hint: str | None = None
    #: More lines for people, shown under the message.
    detail: tuple[str, ...] = ()
    http_status: int | None = None
    service_code: str | None = None
    request_id: str | None = None
    expected_etag: str | None = None
    current_etag: str | None = None
    lease_state: str | None = None
    #: What else is known, for the JSON error object and for the words of the hint.
    facts: Mapping[str, object] = field(default_factory=dict)
    #: What only the words of the hint name; the JSON error object leaves it out.
    values: Mapping[str, object] = field(default_factory=dict)
    #: The name of the cause, by which the command line finds the words and the way out: see ``cli/words/table.py``.
    reason: str | None = None
    #: The argument that is wrong, as the core names it, such as ``if_match``; the command line knows its option.
    argument: str | None = None
    #: The exit status that the caller asked for instead of the kind's own.
    exit_status: int | None = None
    #: What is there now, if it was read after the refusal: see ``settle.Finding``.
    seen: Any = field(default=None, repr=False, compare=False)

    kind: ClassVar[str] = "internal"
    exit_code: ClassVar[int] = 1
    #: Whether the same command may succeed if simply run again.
    retriable: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__init__(self.message)
        if self.exit_status is not None:
            self.__dict__["exit_code"] = self.exit_status
        self.__dict__["facts"] = MappingProxyType(dict(self.facts))
        self.__dict__["values"] = MappingProxyType(dict(self.values))

    def __setattr__(self, name: str, value: object) -> None:
        # Python itself sets ``__traceback__``, ``__context__`` and the like while an error is on its way.
        is_first = name not in self.__dict__ and name in _list_fields(type(self))
        if not is_first and not name.startswith("__"):
            raise FrozenInstanceError(f"an error cannot be changed: build another with but({name}=…)")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        if not name.startswith("__"):
            raise FrozenInstanceError(f"an error cannot be changed: its {name} stays")
        super().__delattr__(name)

    def __reduce__(self) -> tuple[Callable[..., "AzguardError"], tuple[Any, ...], Mapping[str, object]]:
        # A mapping that cannot be changed cannot be pickled either.
        known = {each.name: getattr(self, each.name) for each in fields(self)}
        known |= {"facts": dict(self.facts), "values": dict(self.values)}
        notes = {"__notes__": list(self.__notes__)} if hasattr(self, "__notes__") else {}
        return _rebuild, (type(self), known), notes

    def __str__(self) -> str:
        return self.message

    def but(self, **changes: Any) -> Self:
        """Return another error like this one, with other values for some fields."""
        other = replace(self, **changes).with_traceback(self.__traceback__)
        other.__cause__ = self.__cause__
        other.__suppress_context__ = self.__suppress_context__
        return other

    def at_line(self, line: int) -> Self:
        return self.but(message=f"line {line}: {self.message}", facts={**self.facts, "line": line})

    def as_kind(self, kind: type[E], **changes: Any) -> E:
        """Return an error of another kind with the same fields, and other values for some of them."""
        return kind(**{each.name: getattr(self, each.name) for each in fields(self)} | changes)

    def as_json(self) -> dict[str, object]:
        """Return the facts of the JSON error object, in the contract's order."""
        return {
            "kind": self.kind,
            "message": self.message,
            "exit_code": self.exit_code,
            "address": self.address,
            "http_status": self.http_status,
            "service_code": self.service_code,
            "expected_etag": self.expected_etag,
            "current_etag": self.current_etag,
            "lease_state": self.lease_state,
            "request_id": self.request_id,
            "retriable": self.retriable,
            "hint": self.hint,
            **self.facts,
        }

    # A dataclass would compare and hash by value; an exception is itself.
    __eq__ = object.__eq__
    __hash__ = Exception.__hash__


def _list_fields(kind: type[AzguardError]) -> frozenset[str]:
    if kind not in _FIELDS:
        _FIELDS[kind] = frozenset(each.name for each in fields(kind))
    return _FIELDS[kind]


def _rebuild(kind: type[E], known: Mapping[str, Any]) -> E:
    return kind(**known)


class UsageError(AzguardError):
    """Refused before any request."""

    kind, exit_code = "usage", 2


class Partial(AzguardError):
    """Some items failed; each has its own code."""

    kind, exit_code = "partial", 20


class NotModified(AzguardError):
    """A conditional read found nothing newer."""

    kind, exit_code = "not_modified", 34


class BadRequest(AzguardError):
    """The service refused the request as malformed."""

    kind, exit_code = "bad_request", 40


class Unauthenticated(AzguardError):
    """No login was possible, or the service does not accept it."""

    kind, exit_code = "unauthenticated", 41


class LoginFailed(Unauthenticated):
    """No token was available, so that nothing was sent to the service."""


class Changed(AzguardError):
    """The condition failed: another wrote since you read, or you never read; nothing of yours was written."""

    kind, exit_code = "changed", 42


class Gone(Changed):
    """The condition failed because the resource was deleted since you read it."""


class Forbidden(AzguardError):
    """The key or the SAS is wrong, or the key, SAS or role does not permit this."""

    kind, exit_code = "forbidden", 43


class NotFound(AzguardError):
    """There is no such resource; or this job holds no such lock or lease."""

    kind, exit_code = "not_found", 44


class Exists(AzguardError):
    """It exists, and the command only creates; or the key was used for another change."""

    kind, exit_code = "exists", 45


class Locked(AzguardError):
    """Leased by another, or the lease id is wrong or missing."""

    kind, exit_code, retriable = "locked", 49, True


class Unavailable(AzguardError):
    """Unreachable, throttled or failing until the deadline; nothing was applied."""

    kind, exit_code, retriable = "unavailable", 53, True


class TransformFailed(AzguardError):
    """Your command or patch failed; nothing was written."""

    kind, exit_code = "transform_failed", 65


class OutputFailed(AzguardError):
    """The command did its work, writes included; its output could not be written."""

    kind, exit_code = "output_failed", 73


class OutcomeUnknown(AzguardError):
    """A write was sent, and it cannot be known whether it was applied."""

    kind, exit_code = "unknown", 74


class GaveUp(AzguardError):
    """Still busy or contended at the deadline; nothing was applied."""

    kind, exit_code, retriable = "gave_up", 75, True


class LockLost(AzguardError):
    """The lease was lost while your command ran, or a holder with a higher fence has written since."""

    kind, exit_code = "lock_lost", 77


class ConfigError(AzguardError):
    """The configuration or a profile is bad."""

    kind, exit_code = "config", 78


class NotExecutable(AzguardError):
    """The command to run cannot be executed."""

    kind, exit_code = "not_executable", 126


class CommandNotFound(AzguardError):
    """There is no such command to run."""

    kind, exit_code = "command_not_found", 127


class Interrupted(AzguardError):
    """Ctrl-C."""

    kind, exit_code = "interrupted", 130
