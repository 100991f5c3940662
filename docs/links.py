"""Links of the site to files of the repository that are no pages: to its public home, if pyproject.toml names one.

A page links to them relatively, as it is read in a checkout. mkdocs calls ``on_page_markdown`` (mkdocs.yml, hooks).
"""

import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
_OUTSIDE = re.compile(r"\[(?P<text>[^\]]+)\]\(\.\./(?P<path>[^)#]+)(?P<part>#[^)]*)?\)")


def home() -> str | None:
    """Return the address of the repository; None while it has no public home."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    address = project.get("urls", {}).get("Repository")
    return str(address).rstrip("/") if address else None


def link_home(markdown: str, address: str | None) -> str:
    """Return a page whose links out of docs/ lead to a repository; without one they are plain text."""

    def lead(link: re.Match[str]) -> str:
        if address is None:
            return link["text"]
        return f"[{link['text']}]({address}/blob/main/{link['path']}{link['part'] or ''})"

    return _OUTSIDE.sub(lead, markdown)


def on_page_markdown(markdown: str, **_: Any) -> str:
    return link_home(markdown, home())
