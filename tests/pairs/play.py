"""A line, its runs, and what the oracles say of them."""

import random
import shlex
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from tests.pairs.described import Chosen, Described, describe_all
from tests.pairs.lines import Line, list_lines, list_pairs
from tests.pairs.oracles import UNTOUCHED, Played, Typing, judge
from tests.pairs.samples import NOT_PLAYED
from tests.pairs.stage import Stage

_OTHER_FORMATS = ("json", "yaml", "tsv")
# What peeking does not show.
_HIDDEN = {"queue": ("queue:pairs", "queue:pairs-poison")}


@dataclass
class Tally:
    """What was typed so far."""

    commands: int = 0
    pairs: int = 0
    lines: int = 0
    runs: int = 0
    refused: int = 0
    seconds: float = 0.0
    statuses: Counter[int] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, other: "Tally") -> None:
        """Add what was typed elsewhere."""
        for name in ("commands", "pairs", "lines", "runs", "refused", "seconds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.statuses += other.statuses
        self.wrong += other.wrong


@dataclass(frozen=True)
class Part:
    """Lines of a command to type."""

    described: Described
    lines: Sequence[Line]
    chance: random.Random


def play(stage: Stage, part: Part) -> Tally:
    """Type lines of a command, and return what there was of them; what is wrong has the line to type."""
    tally = Tally(commands=1, pairs=len(list_pairs(part.described)), lines=len(part.lines))
    began = time.monotonic()
    for line in part.lines:
        played = _play_line(stage, line, part.chance)
        tally.runs += len(played.typings)
        tally.refused += line.broken is not None
        tally.statuses[played.code] += 1
        shown = stage.hide(shlex.join(["azguard", *played.first.words]))
        tally.wrong += [f"{shown}\n    {what}" for what in judge(played)]
    tally.seconds = time.monotonic() - began
    return tally


def _play_line(stage: Stage, line: Line, chance: random.Random) -> Played:
    """Type a line twice on the same stage: as JSON, and in another order in another format."""
    chosen = line.find_value("--output")
    words = stage.fill(line.words)
    words = words if chosen else _insert(words, line, "-o", "json")
    first, requests, changed = _type(stage, line, words, chosen or "json")
    again, changed_again = _type_again(stage, line, first, words)
    _settle(stage, first, {*changed, *changed_again})
    wanted = "json" if chosen else chance.choice([each for each in _OTHER_FORMATS if each in line.described.formats])
    other_words = stage.fill(_replace_output(line, wanted).shuffle(chance, *([] if chosen else ["-o", wanted])))
    other, _, changed_by_other = _type(stage, line, other_words, wanted)
    _settle(stage, other, changed_by_other)
    secrets = (stage.known["key"], stage.known["sas"].partition("sig=")[2])
    return Played(line, first, other, requests, tuple(changed), again, tuple(changed_again), secrets)


def _insert(words: list[str], line: Line, *others: str) -> list[str]:
    at = len(line.described.name.split())
    return [*words[:at], *others, *words[at:]]


def _replace_output(line: Line, wanted: str) -> Line:
    rows = [Chosen(each.row, wanted) if "--output" in each.row.names else each for each in line.rows]
    return replace(line, rows=tuple(rows))


def _type(stage: Stage, line: Line, words: Sequence[str], shown_as: str) -> tuple[Typing, int, list[str]]:
    ran, requests = stage.run(words, line.described.stdin, is_heard=not _holds(words))
    changed = stage.find_changes() if requests.written or _holds(words) else []
    return Typing(tuple(words), shown_as, ran), requests.count, changed


def _holds(words: Sequence[str]) -> bool:
    """Return whether a line leaves a process that makes requests of its own."""
    return "hold" in words


def _type_again(stage: Stage, line: Line, first: Typing, words: Sequence[str]) -> tuple[Typing | None, list[str]]:
    """Type a line with a key a second time, behind the first."""
    if not line.has("--op-id") or first.ran.code != 0 or line.has("--dry-run") or line.has("--status"):
        return None, []
    before = stage.look()
    ran, _ = stage.run(words, line.described.stdin)
    after = stage.look()
    return Typing(tuple(words), first.shown_as, ran), sorted(
        each for each in {*before, *after} if before.get(each) != after.get(each)
    )


def _settle(stage: Stage, typing: Typing, changed: Iterable[str]) -> None:
    """Make the stage as it was before a line."""
    if _holds(typing.words):
        stage.release()
        changed = {*changed, "blob:locks/held"}
    if typing.ran.code != 2:
        hidden = () if typing.ran.code in UNTOUCHED else stage.list_written(_HIDDEN)
        stage.reset({*changed, *hidden})


def list_played(names: Sequence[str] = ()) -> list[Described]:
    """Return the commands that are played, or those of them that are named, or whose first words are."""
    played = [each for each in describe_all() if each.name not in NOT_PLAYED]
    return [each for each in played if not names or _is_named(each.name, names)]


def choose(commands: Iterable[Described], seed: int, share: float = 1.0) -> Iterator[Part]:
    """Yield commands with the lines to type: all that cover their pairs, or a share of them."""
    for described in commands:
        chance = random.Random(f"{seed} {described.name}")
        lines = list(list_lines(described, chance))
        chosen = [line for line in lines if chance.random() < share]
        if chosen:
            yield Part(described, chosen, chance)


def _is_named(name: str, names: Sequence[str]) -> bool:
    return any(name == each or name.startswith(f"{each} ") for each in names)
