"""What was meant by a word that azguard does not know: answered with the command to type.

Nothing of what was typed is run, and no service is asked. A guess costs time only on the way to exit 2.

A guess may be pasted unread. So it stays with the noun that was typed, and it is a verb only if that very verb was
mistyped by a letter: ``undelete`` is no misspelt ``delete``.
"""

import difflib
import os
import re
from collections.abc import Collection, Sequence
from itertools import takewhile
from typing import Any

from azguard.cli.parsing import command_line
from azguard.cli.parsing.tree import Command, Group, root, walk
from azguard.cli.words.foreign import (
    COMMANDS,
    COPIES,
    ELSEWHERE,
    INSTEAD,
    MEANINGS,
    OPTIONS,
    PARTS,
    VERBS_OF_OTHERS,
    Ours,
    find_address,
)
from azguard.errors import UsageError

# Below it, words are more often strangers than misspelt: --overwrite and --verbose are at 0.59.
_NEAR = 0.75
_MOST_OFFERED = 4
# In so long a word two letters may be wrong: no verb is as long and means something else.
_LONG_WORD = 9
_WORDS_OF_A_COMMAND = 3
_KEYS = {"PartitionKey": "PARTITION", "RowKey": "ROW"}
_INT32 = re.compile(r"-?[0-9]{1,9}", re.ASCII)
_SOURCES = ("--source", "--source-uri")
_REPEATED = ("--metadata", "--tags")
_OVERWRITES = ("--overwrite", "--force")
_WITHOUT_OVERWRITE = "without --last-writer-wins it writes only over the version that was read here last"


def hint_for_command(path: Sequence[str], args: Sequence[str]) -> str:
    """Return a hint: the command to type instead of one that azguard does not have.

    ``path`` is the known groups, ``args`` the words typed from the unknown word on.
    """
    typed = _repeat_option(_without_az([*path, *args]))
    count = next((at for at, word in enumerate(typed) if word.startswith("-")), len(typed))
    for length in range(min(count, _WORDS_OF_A_COMMAND), 0, -1):
        name, rest = " ".join(typed[:length]), typed[length:]
        if name in COPIES:
            return _copy(rest)
        if name in COMMANDS:
            return _translate(COMMANDS[name], rest)
        if name in ELSEWHERE:
            return f"azguard does not do that yet; use {ELSEWHERE[name]}"
        if length > len(path) and name in _list_commands():
            return _translate(Ours(name, find_address(name)), rest)
    found = _find_near(path, args[0])
    if len(found) == 1:
        return f"did you mean: {command_line.show(['azguard', *found[0].split(), *args[1:]])}"
    if found:
        return f"did you mean {' or '.join(f'azguard {name}' for name in found)}?"
    if path[-1:] == ["lock"] and "--" in args:  # as flock, consul and etcdctl have it
        return f"did you mean: {command_line.show(['azguard', *path, 'run', *args])}"
    return _tell_instead(path, args[0])


def _tell_instead(path: Sequence[str], word: str) -> str:
    """Return a hint: the verbs of the noun, or the command in place of the missing verb."""
    if not path:
        return "azguard --help"
    instead = INSTEAD.get((path[0], MEANINGS.get(word, word)))
    if instead is not None and len(path) == 1:
        return instead
    if word in root.list_names():
        return f"azguard {word} --help"
    group = f"azguard {' '.join(path)}"
    return f"{group} has: {', '.join(_find_group(path).list_names())}; see {group} --help"


def hint_for_option(command: Any, path: Sequence[str], option: str, argv: Sequence[str]) -> str:
    """Return a hint: the option to type instead of one that the command lacks; ``argv`` is all the typed words."""
    if isinstance(command, Group):
        return _move_behind(command, path, option, argv) or f"{' '.join(['azguard', *path])} --help"
    name = " ".join(path)
    shown = command.list_options()
    meant = option if option in PARTS or option in OPTIONS else _nearest(option, [*shown, *OPTIONS, *PARTS])
    # Beside a command's own --shared, --share is no name of a share.
    meant = f"{option}d" if f"{option}d" in shown else meant
    typed = [meant + word.removeprefix(option) if _split(word)[0] == option else word for word in _after(argv, path)]
    if meant in PARTS and find_address(name):
        return _line(command, Ours(name, find_address(name)), typed)
    if _find_ours(meant, shown):
        line = _line(command, Ours(name, find_address(name)), typed)
        return f"{line}\n      {_WITHOUT_OVERWRITE}" if meant in _OVERWRITES else line
    if meant in shown:
        return f"did you mean {meant}?"
    return f"{' '.join(['azguard', *path])} --help"


def _find_ours(option: str, shown: Collection[str]) -> list[str]:
    """Return the words that a command has in place of an option of other tools; empty if it has none."""
    found = (each.split() for each in OPTIONS.get(option, "").split("|"))
    return next((words for words in found if words and words[0] in shown), [])


