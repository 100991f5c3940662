"""The help page of a command or a group, made of its docstring and its rows: what azguard ships, and shows.

Under *In short* a line each says what a new user asks of a command: what guards it, how long it waits, what it does
about a lost answer, what a second run does, and what its exit statuses mean.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence

from azguard.cli.help.description import list_statuses
from azguard.cli.help.layout import HelpPage
from azguard.cli.help.pages import TOPICS, HelpText
from azguard.cli.parsing.rows import ARGUMENTS, CONDITIONS, OPTIONS, TREES, Row
from azguard.cli.parsing.tree import Command, Group, TreeNode
from azguard.cli.registry import ROOT
from azguard.cli.rules import Rule, list_kinds
from azguard.wire.rows import Guard, Operation, Settlement, Write

# The groups that a command's help shows. ``azguard help options`` shows the others, once for all commands.
_ORDER = (ARGUMENTS, OPTIONS, TREES, CONDITIONS)
# The statuses that a script tells apart, each in few words.
_MEANINGS = {
    20: "some failed",
    34: "not modified",
    42: "changed",
    44: "not found",
    45: "exists",
    49: "leased",
    53: "no answer and nothing applied",
    65: "your command or edit failed",
    74: "unknown",
    75: "still busy",
    77: "lock lost",
}
# What azguard does where no look tells whether a write was applied.
_LOST_ANSWERS = {
    Settlement.NO: "azguard asks again.",
    Settlement.NOTHING: "Nothing tells whether the write was applied: 74.",
    Settlement.REPEATED: "azguard sends it again: twice is as good as once.",
    Settlement.RECEIPT: "azguard sends it again: its receipt lets one of two through. If that cannot be known: 74.",
}
# A move says itself which version it moves, and onto what.
_MOVES = ("rename",)


def build(node: TreeNode, path: str) -> HelpPage:
    """Return the page of a command, or of a group; ``path`` is what was typed, such as ``azguard blob put``."""
    text = HelpText(node.help)
    sections = [(heading, list(rows)) for heading, rows in _list_sections(node, path, text)]
    return HelpPage(path, usage(node), text.summary, text.examples, sections)


def build_all(node: Group | Command, path: str = ROOT) -> Iterator[HelpPage]:
    """Yield the page of a command, or of a group and of all that is in it."""
    yield build(node, path)
    for name in node.list_names() if isinstance(node, Group) else ():
        found = node.get(name) if isinstance(node, Group) else None
        if found is not None:
            yield from build_all(found, f"{path} {name}")


def usage(node: TreeNode) -> str:
    """Return the words that may follow the name of a command or a group."""
    places = [row.place for row in node.rows if row.is_argument and not row.is_hidden]
    return " ".join(["[OPTIONS]", *places, *(["COMMAND [ARGS]..."] if isinstance(node, Group) else [])])


def _list_sections(node: TreeNode, path: str, text: HelpText) -> Iterator[tuple[str, Iterable[tuple[str, str]]]]:
    """Yield the headings of a help with what stands under each, except the options that all commands share."""
    for panel in _ORDER:
        if rows := [
            (write_row(row), explain(node, row)) for row in node.rows if row.panel == panel and not row.is_hidden
        ]:
            yield panel, rows
    if isinstance(node, Group):
        yield "Commands", [(name, node.summarize(name)) for name in node.list_names()]
    if isinstance(node, Command) and (answers := _answer(node, path)):
        yield "In short", answers
    if node.name == ROOT:
        yield "Topics (azguard help TOPIC)", [(", ".join(TOPICS), "")]
    else:
        yield "Read on", _list_pointers(path.partition(" ")[2], text)


def _list_pointers(command: str, text: HelpText) -> Iterator[tuple[str, str]]:
    """Yield where to read on: the notes of the command, the shared options, the topics."""
    if text.notes:
        yield f"azguard help {command}", "Notes on this command."
    yield "azguard help options", "Shared options: account, output, scope."
    if text.topics:
        yield "azguard help TOPIC", f"TOPIC: {', '.join(text.topics)}."


def write_row(row: Row) -> str:
    """Return how an option or argument is written in a list: ``-f, --file FILE``."""
    if row.is_argument:
        return row.place
    names = ", ".join(sorted(row.flags, key=lambda name: name.startswith("--")))
    names = f"{names} / {row.off}" if row.off else names
    return names if row.is_flag else f"{names} {row.metavar}"


def explain(node: TreeNode, row: Row) -> str:
    """Return the help of an option or argument: its purpose, the options that it excludes or needs, and its default."""
    goes_with = _find_partners(node, row) if isinstance(node, Command) else ""
    default = row.written_default or row.otherwise
    return f"{row.help}{goes_with}  [default: {default}]" if default else f"{row.help}{goes_with}"


def _find_partners(command: Command, row: Row) -> str:
    names = row.flags or (row.place_name,)
    conditions = [each.flags[0] for each in command.shared if each.panel == CONDITIONS and not each.is_hidden]
    return _describe_partners(command.rules, (*names, row.off), conditions)


def _describe_partners(rules: Iterable[Rule], names: Collection[str], conditions: Sequence[str] = ()) -> str:
    """Return the sentence in help that names the partners of an option; empty if no rule names the option.

    ``conditions`` are the condition options of the command: of most of them, the others are named.
    """
    excluded: dict[str, None] = {}
    parts = []
    for rule in rules:
        excluded |= dict.fromkeys(rule.list_excluded(names))
        if any(name in names for name in rule.options):
            match rule.kind:
                case "needs":
                    parts.append(f"needs {' or '.join(rule.others)}")
                case "only_for":
                    parts.append(f"only for {list_kinds(rule.others)}")
    taken = [name for name in conditions if name not in excluded and name not in names]
    if len(taken) + 1 < len(excluded.keys() & set(conditions)):
        but = f" other than {', '.join(taken)}" if taken else ""
        excluded = dict.fromkeys([*(name for name in excluded if name not in conditions), f"a condition{but}"])
    parts = [*([f"not with {', '.join(excluded)}"] if excluded else []), *dict.fromkeys(parts)]
    line = "; ".join(parts)
    return f" {line[:1].upper()}{line[1:]}." if line else ""


def _answer(command: Command, path: str) -> list[tuple[str, str]]:
    """Return the questions that apply to a command, each with its answer; none for one of this machine alone."""
    if not command.spec.is_remote:
        return []
    names = {name for row in command.rows if not row.is_hidden for name in row.flags}
    found = (
        ("Guard", _explain_guard(command, path, names)),
        ("Waiting", _explain_waiting(command)),
        ("A lost answer", _explain_lost_answer(command.spec.operation, names)),
        ("A second run", _explain_second_run(command.spec.operation, path, names)),
        ("Exit status", _explain_statuses(command, path, names)),
    )
    return [(question, text) for question, text in found if text]


def _explain_guard(command: Command, path: str, names: Collection[str]) -> str:
    operation, reason = command.spec.operation, command.spec.why_no_conditions
    if operation is None:
        return "" if reason is None else f"{_capitalize(reason, path)}."
    if operation.guard in (Guard.NONE, Guard.COMPARE) or not operation.writes or path.endswith(_MOVES):
        return ""
    if operation.write is Write.CHANGES:
        return "The version that this scope has read; if it has read none, the write is refused (42)."
    if operation.write in (Write.PUTS, Write.CREATES) and "--last-writer-wins" in names:
        return "The version that this scope has read; if it has read none, the write only creates."
    return ""


def _capitalize(reason: str, path: str) -> str:
    """Return a reason as a sentence; the name of a command is no word to write with a capital letter."""
    name = path.partition(" ")[2]
    return reason if reason.startswith(name) else f"{reason[0].upper()}{reason[1:]}"


def _explain_waiting(command: Command) -> str:
    defaults = {name: row.written_default or row.otherwise for row in command.rows for name in row.flags}
    wait, seconds = defaults.get("--wait", ""), defaults.get("--timeout", "")
    parts = ["Only with --wait" if wait == "do not wait" else f"{wait} (--wait)"] if wait else []
    # Only the lock of the table is waited for.
    parts = [f"Only with --with-table-lock, {parts[0]}"] if "--with-table-lock" in defaults else parts
    parts += [f"{seconds} for an answer of the service (--timeout)"] if seconds else []
    return f"{'; '.join(parts)}." if parts else ""


def _explain_lost_answer(operation: Operation | None, names: Collection[str]) -> str:
    if operation is None and "--op-id" not in names:
        return ""
    looks = "azguard looks, and writes again only if the write was not applied. If that cannot be known: 74."
    return looks if operation is None else _LOST_ANSWERS.get(operation.settle, looks)


def _explain_second_run(operation: Operation | None, path: str, names: Collection[str]) -> str:
    if "--op-id" in names:
        return "It changes nothing, with the same --op-id."
    creates = operation is not None and operation.write is Write.CREATES and "--last-writer-wins" not in names
    if creates and "--if-exists" in names:
        return "45, since it exists; 0 with --if-exists skip."
    if path.endswith(" delete") and operation is not None and operation.write is Write.CHANGES:
        return "44, since it is gone."
    return ""


def _explain_statuses(command: Command, path: str, names: Collection[str]) -> str:
    if path.endswith(" lock run"):
        return "The command's own; else 53 no answer, 75 held by others, 77 lost."
    if path.endswith(" queue work"):
        return "0 done, 20 some failed, 53 no answer, 75 stopped after failures in a row."
    if command.spec.operation is None and "--op-id" not in names:
        return ""
    found = (f"{status} {_MEANINGS[status]}" for status in list_statuses(command) if status in _MEANINGS)
    return f"{', '.join(['0 done', *found])}."
