"""One step of a schedule as a line of a story."""

from tests.explorer.player import Ended, Node
from tests.explorer.wire import Asked


def describe(asked: Asked) -> str:
    """Return a request as a story tells it."""
    conditions = [
        f"{name} {value}"
        for name, value in asked.headers
        if name in ("if-match", "if-none-match", "x-ms-lease-id", "x-ms-proposed-lease-id", "x-ms-copy-source")
        or name == "x-ms-blob-condition-appendpos"
    ]
    body = f" [{asked.body.decode(errors='replace')}]" if 0 < len(asked.body) < 60 else ""
    return " ".join([asked.action, asked.path, *conditions]) + body


def describe_end(node: Node) -> str:
    step = node.step
    return f"; ends {step.status} ({step.outcome})" if isinstance(step, Ended) else ""
