"""Parser of macros in submit descriptions: `$(name)`, `$(name:default)`, `$INT(name)`.

A text is parsed once into a template: a sequence of plain texts, slots and function calls. Also
turns a template back into text, and lists the names in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from matching.descriptions.macro_functions import RANDOM, SEEDS, looked_up

#: So deep macros may be nested, by the values that they stand for as well.
MAX_DEPTH = 20
_NAME = re.compile(r"[A-Za-z0-9_./]*")
_MACRO = re.compile(
    r"\$(INT|REAL|STRING|EVAL|CHOICE|SUBSTR|RANDOM_CHOICE|RANDOM_INTEGER|BASENAME|DIRNAME"
    r"|F[fpduwnxbqaFPDUWNXBQA]*|)\("
)
_MARK = re.compile(rf"{_MACRO.pattern}|[()]")
_COMMA = re.compile(r"[(),]")
#: Templates of longer texts are not kept.
_MAX_KEPT_LENGTH = 1024


class Slot(NamedTuple):
    """A macro in a template; its name is lower-case text, or a template if it has macros.

    An empty value is replaced by the default, unless the slot `takes_empty` ones.
    """

    name: Template | str
    default: Template
    takes_empty: bool = False


class Call(NamedTuple):
    """A function call in a template, such as `$INT(name,%03d)`.

    An argument that names a value is a slot. `seat` distinguishes calls: what is drawn at random
    depends on it. It is empty where the position in the template is enough.
    """

    function: str
    arguments: tuple[Template, ...]
    seat: str = ""


#: A text cut at its macros.
Template: TypeAlias = tuple["str | Slot | Call", ...]


class MacroError(ValueError):
    """A macro that refers to itself, or values that grow without bounds."""


def parse_template(text: str) -> Template:
    """Template of a text, split at its macros. An unclosed macro is plain text.

    Takes time in proportion to the text. Raises MacroError for macros nested too deep.
    """
    if "$" not in text:
        return (text,) if text else ()
    # Long texts are not kept: thousands of them would fill the memory.
    return _kept(text) if len(text) <= _MAX_KEPT_LENGTH else _Parser(text).template()


@lru_cache(maxsize=4096)
def _kept(text: str) -> Template:
    return _Parser(text).template()


_Cut: TypeAlias = tuple[int, int, Slot | Call]


class _Opening:
    """A macro that is not closed yet: first its name is read, then its default, if it has one.

    The arguments of a function are read like a default.
    """

    __slots__ = (
        "begin", "cuts", "cuts_of_name", "function", "name", "nested", "parentheses", "start",
    )  # fmt: skip

    def __init__(self, start: int, begin: int, function: str = "", name: str | None = None) -> None:
        self.start = start
        self.function = function
        #: Where the part begins that is being read, with the macros in it.
        self.begin = begin
        self.cuts: list[_Cut] = []
        self.cuts_of_name: list[_Cut] = []
        #: None while the name is read.
        self.name: Template | str | None = function or name
        #: How deep the macros in it are nested.
        self.nested = 0
        #: So many plain ones are open.
        self.parentheses = 0


class _Parser:
    """Reads a text once; macros that are not closed yet are on a stack."""

    def __init__(self, text: str) -> None:
        self._text = text
        # The text as a whole is read like a default that nothing closes.
        self._open = [_Opening(0, 0, name="")]

    def template(self) -> Template:
        position = 0
        while position < len(self._text):
            is_name = self._open[-1].name is None
            position = self._read_name(position) if is_name else self._read_plain(position)
        self._give_up(1)
        return _cut(self._text, 0, len(self._text), self._open[0].cuts)

    def _read_plain(self, position: int) -> int:
        """Skip to the next opening or closing mark; the position to go on from."""
        found = _MARK.search(self._text, position)
        if found is None:
            return len(self._text)
        opening = self._open[-1]
        if found[0] == ")":
            if len(self._open) > 1 and not opening.parentheses:
                self._close(found.start())
            else:
                opening.parentheses -= 1
        elif not self._opens(found):
            opening.parentheses += 1
        return found.end()

    def _opens(self, found: re.Match[str]) -> bool:
        """Push an opening for what was found, if it may begin a macro."""
        if found[0] == "(" or not _is_odd(self._text, found.start()):
            return False
        self._open.append(_Opening(found.start(), found.end(), found[1]))
        return True

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
        elif (found := _MACRO.match(text, end)) is not None and self._opens(found):
            return found.end()
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
        """Make a macro of the innermost opening, which is closed at `end`."""
        opening = self._open.pop()
        if opening.nested >= MAX_DEPTH:
            raise MacroError(f"more than {MAX_DEPTH} macros are nested")
        slot: Slot | Call
        if opening.function:
            slot = Call(opening.function, self._arguments(opening, end))
        elif opening.name is None:
            slot = Slot(self._name(opening, end), ())
        else:
            slot = Slot(opening.name, _cut(self._text, opening.begin, end, opening.cuts))
        around = self._open[-1]
        around.cuts.append((opening.start, end + 1, slot))
        around.nested = max(around.nested, opening.nested + 1)

    def _arguments(self, opening: _Opening, end: int) -> tuple[Template, ...]:
        """Arguments of a function; one that may name a value becomes a slot."""
        arguments = _split(_cut(self._text, opening.begin, end, opening.cuts))
        return tuple(
            _argument(argument, looked_up(opening.function, place, len(arguments)))
            for place, argument in enumerate(arguments)
        )

    def _give_up(self, first: int) -> None:
        """Turn the openings from this one on into plain text; complete macros inside stay."""
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
    """Part of a text, split at its macros."""
    parts: list[str | Slot | Call] = []
    for cut_start, cut_end, slot in cuts:
        if cut_start > start:
            parts.append(text[start:cut_start])
        parts.append(slot)
        start = cut_end
    if end > start:
        parts.append(text[start:end])
    return tuple(parts)


def _split(template: Template) -> list[Template]:
    """Template, split at commas that are outside of parentheses."""
    found: list[list[str | Slot | Call]] = [[]]
    depth = 0
    for part in template:
        if not isinstance(part, str):
            found[-1].append(part)
            continue
        begin = 0
        for mark in _COMMA.finditer(part):
            depth += {"(": 1, ")": -1}.get(mark[0], 0)
            if mark[0] == "," and depth <= 0:
                found[-1].append(part[begin : mark.start()])
                found.append([])
                begin = mark.end()
        found[-1].append(part[begin:])
    return [tuple(filter(None, each)) for each in found]


def _argument(argument: Template, kind: str) -> Template:
    """Argument as a slot, if its kind is looked up and it may be a name."""
    text = argument[0].strip() if len(argument) == 1 and isinstance(argument[0], str) else ""
    if not kind or not text or not _NAME.fullmatch(text):
        return argument
    return (Slot(text.lower(), argument if kind == "name or text" else (), takes_empty=True),)


def _is_odd(text: str, position: int) -> bool:
    """Whether a macro may open here. Dollar signs form pairs: `$$(` is a reference, `$$$(` one."""
    first = position
    while first and text[first - 1] == "$":
        first -= 1
    return (position - first) % 2 == 0


def text_of(template: Template) -> str:
    """Text that a template was parsed from; names in lower case."""
    return "".join(map(_part_text, template))


def _part_text(part: str | Slot | Call) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Call):
        return f"${part.function}({','.join(map(text_of, part.arguments))})"
    name = part.name if isinstance(part.name, str) else text_of(part.name)
    if part.takes_empty:
        return name
    return f"$({name}:{text_of(part.default)})" if part.default else f"$({name})"


def names_in(template: Template) -> set[str]:
    """Names of a template's slots, those in names, defaults and arguments included."""
    names: set[str] = set()
    for part in template:
        if isinstance(part, Slot):
            names |= {part.name} if isinstance(part.name, str) else names_in(part.name)
            names |= names_in(part.default)
        elif isinstance(part, Call):
            names.update(*map(names_in, part.arguments))
            names.update(SEEDS if part.function in RANDOM else ())
    return names
