"""Pages for a web browser, each a file that needs no other but the pictures it names."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from lspe.files.text import write_text

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1b2733; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse } td, th { padding: .2rem .8rem; border-bottom: 1px solid #d9dee4; text-align: right }
td:first-child, th:first-child { text-align: left } figure { margin: 0 }
img { max-width: 100%; height: auto } figcaption { color: #6b7785; font-size: 13px; overflow-wrap: anywhere }
.many { display: grid; grid-template-columns: repeat(auto-fill, minmax(14rem, 1fr)); gap: 1rem }
"""


def write_page(path: Path, title: str, parts: Sequence[str]) -> None:
    """A page with a heading and, below it, parts that are HTML."""
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
    body = "\n".join([f"<h1>{escape(title)}</h1>", *parts])
    write_text(path, f'<!doctype html><html lang="en"><head>{head}</head><body>\n{body}\n</body></html>\n')


def figure(picture: str, words: str) -> str:
    """A picture, which is HTML, and what is said below it."""
    return f"<figure>{picture}<figcaption>{escape(words)}</figcaption></figure>"


def side_by_side(figures: Sequence[str]) -> str:
    """As many figures in a row as there is room for."""
    return f'<div class="many">{"".join(figures)}</div>'


def paragraphs(texts: Sequence[str], tag: str = "p") -> list[str]:
    """Texts, of which those that are empty are left out."""
    return [f"<{tag}>{escape(text)}</{tag}>" for text in texts if text]
