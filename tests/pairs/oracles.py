"""What is true of every run, whatever was typed: each returns what is wrong, or nothing."""

import re
from collections.abc import Iterator

from tests.pairs.lines import Line
from tests.pairs.stage import Stage
from tests.support.cli_world import Ran

#: Nothing was written.
UNTOUCHED = (2, 34, 42, 44, 45, 49, 53, 65, 75)
_SECRET = re.compile(
    r"Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==|[?&]sig="
)


def judge(line: Line, ran: Ran, stage: Stage) -> Iterator[str]:
    """Yield what is wrong with a run."""
    if "Traceback" in ran.err or ran.code == 1:
        yield f"it ended with {ran.code}: {ran.err[-200:]}"
    if ran.code not in line.described.statuses:
        yield f"help --json names no exit status {ran.code}"
    if _SECRET.search(ran.err) or _SECRET.search(ran.out):
        yield "it showed a key or a signature"
    yield from _judge_refusal(line, ran, stage)
    yield from _judge_output(line, ran)
    if ran.code in UNTOUCHED or "--dry-run" in line.words:
        yield from (f"exit {ran.code}, and it changed: {each}" for each in stage.find_changes())


def _judge_refusal(line: Line, ran: Ran, stage: Stage) -> Iterator[str]:
    if line.broken is not None and ran.code != 2:
        yield f"a rule refuses it ({line.broken.message}), and it ended with {ran.code}"
    if line.broken is None and ran.code == 2 and not line.is_checked:
        yield f"no rule refuses it: {ran.err.strip()[:300]}"
    if ran.code == 2 and stage.requests:
        yield f"refused after {stage.requests} requests: {ran.err.strip()[:200]}"


def _judge_output(line: Line, ran: Ran) -> Iterator[str]:
    words = line.words
    output = words[words.index("--output") + 1] if "--output" in words else "json"
    # A status that is an answer has its result on stdout, and no error.
    if output == "json" and ran.code not in (0, 20) and "--output" in words and not ran.out:
        yield from _judge_error(ran)
    if output == "none" and ran.out:
        yield "-o none printed something"
    if ("--quiet" in words) and ran.code == 0 and ran.err:
        yield f"-q, exit 0, and stderr has: {ran.err[:200]}"


def _judge_error(ran: Ran) -> Iterator[str]:
    try:
        error = ran.error
    except (ValueError, KeyError):
        yield f"the error is no JSON: {ran.err[:200]}"
        return
    if error["exit_code"] != ran.code:
        yield f"the error says {error['exit_code']}, and the status is {ran.code}"
