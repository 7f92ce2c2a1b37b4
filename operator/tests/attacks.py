"""Texts with which a stranger would move a terminal, a page, a query or a log."""

from __future__ import annotations

ATTACKS = {
    "clear the screen": "\x1b[2J\x1b[Hall is well",
    "a title of the window": "\x1b]0;pwned\x07",
    "a link": "\x1b]8;;http://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "an answer typed for the user": '\x1b[6n\x1bP$q"p\x1b\\',
    "C1 without an escape": "\x9b2J\x9d0;pwned\x9c",
    "back over the line": "failed\r\x08\x08\x08\x7fpassed",
    "a line of its own": "x\n2026-01-01 00:00:00,000 INFO laptime: all is well",
    "a line of Unicode": "x\u2028y\u2029z\x85\x0b\x0c",
    "from right to left": "\u202egnp.exe\u202c \u2066x\u2069 \u200f",
    "nothing to see": "a\u200bb\u2060c\ufeffd\u00ade\U000e0041",
    "half a pair": "\ud83c alone",
    "a page": "</style></title><script>alert(1)</script><img src=x onerror=alert(1)>",
    "an attribute": '" onmouseover="alert(1)" style="position:fixed;inset:0" x=\'',
    "a style": "red;background:url(//evil.example/x)}body{display:none",
    "a template": "{{ 7*7 }}{% raw %}${7*7}$x^2$ \\frac{1}{0}",
    "a query": '"} or vector(1) # \\" [5m]',
    "markup of Rich": "[bold red]x[/] [link=http://evil.example]y[/link]",
    "Markdown": "![x](http://evil.example/x.png) <img src=x> | a | b |\n# heading",
}
"""By what they try."""


def harmless(text: str) -> bool:
    """Whether nothing but printable characters and line feeds is in it."""
    return all(line.isprintable() for line in text.split("\n"))
