"""Elements of a page: the one place where a text becomes HTML, and every text that is not `Markup` is escaped."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence


class Markup(str):
    """A text that is HTML already."""

    __slots__ = ()


Content = str | None | Sequence["Content"]


def element(name: str, *content: Content, **attributes: str | None) -> Markup:
    """Make an element; every text in it is escaped, save Markup. An attribute of None is left out.

    `class_` stands for `class`, `aria_label` for `aria-label`.
    """
    pairs = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escaped(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{pairs}>{_joined(content)}</{name}>")


def _joined(content: Content) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content if isinstance(content, Markup) else escaped(content)
    return "".join(map(_joined, content))


_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters, which HTML does not allow, and lone surrogates, which UTF-8 cannot hold."""


def escaped(text: str) -> str:
    """What stands for a text in HTML, also in an attribute."""
    return html.escape(_UNWRITABLE.sub("\ufffd", text))


def written(text: str, name: str = "span", **attributes: str | None) -> Markup:
    """What a person wrote: its language is not known, and its direction must not turn what stands beside it."""
    return element(name, text, **{"lang": "", "dir": "auto", **attributes})


def data_table(caption: str, headings: Sequence[str], rows: Iterable[Sequence[Content]]) -> Markup:
    """A table whose first column names its rows; it scrolls by itself where it is too wide."""
    body = [
        element("tr", element("th", first, scope="row"), [element("td", cell) for cell in cells])
        for first, *cells in rows
    ]
    table = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", [element("th", heading, scope="col") for heading in headings])),
        element("tbody", body),
    )
    return element("div", table, class_="scroll", tabindex="0", role="region", aria_label=caption)


def details(summary: Content, *content: Content, is_open: bool = False, class_: str | None = None) -> Markup:
    """What is folded under a summary."""
    return element("details", element("summary", summary), content, open="" if is_open else None, class_=class_)


def section(name: str, heading: str, *content: Content) -> Markup:
    """A part of the page under a heading that names it."""
    return element("section", element("h2", heading, id=f"{name}-h"), content, id=name, aria_labelledby=f"{name}-h")


def fact_list(facts: Iterable[tuple[str, Content]]) -> Markup:
    """Names, each with what it is."""
    return element("dl", [element("div", element("dt", name), element("dd", value)) for name, value in facts])
