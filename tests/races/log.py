"""From the proxy's log to the writes that a history is made of."""

import re
from collections.abc import Iterable
from urllib.parse import parse_qs, unquote, urlsplit

from azguard.requests.lineage import ABSENT, KEY, Lineage, bare
from tests.races.chain import Kind, Write
from tests.support.faultproxy.proxy import ProxiedAnswer, Request

# Every process of a race adds ``race/NAME`` to its user agent; those that are not azguard begin with this.
FOREIGN = "foreign"
_RUN = re.compile(r"\brace/(\S+)")
_KINDS = {None: Kind.CONTENT, "blocklist": Kind.CONTENT, "metadata": Kind.METADATA, "properties": Kind.PROPERTIES}


def run_of(request: Request) -> str:
    """Return which process a request comes from; empty if it does not say."""
    found = _RUN.search(request.headers.get("user-agent", ""))
    return found[1] if found else ""


def blob_of(request: Request) -> str | None:
    """Return the name of the blob a request is about: ``/ACCOUNT/CONTAINER/NAME``."""
    parts = unquote(urlsplit(request.path).path).split("/", 3)
    return parts[3] if len(parts) == 4 and parts[3] else None


def makes_version(request: Request) -> Kind | None:
    """Return what a request changes if it makes a new version of a blob."""
    asked = parse_qs(urlsplit(request.path).query)
    component = asked.get("comp", [None])[0]
    if request.method != "PUT" or blob_of(request) is None or component not in _KINDS:
        return None
    return _KINDS[component]


def writes(log: Iterable[ProxiedAnswer]) -> list[Write]:
    """Return every committed write that made a new version of a blob, in the order of their answers."""
    return [_write(answer, kind) for answer in log if answer.committed and (kind := makes_version(answer.request))]


def story(log: Iterable[ProxiedAnswer]) -> list[str]:
    """Return a line for every write that was asked for, leases and refusals included, by the time of its answer."""
    return [_line(answer) for answer in log if answer.request.writes]


def _line(answer: ProxiedAnswer) -> str:
    request = answer.request
    said = answer.headers.get("x-ms-error-code") or bare(answer.etag) if answer.status else "no answer"
    asked = parse_qs(urlsplit(request.path).query).get("comp", ["content"])[0]
    given = {"if-match", "if-none-match", "x-ms-lease-action", "x-ms-lease-id", "x-ms-proposed-lease-id"}
    conditions = " ".join(f"{name}={value}" for name, value in request.headers.items() if name in given)
    what = f"{blob_of(request)} {asked} {conditions} by {run_of(request)}"
    return f"{answer.answered or answer.sent or 0.0:.3f} {what}: {answer.status} {said}, {answer.fault.value}"


def _write(answer: ProxiedAnswer, kind: Kind) -> Write:
    request = answer.request
    run = run_of(request)
    stamped = Lineage.parse(request.headers.get(f"x-ms-meta-{KEY}"))
    ours = not run.startswith(FOREIGN) and stamped.entries
    return Write(
        blob=blob_of(request) or "",
        etag=bare(answer.etag),
        replaced=_replaced(request),
        op=stamped.entries[0][0] if ours else None,
        run=run,
        kind=kind,
        stamped=stamped,
        sent=answer.sent or 0.0,
        answered=answer.answered or 0.0,
        fault=answer.fault.value,
    )


def _replaced(request: Request) -> str | None:
    if request.headers.get("if-none-match") == "*":
        return ABSENT
    condition = request.headers.get("if-match")
    return None if condition in (None, "*") else bare(condition)
