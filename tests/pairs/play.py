"""A line, its run, and what the oracles say of it."""

import random
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.pairs.described import Described, list_described
from tests.pairs.lines import Line, list_lines
from tests.pairs.oracles import judge
from tests.pairs.stage import Stage


@dataclass
class Tally:
    """What was typed so far."""

    lines: int = 0
    refused: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def play(stage: Stage, lines: Sequence[Line], tally: Tally) -> None:
    """Type lines, and add what is wrong to the tally, each with the line to type."""
    for line in lines:
        stage.prepare()
        ran = stage.run(line.words)
        tally.lines += 1
        tally.refused += line.broken is not None
        tally.statuses[ran.code] += 1
        tally.wrong += [f"azguard {shlex.join(line.words)}\n    {what}" for what in judge(line, ran, stage)]


def choose(names: Sequence[str], seed: int, share: float) -> Iterator[tuple[Described, list[Line]]]:
    """Yield commands with the lines to type: all that cover their pairs, or a share of them."""
    for described in list_described():
        if names and described.name not in names:
            continue
        chance = random.Random(f"{seed} {described.name}")
        lines = list(list_lines(described, chance))
        yield described, lines if share >= 1 else chance.sample(lines, max(1, round(len(lines) * share)))
