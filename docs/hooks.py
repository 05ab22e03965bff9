"""Formulas for the documentation, without a script from elsewhere: LaTeX becomes MathML when the pages are built."""

import html
import re
import textwrap
from typing import Any

import griffe
from latex2mathml.converter import convert

BLOCK = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)
INLINE = re.compile(r'<span class="arithmatex">\s*\\\((.*?)\\\)\s*</span>', re.DOTALL)


def on_page_content(content: str, **_: Any) -> str:
    r"""Turn what arithmatex marked, \(...\) and \[...\], into MathML."""
    content = re.sub(
        r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', lambda m: _mathml(m[1], "block"), content, flags=re.DOTALL
    )
    return re.sub(
        r'<span class="arithmatex">\s*\\\((.*?)\\\)\s*</span>',
        lambda m: _mathml(m[1], "inline"),
        content,
        flags=re.DOTALL,
    )


def _mathml(latex: str, display: str) -> str:
    latex = html.unescape(latex).strip()
    if "&" in latex and r"\begin{aligned}" not in latex:
        latex = rf"\begin{{aligned}}{latex}\end{{aligned}}"
    return convert(latex, display=display)


class DocstringMarkup(griffe.Extension):
    """Docstrings are written for Sphinx as PyG's are; show their formulas and references in Markdown."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = _to_markdown(obj.docstring.value)


def _to_markdown(text: str) -> str:
    text = re.sub(r"^( *)\.\. math::[ \t]*(.*(?:\n(?:\1[ \t]+.*|[ \t]*$))*)", _block, text, flags=re.MULTILINE)
    text = re.sub(r":math:`(.*?)`", r"\\(\1\\)", text, flags=re.DOTALL)
    text = re.sub(r":\w+:`~?([^`]+)`", lambda m: f"`{m[1].split('.')[-1]}`", text)
    return re.sub(r"``(.+?)``", r"`\1`", text)


def _block(match: re.Match[str]) -> str:
    indent, body = match[1], textwrap.dedent(match[2]).strip()
    lines = [line for line in body.splitlines() if line.strip()]
    return "\n".join(indent + line.strip() for line in ["", "$$", *lines, "$$", ""])