def _move_behind(group: Any, path: Sequence[str], option: str, argv: Sequence[str]) -> str:
    """Return the line with the option behind the command; empty if no command that was typed has that option."""
    words = _after(argv, path)
    at = next((at for at, word in enumerate(words) if _split(word)[0] == option), len(words))
    for length in (1, 2):
        typed, rest = words[at : at + length], [*words[:at], *words[at + length :]]
        command, names, left = group.follow(rest)
        shown = command.list_options()
        takes_next = option in shown and not shown[option].is_flag and words[at] == option
        if option in shown and length == 1 + takes_next:
            own, others = command_line.split(left)
            line = command_line.show(["azguard", *path, *" ".join(names).split(), *own, *typed, *others])
            return f"{option} stands behind the command: {line}"
    return ""


def hint_for_values(argv: Sequence[str]) -> str | None:
    """Return the line with an option before each KEY=VALUE, where it is missing; None if it stands there."""
    typed = walk(argv)
    taken = [row for row in typed.command.rows if row.is_argument]
    alone = typed.arguments[len(taken) :] if typed.path[-1:] == ["set"] else []
    option = next((name for name in typed.command.list_options() if name in _REPEATED), "")
    line = _repeat_option(argv, alone if option else (), option)
    return command_line.show(["azguard", *line]) if len(line) > len(argv) else None


def _repeat_option(words: Sequence[str], alone: Collection[str] = (), otherwise: str = "") -> list[str]:
    """Return words with an option before each KEY=VALUE: the one that az takes once, or ``otherwise`` of one alone."""
    line: list[str] = []
    option = ""
    for word in words:
        if word.startswith("-"):
            option = word if word in _REPEATED else ""
        elif "=" in word and (word in alone or (option and line[-1] != option)):
            line.append(option or otherwise)
        line.append(word)
    return line


def _without_az(words: list[str]) -> list[str]:
    begun = words[1:] if words[:1] == ["az"] else words
    return begun[1:] if begun[:1] == ["storage"] else begun


def _after(argv: Sequence[str], path: Sequence[str]) -> list[str]:
    """Return the typed words apart from the words of the command."""
    rest, left = [], list(path)
    for word in argv:
        if left and word == left[0]:
            del left[0]
        else:
            rest.append(word)
    return rest


def _copy(words: Sequence[str]) -> str:
    ends = [word for word in words if not word.startswith("-")][:2]
    if len(ends) == 2:  # noqa: PLR2004  # from and to
        source, target = ends
        if (
            not os.path.exists(source)
            and "/" in source
            and "/" in target
            and not os.path.isdir(os.path.dirname(target))
        ):
            noun = "file" if target.startswith("file:") else "blob"
            return command_line.show(["azguard", noun, "copy", source, target])
        done = ["put", target, "-f", source] if os.path.exists(source) else ["get", source, "-f", target]
        return command_line.show(["azguard", "blob", *done])
    return "azguard blob get CONTAINER/NAME -f FILE, or azguard blob put CONTAINER/NAME -f FILE"


def _translate(ours: Ours, words: Sequence[str]) -> str:
    return _line(root.find(ours.command.split()), ours, words)


def _line(command: Any, ours: Ours, words: Sequence[str]) -> str:
    """Return our command line with the meaning of the typed words; options that it lacks are left out."""
    own, rest = command_line.split(words)
    parts, places, options = _read(command, own)
    places = _places(ours.address, parts, places)
    missing = ours.rest.split()
    if any(row.metavar == "DESTINATION" for row in command.rows):
        places, options, missing = _put_source_first(places, options, missing)
    line = command_line.show(["azguard", *ours.command.split(), *places, *options, *rest])
    if not ours.address:
        # Its arguments are the first words of its rest; those that were typed are not missing.
        arguments = list(takewhile(lambda word: not word.startswith("-"), missing))
        del missing[: min(len(places), len(arguments))]
    taken = {word.partition("=")[0].replace("--file", "-f") for word in [*options, *rest]}
    return " ".join([line, *missing]) if missing and missing[0] not in taken else line


def _put_source_first(places: list[str], options: list[str], missing: list[str]) -> tuple[list[str], ...]:
    """Return the arguments, the options and what is missing of a copy, whose source stands first, as with cp."""
    typed = next((name for name in _SOURCES if name in options), None)
    if typed is None:
        return [*missing[1:], *places], options, []
    at = options.index(typed)
    return [options[at + 1], *places], [*options[:at], *options[at + 2 :]], []


def _places(address: str, parts: dict[str, str], places: list[str]) -> list[str]:
    """Return the arguments: the address as it was typed, or made of its parts."""
    if not address or not places:
        return [_fill(address, parts)] if address else places
    first, *others = places
    missing = [word for word in re.findall(r"[A-Z]+", address) if word not in parts]
    kind = f"{address.partition(':')[0]}:" if ":" in address else ""
    if "/" not in first and ":" not in first and len(missing) == 1:
        return [_fill(address, {**parts, missing[0]: first}), *others]
    return [first if ":" in first else f"{kind}{first}", *others]


