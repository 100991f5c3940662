"""What ``-v`` tells of every command: each request, its answer and each pause, with the time since the start."""

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from azguard.accounts import trace
from azguard.cli.output import Output


def to(out: Output, shared: Mapping[str, Any], environ: Mapping[str, str]) -> AbstractContextManager[None]:
    """Return a block whose requests are told on stderr, without the credentials that are in them."""
    from azguard.cli import redaction

    began, secrets = time.monotonic(), redaction.find_secrets(shared, environ)

    def tell(text: str) -> None:
        out.verbose(f"{time.monotonic() - began:7.3f} s  {redaction.redact(text, secrets)}")

    return trace.listening(tell)
