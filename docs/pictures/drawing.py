"""Boxes, arrows and text as SVG, on a light card, so that they are readable on a dark page too."""

from dataclasses import dataclass, field
from xml.sax.saxutils import escape

INK, GREY, BLUE, RED, GREEN, ORANGE = "#1f2328", "#59636e", "#0969da", "#cf222e", "#1a7f37", "#9a6700"
PAPER, LINE = "#ffffff", "#d0d7de"
_FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', 'Noto Sans', Arial, sans-serif"
_MONO = "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace"


@dataclass
class Drawing:
    """A picture that grows by what is added to it. Coordinates are pixels from the top left."""

    width: int
    height: int
    title: str
    _parts: list[str] = field(default_factory=list)

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        color: str = INK,
        size: int = 14,
        anchor: str = "start",
        bold: bool = False,
        mono: bool = False,
    ) -> None:
        """Write one line."""
        weight = ' font-weight="600"' if bold else ""
        family = f' font-family="{_MONO}"' if mono else ""
        self._parts.append(
            f'<text x="{x:g}" y="{y:g}" fill="{color}" font-size="{size}" text-anchor="{anchor}"{weight}{family}>'
            f"{escape(words)}</text>"
        )

    def line(
        self, x1: float, y1: float, x2: float, y2: float, *, color: str = GREY, width: float = 1.5, dashed: bool = False
    ) -> None:
        """Draw a line."""
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self._parts.append(
            f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{color}" stroke-width="{width:g}"{dash}/>'
        )

    def arrow(self, x1: float, y1: float, x2: float, y2: float, *, color: str = GREY, dashed: bool = False) -> None:
        """Draw a line with a head at its end."""
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self._parts.append(
            f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{color}" stroke-width="1.8"{dash} '
            f'marker-end="url(#head-{color[1:]})"/>'
        )

    def path(self, points: str, *, color: str = GREY) -> None:
        """Draw a bent arrow along the points of an SVG path."""
        self._parts.append(
            f'<path d="{points}" fill="none" stroke="{color}" stroke-width="1.8" marker-end="url(#head-{color[1:]})"/>'
        )

    def curve(self, points: list[tuple[float, float]], *, color: str, dash: str = "") -> None:
        """Draw a line through points, with a dot on each."""
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self._parts.append(f'<polyline points="{joined}" fill="none" stroke="{color}" stroke-width="2"{dashes}/>')
        self._parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{color}"/>' for x, y in points]

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        fill: str = "#f6f8fa",
        stroke: str = LINE,
        radius: int = 6,
    ) -> None:
        """Draw a box."""
        self._parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius}" '
            f'fill="{fill}" stroke="{stroke}"/>'
        )

    def labelled(
        self, x: float, y: float, width: float, height: float, *lines: str, fill: str = "#f6f8fa", stroke: str = LINE
    ) -> None:
        """Draw a box with lines of text in its middle, the first of them bold."""
        self.box(x, y, width, height, fill=fill, stroke=stroke)
        top = y + height / 2 + 5 - 9 * (len(lines) - 1)
        for number, words in enumerate(lines):
            self.text(x + width / 2, top + 18 * number, words, anchor="middle", bold=not number, size=13)

    def svg(self) -> str:
        """Return the picture."""
        heads = "".join(
            f'<marker id="head-{color[1:]}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
            f'orient="auto-start-reverse"><path d="M0 0 L10 5 L0 10 z" fill="{color}"/></marker>'
            for color in (INK, GREY, BLUE, RED, GREEN, ORANGE)
        )
        body = "\n".join(self._parts)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
            f'height="{self.height}" font-family="{_FONT}" role="img">\n<title>{escape(self.title)}</title>\n'
            f"<defs>{heads}</defs>\n"
            f'<rect x="0.5" y="0.5" width="{self.width - 1}" height="{self.height - 1}" rx="10" fill="{PAPER}" '
            f'stroke="{LINE}"/>\n{body}\n</svg>\n'
        )
