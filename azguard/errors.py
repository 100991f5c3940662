"""Every way azguard can fail, as a tree of exceptions: each has its kind and its exit status.

Exceptions carry facts; the words around them are chosen by the command line.
"""

from collections.abc import Callable, Mapping
from dataclasses import FrozenInstanceError, field, fields, replace
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeVar

from azguard.frozen import frozen

E = TypeVar("E", bound="AzguardError")
_IN_JSON = (
    "kind", "message", "exit_code", "address", "http_status", "service_code", "expected_etag", "current_etag",
    "lease_state", "request_id", "retriable", "hint",
)  # fmt: skip


@frozen(eq=False)
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
    #: The name of the cause, by which the command line finds the words and the way out: see ``cli/words/hints.py``.
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

    def __init_subclass__(cls, *, kind: str | None = None, exit_code: int = 1, retriable: bool = False) -> None:
        # Without arguments it is another case of the same kind.
        if kind is not None:
            cls.kind, cls.exit_code, cls.retriable = kind, exit_code, retriable

    def __post_init__(self) -> None:
        super().__init__(self.message)
        if self.exit_status is not None:
            self.__dict__["exit_code"] = self.exit_status
        self.__dict__["facts"] = MappingProxyType(dict(self.facts))
        self.__dict__["values"] = MappingProxyType(dict(self.values))

    def __setattr__(self, name: str, value: object) -> None:
        # Python itself sets ``__traceback__``, ``__context__`` and the like while an error is on its way.
        if not name.startswith("__"):
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
        return {name: getattr(self, name) for name in _IN_JSON} | dict(self.facts)


def _rebuild(kind: type[E], known: Mapping[str, Any]) -> E:
    return kind(**known)


def build_incomplete(
    error: AzguardError | KeyboardInterrupt, told: str, address: str | None, facts: Mapping[str, object], reason: str
) -> AzguardError:
    """Return the error of a write of several pieces that ended early; ``told`` says what is done."""
    if isinstance(error, KeyboardInterrupt):
        return build_interrupted(error, told, address, facts, reason)
    changes = {"facts": {**error.facts, **facts, "cause": error.kind}, "reason": reason, "exit_status": None}
    return error.as_kind(Partial, message=f"{told}: {error.message}", **changes)


def build_interrupted(
    signal: KeyboardInterrupt, told: str, address: str | None, facts: Mapping[str, object], reason: str | None = None
) -> "Interrupted":
    """Return the error of a write that a signal ended; ``told`` says what is done."""
    status = getattr(signal, "status", Interrupted.exit_code)
    return Interrupted(f"interrupted: {told}", address, facts=facts, reason=reason, exit_status=status)


class UsageError(AzguardError, kind="usage", exit_code=2):
    """Refused before any request."""


class Partial(AzguardError, kind="partial", exit_code=20):
    """Some items failed; each has its own code."""


class NotModified(AzguardError, kind="not_modified", exit_code=34):
    """A conditional read found nothing newer."""


class BadRequest(AzguardError, kind="bad_request", exit_code=40):
    """The service refused the request as malformed."""


class Unauthenticated(AzguardError, kind="unauthenticated", exit_code=41):
    """No login was possible, or the service does not accept it."""


class LoginFailed(Unauthenticated):
    """No token was available, so that nothing was sent to the service."""


class Changed(AzguardError, kind="changed", exit_code=42):
    """The condition failed: another wrote since you read, or you never read; nothing of yours was written."""


class Gone(Changed):
    """The condition failed because the resource was deleted since you read it."""


class Forbidden(AzguardError, kind="forbidden", exit_code=43):
    """The key or the SAS is wrong, or the key, SAS or role does not permit this."""


class NotFound(AzguardError, kind="not_found", exit_code=44):
    """There is no such resource; or this job holds no such lock or lease."""


class Exists(AzguardError, kind="exists", exit_code=45):
    """It exists, and the command only creates; or the key was used for another change."""


class Locked(AzguardError, kind="locked", exit_code=49, retriable=True):
    """Leased by another, or the lease id is wrong or missing."""


class Unavailable(AzguardError, kind="unavailable", exit_code=53, retriable=True):
    """Unreachable, throttled or failing until the deadline; nothing was applied."""


class TransformFailed(AzguardError, kind="transform_failed", exit_code=65):
    """Your command or patch failed; nothing was written."""


class OutputFailed(AzguardError, kind="output_failed", exit_code=73):
    """The command did its work, writes included; its output could not be written."""


class OutcomeUnknown(AzguardError, kind="unknown", exit_code=74):
    """A write was sent, and it cannot be known whether it was applied."""


class GaveUp(AzguardError, kind="gave_up", exit_code=75, retriable=True):
    """Still busy or contended at the deadline; nothing was applied."""


class LockLost(AzguardError, kind="lock_lost", exit_code=77):
    """The lease was lost while your command ran, or a holder with a higher fence has written since."""


class ConfigError(AzguardError, kind="config", exit_code=78):
    """The configuration or a profile is bad."""


class NotExecutable(AzguardError, kind="not_executable", exit_code=126):
    """The command to run cannot be executed."""


class CommandNotFound(AzguardError, kind="command_not_found", exit_code=127):
    """There is no such command to run."""


class Interrupted(AzguardError, kind="interrupted", exit_code=130):
    """Ctrl-C."""
