"""Texts of submit descriptions, cut at their macros: `$(name)` and `$(name:default)`.

A text is read once into a template, a row of plain texts and slots.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

#: So deep macros may be nested, by the values that they stand for as well.
MAX_DEPTH = 20
_NAME = re.compile(r"[A-Za-z0-9_./]*")
_MARK = re.compile(r"\$\(|[()]")
#: Templates of longer texts are not kept.
_MAX_KEPT_LENGTH = 1024


class Slot(NamedTuple):
    """The place of a macro; its name is a text in lower case, or a template if it has macros."""

    name: Template | str
    default: Template


#: A text cut at its macros.
Template: TypeAlias = tuple["str | Slot", ...]


class MacroError(ValueError):
    """A macro that uses itself in a circle, or values that grow beyond all bounds."""


def parse_template(text: str) -> Template:
    """Cut a text at its macros. What looks like one but is not closed is plain text.

    Takes time in proportion to the text. Raises MacroError for macros nested too deep.
    """
    if "$(" not in text:
        return (text,) if text else ()
    # Long texts are not kept: thousands of them would fill the memory.
    return _kept(text) if len(text) <= _MAX_KEPT_LENGTH else _Parser(text).template()


@lru_cache(maxsize=4096)
def _kept(text: str) -> Template:
    return _Parser(text).template()


_Cut: TypeAlias = tuple[int, int, Slot]


class _Opening:
    """A macro that may be one: its name is read first, and its default, if it has one, then."""

    __slots__ = ("begin", "cuts", "cuts_of_name", "name", "nested", "parentheses", "start")

    def __init__(self, start: int, begin: int, name: str | None = None) -> None:
        self.start = start
        #: Where the part begins that is being read, with the macros in it.
        self.begin = begin
        self.cuts: list[_Cut] = []
        self.cuts_of_name: list[_Cut] = []
        #: None while the name is read.
        self.name: Template | str | None = name
        #: How deep the macros in it are nested.
        self.nested = 0
        #: So many plain ones are open.
        self.parentheses = 0


class _Parser:
    """Reads a text once; the openings that are not closed yet are on a stack."""

    def __init__(self, text: str) -> None:
        self._text = text
        # The text as a whole is read like a default that nothing closes.
        self._open = [_Opening(0, 0, "")]

    def template(self) -> Template:
        position = 0
        while position < len(self._text):
            is_name = self._open[-1].name is None
            position = self._read_name(position) if is_name else self._read_plain(position)
        self._give_up(1)
        return _cut(self._text, 0, len(self._text), self._open[0].cuts)

    def _read_plain(self, position: int) -> int:
        """Go on to what opens or closes something; where to go on from is returned."""
        found = _MARK.search(self._text, position)
        if found is None:
            return len(self._text)
        opening = self._open[-1]
        if found[0] == ")":
            if len(self._open) > 1 and not opening.parentheses:
                self._close(found.start())
            else:
                opening.parentheses -= 1
        elif _is_macro(self._text, found.start()):
            self._open.append(_Opening(found.start(), found.end()))
        else:
            opening.parentheses += 1
        return found.end()

    def _read_name(self, position: int) -> int:
        text, opening = self._text, self._open[-1]
        end = _end(_NAME.match(text, position))
        char = text[end : end + 1]
        if char == ")":
            self._close(end)
        elif char == ":":
            opening.name = self._name(opening, end)
            opening.begin = end + 1
            opening.cuts_of_name, opening.cuts = opening.cuts, []
        elif _is_macro(text, end):
            self._open.append(_Opening(end, end + 2))
            return end + 2
        else:
            # No name goes on like this, and neither does one around it.
            names = len(self._open) - 1
            while self._open[names - 1].name is None:
                names -= 1
            self._give_up(names)
            return end
        return end + 1

    def _name(self, opening: _Opening, end: int) -> Template | str:
        if not opening.cuts:
            return self._text[opening.begin : end].lower()
        return _cut(self._text, opening.begin, end, opening.cuts)

    def _close(self, end: int) -> None:
        """Take the innermost opening for a macro, which is closed at `end`."""
        opening = self._open.pop()
        if opening.nested >= MAX_DEPTH:
            raise MacroError(f"more than {MAX_DEPTH} macros are nested")
        if opening.name is None:
            slot = Slot(self._name(opening, end), ())
        else:
            slot = Slot(opening.name, _cut(self._text, opening.begin, end, opening.cuts))
        around = self._open[-1]
        around.cuts.append((opening.start, end + 1, slot))
        around.nested = max(around.nested, opening.nested + 1)

    def _give_up(self, first: int) -> None:
        """Take the openings from this one on for plain text; the macros in them stay some."""
        around = self._open[first - 1]
        for opening in self._open[first:]:
            around.cuts += opening.cuts_of_name
            around.cuts += opening.cuts
            around.nested = max(around.nested, opening.nested)
            around.parentheses += 1
        del self._open[first:]


def _end(found: re.Match[str] | None) -> int:
    return found.end() if found else 0


def _cut(text: str, start: int, end: int, cuts: Sequence[_Cut]) -> Template:
    """The part of a text, cut at its macros."""
    parts: list[str | Slot] = []
    for cut_start, cut_end, slot in cuts:
        if cut_start > start:
            parts.append(text[start:cut_start])
        parts.append(slot)
        start = cut_end
    if end > start:
        parts.append(text[start:end])
    return tuple(parts)


def _is_macro(text: str, position: int) -> bool:
    """Whether a macro may open here. Dollar signs form pairs: `$$(` is a reference, `$$$(` one."""
    if not text.startswith("$(", position):
        return False
    first = position
    while first and text[first - 1] == "$":
        first -= 1
    return (position - first) % 2 == 0


def text_of(template: Template) -> str:
    """The text that a template was cut from; names in lower case."""
    return "".join(
        part
        if isinstance(part, str)
        else f"$({part.name if isinstance(part.name, str) else text_of(part.name)}"
        + (f":{text_of(part.default)})" if part.default else ")")
        for part in template
    )


def names_in(template: Template) -> set[str]:
    """The names of a template's slots, those in names and defaults included."""
    names: set[str] = set()
    for part in template:
        if isinstance(part, Slot):
            names |= {part.name} if isinstance(part.name, str) else names_in(part.name)
            names |= names_in(part.default)
    return names
