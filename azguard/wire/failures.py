"""Why there is no answer that can be believed, and what a refusal is. One class for each."""

from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit, urlunsplit

from azguard.errors import AzguardError
from azguard.frozen import frozen

E = TypeVar("E", bound=AzguardError)
# Numbers: the module of ``http.HTTPStatus`` takes 1 % of a short command.
SUCCESSES = range(200, 300)
_REDIRECTIONS = range(300, 400)
_NOT_MODIFIED = 304
#: The first status of a refusal.
REFUSED = 400
# The first status of a failure of the service.
_FAILED = 500


class Stage(Enum):
    """Where the way to a host ended before anything of the request was sent."""

    SETTING = "the URL"
    HOST = "the host"
    TLS = "the certificate of the host"
    CA_FILE = "the file of CA certificates"
    PROXY_SETTING = "the URL of the proxy"
    PROXY = "the proxy"
    PROXY_TLS = "the certificate of the proxy"
    TUNNEL = "the proxy's answer"
    SOCKS = "a SOCKS proxy without PySocks"


class NoAnswer(Exception):
    """There is no whole answer of the service; the cause is ``__cause__``, or the text."""

    @property
    def may_pass(self) -> bool:
        """Return whether asking again may be answered."""
        return True


class NotConnected(NoAnswer):
    """No connection came to be, so that nothing of the request was sent."""

    def __init__(self, stage: Stage, error: BaseException, *, status: int = 0, words: str = "") -> None:
        super().__init__(str(error) or type(error).__name__)
        self.stage = stage
        self.error = error
        #: What a proxy answered in the place of a tunnel.
        self.status = status
        self.words = words

    @property
    def may_pass(self) -> bool:
        """Return whether asking again soon may help: what answers there, or a setting of this machine, may be wrong."""
        import ssl

        is_untrusted = isinstance(self.error, ssl.SSLCertVerificationError)
        return self.stage in (Stage.HOST, Stage.PROXY, Stage.TLS, Stage.PROXY_TLS) and not is_untrusted


class Broken(Enum):
    """How an answer that was waited for broke off; the value says it in words."""

    CLOSED = "the connection was closed before an answer came"
    RESET = "the connection was reset"
    TIMED_OUT = "timed out"
    TRUNCATED = "the answer was cut short"
    OF_ANOTHER_REQUEST = "the answer belongs to another request"
    TOO_LONG = "the answer is longer than any of Azure Storage"


class BrokenAnswer(NoAnswer):
    """There is no whole answer in time, or it is another request's: the request may have been carried out."""

    def __init__(self, how: Broken) -> None:
        super().__init__(how.value)
        self.how = how

    @property
    def may_pass(self) -> bool:
        """Return whether asking again may be answered: an answer that is too long will be too long again."""
        return self.how is not Broken.TOO_LONG


class NotOfTheService(NoAnswer):
    """An answer that does not come from Azure Storage, or was changed on its way."""

    def __init__(self, status: int, headers: Mapping[str, str], altered: str | None = None) -> None:
        self.status = status
        #: What something in between did to an answer of the service's; None if it is another's.
        self.altered = altered
        #: Where a redirection leads, without a query, which may hold a SAS, and without a user; None if it is none.
        self.leads_to = _describe_location(headers.get("Location", "")) if is_redirection(status) else None
        kind = headers.get("Content-Type", "").partition(";")[0].strip()
        facts = [str(status), kind, f"by {server}" if (server := headers.get("Server")) else ""]
        #: What is known of it, such as ``200 text/html by nginx``.
        self.described = " ".join(fact for fact in facts if fact)
        super().__init__(f"the answer is not from Azure Storage: {self.described}")

    @property
    def may_pass(self) -> bool:
        """Return whether asking again may be answered by the service: a gateway says so while it cannot reach it."""
        return says_later(self.status)


class Refusal(Exception):
    """The service says no, or that it failed."""

    #: The answer that said so; None where a part of a whole answer did.
    response: "Response | None" = None

    def __init__(self, status_code: int, code: str | None, words: str = "") -> None:
        super().__init__(words or code or "")
        self.status_code = int(status_code)
        #: The service's own name of the reason, such as ``ConditionNotMet``.
        self.code = code


class ServiceRefusal(Refusal):
    """A refusal as it was answered: the text is the service's sentence, with the facts in lines of their own."""

    response: "Response"

    def __init__(self, response: "Response") -> None:
        told = _read_facts(response.content)
        message = told.pop("Message", "") or f"the service answered {response.status_code} {response.reason}".strip()
        in_body = told.pop("Code", "")
        code = response.headers.get("x-ms-error-code")
        facts = [message, f"ErrorCode:{in_body or code}", *(f"{name}:{text}" for name, text in told.items())]
        # That of a transaction names the item first: ``1:UpdateConditionNotSatisfied``.
        super().__init__(response.status_code, code or in_body.rpartition(":")[2] or None, "\n".join(facts))
        self.response = response


@frozen
class SentRequest:
    """A request as it was sent, with what proves the caller's identity."""

    method: str
    url: str
    headers: Mapping[str, str]


class Response(NamedTuple):
    """A whole answer, and the request that it is to."""

    request: SentRequest
    status_code: int
    reason: str
    #: Their names in any case.
    headers: Mapping[str, str]
    content: bytes


def is_redirection(status: int) -> bool:
    """Return whether a status sends the client elsewhere, which the service never does."""
    return status in _REDIRECTIONS and status != _NOT_MODIFIED


def says_later(status: int) -> bool:
    """Return whether a status says that the same request may be answered later."""
    return status >= _FAILED or status in (408, 429)


def _read_facts(content: bytes) -> dict[str, str]:
    """Return the facts in the body of a refusal, by the names that the blob, file and queue services use."""
    if content.lstrip()[:1] == b"{":
        import json

        try:
            error = json.loads(content)["odata.error"]
            return {"Code": str(error["code"]), "Message": str(error["message"]["value"])}
        except (ValueError, KeyError, TypeError):
            return {}
    from xml.etree import ElementTree as ET

    try:
        root = ET.fromstring(content)  # noqa: S314  # an answer of the service
    except ET.ParseError:
        return {}
    # The service of tables says the same in a namespace.
    return {each.tag.rpartition("}")[2].title() if "}" in each.tag else each.tag: each.text or "" for each in root}


def _describe_location(location: str) -> str:
    try:
        parts = urlsplit(location)
    except ValueError:
        return "a malformed URL"
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "")) or "nowhere"


@frozen
class Cause:
    """Why, in one sentence, and the name of the cause with what its hint names."""

    message: str
    reason: str | None
    values: Mapping[str, object] = field(default_factory=dict)

    def build(self, kind: type[E], **facts: Any) -> E:
        """Return an error of this cause; ``facts`` are other fields of the error."""
        return kind(self.message, reason=self.reason, values=self.values, **facts)


class Unreadable(Exception):
    """Nothing can be made of a whole answer that was a success: its body is cut, or is another's."""
