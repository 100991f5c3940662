"""The manual pages: azguard.1, a page for each noun such as azguard-blob.1, and a page for each topic in section 7.

They are made of the help of the commands, and of the topics. ``python -m docs.generate`` writes them into docs/man.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from azguard import __version__
from azguard.cli.help.pages import TOPICS, HelpText, TextBlock
from azguard.cli.parsing.rows import ACCOUNT, GENERAL
from azguard.cli.parsing.tree import Group, TreeNode, root
from azguard.cli.registry import COMMANDS
from docs.help_pages import explain, usage, write_row

FOLDER = Path(__file__).parent / "man"
# Whose options azguard-options(7) explains once.
_SHARED = (ACCOUNT, GENERAL)


def pages(explained: Mapping[str, Sequence[TextBlock]]) -> dict[Path, str]:
    """Return every manual page; ``explained`` is the text of each topic."""
    found = {"azguard.1": _main()}
    found |= {f"azguard-{noun}.1": _noun(noun) for noun in COMMANDS}
    found |= {f"azguard-{name}.7": _topic(name, blocks) for name, blocks in explained.items()}
    return {FOLDER / name: text for name, text in found.items()}


def _main() -> str:
    told = HelpText(root.help)
    commands = [(f"azguard-{noun}(1)", entry.summary) for noun, entry in COMMANDS.items()]
    about = [(f"azguard-{name}(7)", summary) for name, summary in TOPICS.items()]
    return _page(
        "azguard",
        1,
        "concurrency-safe operations on Azure Storage",
        [
            _heading("Synopsis"),
            _paragraph("azguard COMMAND [ARGUMENTS] [OPTIONS]"),
            _heading("Description"),
            _paragraph(told.summary),
            _heading("Examples"),
            _code(told.examples),
            _heading("Commands"),
            *(_tagged(*row) for row in commands),
            _heading("Topics"),
            *(_tagged(*row) for row in about),
        ],
    )


def _noun(noun: str) -> str:
    found = root.get(noun)
    assert found is not None
    leaves = list(found.walk(noun)) if isinstance(found, Group) else [(noun, found)]
    parts = [_heading("Description"), _paragraph(HelpText(found.help).summary)]
    for name, each in leaves:
        parts += _command(name, each)
    topics = [topic for _, each in leaves for topic in HelpText(each.help).topics]
    named = ["azguard(1)", *(f"azguard-{name}(7)" for name in dict.fromkeys(["options", *topics]))]
    parts += [_heading("See also"), _paragraph(", ".join(named))]
    return _page(f"azguard-{noun}", 1, COMMANDS[noun].summary, parts)


def _command(name: str, command: TreeNode) -> Iterator[str]:
    told = HelpText(command.help)
    yield f'.SH "{_escaped(f"azguard {name}")}"\n'
    yield _code([f"azguard {name} {usage(command)}"])
    yield from map(_paragraph, [told.summary, *told.notes])
    yield from (
        _tagged(write_row(row), explain(command, row))
        for row in command.rows
        if not row.is_hidden and row.panel not in _SHARED
    )
    yield ".SS Examples\n"
    yield _code(told.examples)


def _topic(name: str, blocks: Sequence[TextBlock]) -> str:
    parts = [_heading("Description"), *map(_block, blocks)]
    parts += [_heading("See also"), _paragraph("azguard(1)")]
    return _page(f"azguard-{name}", 7, TOPICS[name], parts)


def _block(block: TextBlock) -> str:
    match block.kind:
        case "heading":
            return _heading(block.lines[0])
        case "paragraph":
            return _paragraph(block.lines[0])
        case "code":
            return _code(block.lines)
        case "list":
            return "".join(_item(*line.split(" ", 1)) for line in block.lines)
        case "table":
            return "".join(_tagged(row[0], "; ".join(filter(None, row[1:]))) for row in block.rows[1:])


def _page(name: str, section: int, purpose: str, parts: Iterable[str]) -> str:
    purpose = purpose[:1].lower() + purpose[1:].removesuffix(".")
    head = f'.TH {name.upper()} {section} "" "azguard {__version__}" "azguard manual"\n'
    return f"{head}{_heading('Name')}{_escaped(f'{name} - {purpose}')}\n{''.join(parts)}"


def _heading(text: str) -> str:
    return f'.SH "{_escaped(text.upper())}"\n'


def _paragraph(text: str) -> str:
    return f".PP\n{_escaped(' '.join(text.split()))}\n"


def _code(lines: Iterable[str]) -> str:
    return ".PP\n.RS 4\n.nf\n" + "".join(f"{_escaped(line)}\n" for line in lines) + ".fi\n.RE\n"


def _tagged(name: str, text: str) -> str:
    return f".TP\n\\fB{_escaped(name)}\\fR\n{_escaped(' '.join(text.split()))}\n"


def _item(mark: str, text: str) -> str:
    mark = "\\(bu" if mark == "-" else mark
    return f".IP {mark} 4\n{_escaped(text)}\n"


def _escaped(text: str) -> str:
    """Return text as roff takes it: no macro, no escape, ASCII alone."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace('"', "\\(dq")
    text = text.replace("`", "\\(ga").replace("^", "\\(ha").replace("~", "\\(ti")
    text = "".join(char if char.isascii() else f"\\[u{ord(char):04X}]" for char in text)
    return f"\\&{text}" if text.startswith((".", "'")) else text
