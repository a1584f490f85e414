"""HTML that nothing can break which it shows: all text is escaped, unless it was built here."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from typing import TypeAlias

_VOID = frozenset({"col", "meta"})
# Control characters, half characters, and those that turn the direction of the text around them.
_NEVER_SHOWN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
    "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)
# Attributes that may load something; they lead to places on the page alone.
_LINKS = frozenset({"href", "src", "action", "xlink:href"})


class Markup(str):
    """Finished HTML. Only this module makes it."""

    __slots__ = ()


Child: TypeAlias = "str | int | Iterable[Child] | None"
Attribute: TypeAlias = "str | int | float | bool | None"


def element(tag: str, *children: Child, **attributes: Attribute) -> Markup:
    """An element with its children.

    Parameters
    ----------
    tag : str
    *children : str, int, None or iterables of them
        Text is escaped, `Markup` is not; None is left out.
    **attributes : str, number, bool or None
        `class_` stands for class, and data_value for data-value. None and False are left out, True
        has no value.
    """
    opening = f"<{tag}{''.join(_attribute(*item) for item in attributes.items())}>"
    if tag in _VOID:
        return Markup(opening)
    return Markup(f"{opening}{_text(children)}</{tag}>")


def fragment(*children: Child) -> Markup:
    """Several pieces after one another."""
    return Markup(_text(children))


def verbatim(tag: str, text: str) -> Markup:
    """A style or a script, which is not escaped; its text is the library's own."""
    if "</" in text or "<!" in text:
        raise ValueError(f"{tag} must not hold '</' or '<!'.")
    return Markup(f"<{tag}>{text}</{tag}>")


def document(head: Markup, body: Markup) -> str:
    """The whole page."""
    return f'<!DOCTYPE html>\n<html lang="en">{head}{body}</html>\n'


def _text(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return child
    if isinstance(child, str | int):
        return _escaped(str(child))
    return "".join(_text(part) for part in child)


def _attribute(name: str, value: Attribute) -> str:
    name = name.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    if value is True:
        return f" {name}"
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    if name in _LINKS and not text.startswith("#"):
        raise ValueError(f"{name} must lead to a place on the page; found {text!r}.")
    return f' {name}="{_escaped(text)}"'


def _escaped(text: str) -> str:
    return escape(_NEVER_SHOWN.sub("\N{REPLACEMENT CHARACTER}", text), quote=True)
