"""What a terminal shows, as a picture: by rich's export, without the fonts that it would load from elsewhere."""

import io
import re
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

_FORMAT = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
    <style>
    .{unique_id}-matrix {{
        font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
        font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width;
    }}
    .{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
    {styles}
    </style>
    <defs>
    <clipPath id="{unique_id}-clip-terminal">
    <rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
    </clipPath>
    {lines}
    </defs>
    {chrome}
    <g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
    {backgrounds}
    <g class="{unique_id}-matrix">
    {matrix}
    </g>
    </g>
</svg>
"""
_DEMO_COLUMNS, _REFUSAL_COLUMNS = 80, 108
#: Light letters on dark, with enough contrast for each colour.
_THEME = TerminalTheme(
    (22, 27, 34),
    (230, 237, 243),
    [(72, 79, 88), (255, 123, 114), (86, 211, 100), (227, 179, 65), (121, 192, 255), (210, 168, 255), (86, 212, 221),
     (230, 237, 243)],
)  # fmt: skip
_SHOWN = re.compile(
    r"\$ (?P<command>azguard blob put site/config\.json -f config\.json)[^\n]*\n(?P<shown>error: .*?)```", re.DOTALL
)


def demo() -> str:
    """Return the picture of the demo, from the text that a run of it left on a terminal."""
    return _picture(
        "azguard demo", (Path(__file__).parent / "demo.txt").read_text(encoding="utf-8"), "demo", _DEMO_COLUMNS
    )


def refusal() -> str:
    """Return the picture of a refused write, from the page about conditions, where a test compares it."""
    found = _SHOWN.search((Path(__file__).parents[1] / "conditions.md").read_text(encoding="utf-8"))
    assert found is not None
    return _picture(found["command"], found["shown"].rstrip() + "\n$ echo $?\n42", "refusal", _REFUSAL_COLUMNS)


def _picture(command: str, shown: str, name: str, columns: int) -> str:
    console = Console(record=True, width=columns, file=io.StringIO(), highlight=False, legacy_windows=False)
    console.print(Text(f"$ {command}", style="bold"))
    for line in shown.splitlines():
        console.print(_styled(line), soft_wrap=False)
    return console.export_svg(title=command, theme=_THEME, code_format=_FORMAT, unique_id=name)


def _styled(line: str) -> Text:
    if line.startswith("$ "):
        return Text(line, style="bold")
    text = Text.from_ansi(line)
    text.highlight_regex(r"^error:", "bold red")
    text.highlight_regex(r"^hint:", "cyan")
    return text