def _read(command: Any, words: Sequence[str]) -> tuple[dict[str, str], list[str], list[str]]:
    """Return the parts of an address, the arguments, and the options as the command takes them."""
    shown, parts, places, options = command.list_options(), dict[str, str](), list[str](), list[str]()
    left = list(words)
    while left:
        word = left.pop(0)
        name, _, value = _split(word)
        if not name:
            places.append(word)
            continue
        if not PARTS.get(name, name):
            options += _take_properties(left, parts)
            continue
        if name not in shown and not value and left and not left[0].startswith("-"):
            value = left.pop(0)
        if name in shown:
            takes_value = not shown[name].is_flag and word == name
            options += [word, *([left.pop(0)] if takes_value and left else [])]
        elif name in PARTS:
            parts[PARTS[name]] = value
        elif ours := _find_ours(name, shown):
            options += _as_ours(shown, ours, value)
    return parts, places, options


def _take_properties(left: list[str], parts: dict[str, str]) -> list[str]:
    """Return the properties of an entity, and put its keys among the parts of the address."""
    properties = []
    while left and not left[0].startswith("-"):
        word = left.pop(0)
        key, _, value = word.partition("=")
        if key in _KEYS:
            parts[_KEYS[key]] = value
        else:
            # az makes a number of it.
            properties.append(f"{key}:int32={value}" if _INT32.fullmatch(value) else word)
    return properties


def _as_ours(shown: dict[str, Any], option: list[str], value: str) -> list[str]:
    if shown[option[0]].is_flag:
        return [] if value.lower() == "false" else option
    return option if len(option) > 1 else [*option, value or shown[option[0]].metavar]


def _split(word: str) -> tuple[str, str, str]:
    """Return the name of an option, what divides it, and its value; all empty for an argument."""
    if not word.startswith("-") or word == "-":
        return "", "", ""
    if word.startswith("--"):
        return word.partition("=")
    return word[:2], "", word[2:]


def _fill(address: str, parts: dict[str, str]) -> str:
    """Return an address with the parts that were typed; ``-n`` of a container or a table is its name."""
    words = re.findall(r"[A-Z]+", address)
    named = parts if "NAME" in words or "NAME" not in parts else {words[0]: parts["NAME"], **parts}
    return re.sub(r"[A-Z]+", lambda found: named.get(found[0]) or found[0], address)


def _list_commands() -> list[str]:
    return [name for name, _ in root.walk()]


def _find_group(path: Sequence[str]) -> Group:
    found = root.find(path)
    assert isinstance(found, Group)
    return found


def _find_near(path: Sequence[str], word: str) -> list[str]:
    """Find the commands that a word may mean: a misspelt one of this noun; without a noun, one of that name."""
    commands = _list_commands()
    known = {name.split()[-1] for name in (*commands, *COMMANDS, *MEANINGS, *VERBS_OF_OTHERS)} | {*root.list_names()}
    group = _find_group(path)
    # A verb that is one somewhere is not misspelt: stat is no start.
    here = [name for name in group.list_names() if word not in known and _is_misspelt(word, name)]
    if path:
        return [" ".join([*path, name]) for name in here]
    same = [name for name in commands if name.split()[-1] == word]
    if same:
        shortest = min(len(name.split()) for name in same)
        return [name for name in same if len(name.split()) == shortest][:_MOST_OFFERED]
    return here or [name for name in commands if _is_misspelt(word, name.split()[-1])][:_MOST_OFFERED]


def _is_misspelt(word: str, name: str) -> bool:
    """Tell whether a word is a name with one letter wrong, missing, doubled or swapped; two in a long word."""
    return _count_edits(word, name) <= 1 + (len(name) >= _LONG_WORD)


def _count_edits(word: str, name: str) -> int:
    """Count the letters to add, drop, change or swap with the next one, to make one word of the other."""
    rows = [list(range(len(name) + 1))]
    for i, letter in enumerate(word, 1):
        row = [i]
        for j, other in enumerate(name, 1):
            cost = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (letter != other))
            if i > 1 and j > 1 and (letter, other) == (name[j - 2], word[i - 2]):
                cost = min(cost, rows[-2][j - 2] + 1)
            row.append(cost)
        rows.append(row)
    return rows[-1][-1]


def _nearest(option: str, names: Sequence[str]) -> str:
    return next(iter(difflib.get_close_matches(option, names, 1, _NEAR)), "")


def explain_missing(node: Command, path: str, word: str, argv: Sequence[str]) -> UsageError:
    """Return the error that an argument is missing; with an option of its name, the next argument is missing."""
    arguments = [row for row in node.rows if row.is_argument]
    places = [row.place for row in arguments]
    instead = node.list_options().get(f"--{word.lower()}")
    if instead is not None and any(each.partition("=")[0] in instead.flags for each in argv):
        option = instead.flags[0]
        example = next(line.strip() for line in node.help.splitlines() if line.strip().startswith(f"{path} "))
        return UsageError(
            f"{arguments[1].metavar} is missing: {option} names the {word.lower()} alone",
            hint=f"type it behind the {word.lower()}, as in: {example.replace(path, f'{path} {option}')}",
        )
    return UsageError(f"{word} is missing", hint=hint_for_values(argv) or f"{path} {' '.join(places)}")
