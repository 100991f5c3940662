"""How lock runners behave when the lock is lost, when they are killed or suspended, and when their command fails.

    python -m benchmarks.lost_locks [--rounds N] [--PROGRAM PATH...]

Each runner that is on PATH is measured with its own defaults, against a server of its own, and a Markdown table is
printed. The command under the lock is a shell script with three processes at work: the command itself, one that it
started, and one more that ignores TERM. Right after the blow another runner asks for the same lock.
"""

import argparse
import asyncio
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from benchmarks.lost_locks_blows import (
    COMMAND,
    END_SECONDS,
    STARTED,
    STUBBORN,
    WATCH_SECONDS,
    Blow,
    Outcome,
    endured,
    status_of,
)
from benchmarks.lost_locks_runners import RUNNERS, Runner

ROUNDS = 3
_ENDINGS = {
    "exits 7": "exit 7",
    "is ended by TERM": "kill -TERM $$",
    "is ended by KILL": "kill -KILL $$",
}
_REMARKS = """≥: still at work side by side, when the command was told to end.
A runner that was suspended was resumed then; its own end counts from there."""


@dataclass(frozen=True)
class Findings:
    """What was measured of one runner: the outcomes of each blow, for an obedient and a deaf command, and the
    runner's status after each ending of its command. ``loss`` is how its lock is taken away.
    """

    title: str
    loss: str
    outcomes: dict[tuple[Blow, bool], list[Outcome]] = field(default_factory=dict)
    statuses: dict[str, list[int]] = field(default_factory=dict)


def main() -> None:
    """Measure every runner there is and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    for program in (programs := sorted({program for runner in RUNNERS for program in runner.needs})):
        parser.add_argument(f"--{program}", metavar="PATH", default=shutil.which(program), help="by default from PATH")
    asked = vars(parser.parse_args())
    paths = {program: asked[program] for program in programs if asked[program]}
    found = []
    for runner in RUNNERS:
        if missing := [program for program in runner.needs if program not in paths]:
            _say(f"{runner.name} is left out: no {', no '.join(missing)} on PATH\n")
        else:
            found.append(asyncio.run(measured(runner, paths, asked["rounds"])))
    for line in table(found):
        _say(line)
    _say(f"\nOver {asked['rounds']} rounds, from the blow on. {_REMARKS}")


async def measured(kind: type[Runner], paths: Mapping[str, str], rounds: int) -> Findings:
    """Measure one runner: all blows of a round at once, each on a lock of its own, round after round."""
    with tempfile.TemporaryDirectory() as name:
        runner = kind(paths, Path(name))
        findings = Findings(f"{runner.name} {runner.version}", runner.loss)
        with runner.serving():
            cases = list(product([blow for blow in Blow if blow.can_hit(runner)], (False, True)))
            for number in range(rounds):
                outcomes = await asyncio.gather(*(endured(runner, *case, number) for case in cases))
                for case, outcome in zip(cases, outcomes, strict=True):
                    findings.outcomes.setdefault(case, []).append(outcome)
                for ending, script in _ENDINGS.items():
                    findings.statuses.setdefault(ending, []).append(await status_of(runner, script))
                sys.stderr.write(f"{findings.title}: round {number + 1} of {rounds} done\n")
    return findings


def table(found: Sequence[Findings]) -> Iterator[str]:
    """Yield the lines of the table: a column for each runner."""
    yield _row("", [each.title for each in found])
    yield "|---" * (len(found) + 1) + "|"
    for blow in Blow:
        yield _row(f"**{blow.value}**", [each.loss if blow is Blow.TAKEN else "" for each in found])
        for heading, deaf, cell in (() if blow is Blow.KILLED else _OF_RUNNER) + _OF_COMMAND:
            yield _row(heading, [_answer(each.outcomes.get((blow, deaf)), cell) for each in found])
    yield _row("**the command ends of itself**", ["" for _ in found])
    for ending in _ENDINGS:
        yield _row(f"{ending}: status", [_distinct(map(str, each.statuses[ending])) for each in found])


def _answer(outcomes: list[Outcome] | None, cell: Callable[[list[Outcome]], str]) -> str:
    return cell(outcomes) if outcomes else "—"


def _status(outcomes: list[Outcome]) -> str:
    def said(outcome: Outcome) -> str:
        if outcome.status is None:
            return f"none within {END_SECONDS:g} s of the command's end"
        return f"{outcome.status}{'' if outcome.left is not None else ', once the command is done'}"

    return _distinct(map(said, outcomes))


def _left(outcomes: list[Outcome]) -> str:
    return _span([outcome.left for outcome in outcomes], "with the command only")


def _end_of(name: str) -> Callable[[list[Outcome]], str]:
    return lambda outcomes: _span([outcome.ended[name] for outcome in outcomes], "does not")


def _begun(outcomes: list[Outcome]) -> str:
    return _span([outcome.begun for outcome in outcomes], "waits for the command")


def _overlap_of(*names: str) -> Callable[[list[Outcome]], str]:
    return lambda outcomes: _span([each.overlap(*names) for each in outcomes], f"≥ {WATCH_SECONDS:g} s")


_Questions = tuple[tuple[str, bool, Callable[[list[Outcome]], str]], ...]
_OF_RUNNER: _Questions = (
    ("status of the runner", False, _status),
    ("its status over a command that ignores TERM", True, _status),
    ("the runner ends after", False, _left),
)
_OF_COMMAND: _Questions = (
    ("the command ends after", False, _end_of(COMMAND)),
    ("a process it started ends after", False, _end_of(STARTED)),
    ("such a process that ignores TERM ends after", False, _end_of(STUBBORN)),
    ("a command that ignores TERM ends after", True, _end_of(COMMAND)),
    ("the next holder begins after", False, _begun),
    ("at work beside the command for", False, _overlap_of(COMMAND)),
    ("at work beside a command that ignores TERM for", True, _overlap_of(COMMAND)),
    ("at work beside what the command started for", False, _overlap_of(STARTED, STUBBORN)),
)


def _span(values: Sequence[float | None], otherwise: str) -> str:
    """Return the range of some seconds as text; ``otherwise`` tells what None means."""
    known = [value for value in values if value is not None]
    least, most = (f"{pick(known):.1f}" for pick in (min, max)) if known else ("", "")
    parts = [f"{least} s" if least == most else f"{least}–{most} s"] if known else []
    if len(known) < len(values):
        parts.append(otherwise)
    return " or ".join(parts)


def _distinct(texts: Iterator[str]) -> str:
    return " or ".join(dict.fromkeys(texts))


def _row(heading: str, cells: Sequence[str]) -> str:
    return f"| {heading} | {' | '.join(cells)} |"


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
