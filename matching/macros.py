"""Macros of submit descriptions: `$(name)` and `$(name:default)`, with HTCondor's rules.

A text is read once into a template, a row of plain texts and slots. A name has no case. Its value
is looked for when a job is made of the description (so the last assignment wins, wherever it
stands) and may have macros itself. A name without a value, or with an empty one, stands for its
default, and that for nothing. Where a value uses its own name, it means the value that the name had
before. `$(DOLLAR)` is a dollar sign that begins no macro. `$$(...)` and `$ENV(...)` are references,
which `matching.substitution` fills in later; macros inside of them are filled in here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from matching.substitution import MAX_TEXT_LENGTH

_NAME = re.compile(r"[A-Za-z0-9_./]*")
_MAX_DEPTH = 20
#: So many slots a template has after the description's own values are filled in.
_MAX_PARTS = 10_000
_DOLLAR = "dollar"


class Slot(NamedTuple):
    """The place of a macro; its name is a text in lower case, or a template if it has macros."""

    name: Template | str
    default: Template


#: A text cut at its macros.
Template: TypeAlias = tuple["str | Slot", ...]


class MacroError(ValueError):
    """A macro that uses itself in a circle, or values that grow beyond all bounds."""


@lru_cache(maxsize=4096)
def parse_template(text: str) -> Template:
    """Cut a text at its macros. What looks like one but is not closed is plain text."""
    if "$(" not in text:
        return (text,) if text else ()
    parts, _ = _parse(text, 0, is_inside=False)
    return parts


def _parse(text: str, start: int, *, is_inside: bool) -> tuple[Template, int]:
    """The template from `start` to the end, or to the parenthesis that closes a macro."""
    parts: list[str | Slot] = []
    plain, position, depth = start, start, 0
    while position < len(text):
        char = text[position]
        if is_inside and char == ")" and not depth:
            break
        if char == "$" and (found := _slot(text, position)) is not None:
            slot, end = found
            if position > plain:
                parts.append(text[plain:position])
            parts.append(slot)
            plain = position = end
            continue
        depth += (char == "(") - (char == ")")
        position += 1
    if position > plain:
        parts.append(text[plain:position])
    return tuple(parts), position


def _slot(text: str, position: int) -> tuple[Slot, int] | None:
    """The macro that begins at a dollar sign, and where it ends; None when none does."""
    if text[position + 1 : position + 2] != "(" or _is_second_dollar(text, position):
        return None
    name, end = _name(text, position + 2)
    if text[end : end + 1] == ")":
        return Slot(name, ()), end + 1
    if text[end : end + 1] != ":":
        return None
    default, end = _parse(text, end + 1, is_inside=True)
    return (Slot(name, default), end + 1) if text[end : end + 1] == ")" else None


def _is_second_dollar(text: str, position: int) -> bool:
    """Whether the dollar signs up to here form pairs: `$$(` opens a reference, `$$$(` a macro."""
    first = position
    while first and text[first - 1] == "$":
        first -= 1
    return (position - first) % 2 == 1


def _name(text: str, start: int) -> tuple[Template | str, int]:
    parts: list[str | Slot] = []
    position = start
    while True:
        found = _NAME.match(text, position)
        if found is not None and found.group():
            parts.append(found.group())
            position = found.end()
        if text[position : position + 1] != "$" or (inner := _slot(text, position)) is None:
            break
        parts.append(inner[0])
        position = inner[1]
    if not any(isinstance(part, Slot) for part in parts):
        return "".join(map(str, parts)).lower(), position
    return tuple(parts), position


class Scopes:
    """The values that names have, in layers: what is in an earlier layer hides the later ones."""

    def __init__(self, *layers: Mapping[str, str]) -> None:
        """`layers` by names in lower case."""
        self._layers = layers
        self._made = 0

    def expand(self, template: Template) -> str:
        """The text with all macros filled in. Raises MacroError."""
        self._made = 0
        return self._expand(template, "", 0, 0)

    def value(self, layer: int, name: str) -> str:
        """The value that a name has in a layer, with its macros filled in. Raises MacroError."""
        self._made = 0
        return self._expand(parse_template(self._layers[layer][name]), name, layer, 0)

    def _expand(self, template: Template, own_name: str, own_layer: int, depth: int) -> str:
        if depth > _MAX_DEPTH:
            raise MacroError(_too_deep(own_name))
        texts = [
            part if isinstance(part, str) else self._value(part, own_name, own_layer, depth)
            for part in template
        ]
        text = "".join(texts)
        self._made += len(text)
        if self._made > MAX_TEXT_LENGTH:
            raise MacroError(f"macros expand to more than {MAX_TEXT_LENGTH} characters")
        return text

    def _value(self, slot: Slot, own_name: str, own_layer: int, depth: int) -> str:
        name = slot.name
        if not isinstance(name, str):
            name = self._expand(name, own_name, own_layer, depth + 1).lower()
        if name == _DOLLAR:
            return "$"
        # Its own name in a value means what the name was before it.
        first = own_layer + 1 if name == own_name else 0
        for layer in range(first, len(self._layers)):
            value = self._layers[layer].get(name)
            if value:
                return self._expand(parse_template(value), name, layer, depth + 1)
            if value is not None:
                break
        return self._expand(slot.default, own_name, own_layer, depth + 1)


def merged(earlier: str | None, name: str, text: str) -> str:
    """The value of a name that is assigned again: where it uses itself, the earlier one stands."""
    if earlier is None or "$(" not in text:
        return text
    parts = parse_template(text)
    if not any(isinstance(part, Slot) and part.name == name for part in parts):
        return text
    return "".join(
        part
        if isinstance(part, str)
        else earlier or text_of(part.default)
        if part.name == name
        else text_of((part,))
        for part in parts
    )


def text_of(template: Template) -> str:
    """The text that a template was cut from; names in lower case."""
    return "".join(
        part
        if isinstance(part, str)
        else f"$({part.name if isinstance(part.name, str) else text_of(part.name)}"
        + (f":{text_of(part.default)})" if part.default else ")")
        for part in template
    )


class Flattener:
    """Fills in the values that a description gives its names itself; other names stay slots."""

    def __init__(self, known: Mapping[str, str]) -> None:
        """`known` by names in lower case."""
        self._known = known
        self._done: dict[str, tuple[Template, int]] = {}

    def flatten(self, text: str) -> Template:
        """The template of a text, as far as the description tells. Raises MacroError."""
        return self._flatten(parse_template(text), "", ())[0]

    def value(self, name: str) -> Template:
        """The template of a name that the description gives a value. Raises MacroError."""
        return self._value(name, ())[0]

    def _value(self, name: str, path: tuple[str, ...]) -> tuple[Template, int]:
        if name in self._done:
            return self._done[name]
        if name in path or len(path) > _MAX_DEPTH:
            raise MacroError(_too_deep(name))
        template = parse_template(self._known[name])
        self._done[name] = self._flatten(template, name, (*path, name))
        return self._done[name]

    def _flatten(
        self, template: Template, own_name: str, path: tuple[str, ...]
    ) -> tuple[Template, int]:
        """The template and how deep the names in it are nested."""
        parts: list[str | Slot] = []
        nested = length = 0
        for part in template:
            more, depth = (
                ((part,), 0) if isinstance(part, str) else self._slot(part, own_name, path)
            )
            parts += more
            nested = max(nested, depth)
            length += sum(len(each) if isinstance(each, str) else 1 for each in more)
            if nested > _MAX_DEPTH:
                raise MacroError(_too_deep(own_name))
            if length > MAX_TEXT_LENGTH or len(parts) > _MAX_PARTS:
                raise MacroError(f"macros expand to more than {MAX_TEXT_LENGTH} characters")
        return _joined(parts), nested

    def _slot(self, slot: Slot, own_name: str, path: tuple[str, ...]) -> tuple[Template, int]:
        default, depth = self._flatten(slot.default, own_name, path)
        if slot.name == _DOLLAR:
            return ("$",), 0
        if not isinstance(slot.name, str):
            name, depth_of_name = self._flatten(slot.name, own_name, path)
            return (Slot(name, default),), max(depth, depth_of_name)
        # Its own name in a value means what the name was before the description.
        if slot.name == own_name or slot.name not in self._known:
            return (Slot(slot.name, default),), depth
        if not self._known[slot.name]:
            return default, depth
        value, depth_of_value = self._value(slot.name, path)
        return value, depth_of_value + 1


def _too_deep(name: str) -> str:
    return f"a macro uses itself, or more than {_MAX_DEPTH} are nested: $({name})"


def _joined(parts: Sequence[str | Slot]) -> Template:
    joined: list[str | Slot] = []
    for part in parts:
        if joined and isinstance(part, str) and isinstance(joined[-1], str):
            joined[-1] += part
        else:
            joined.append(part)
    return tuple(joined)


def names_in(template: Template) -> set[str]:
    """The names of a template's slots, those in names and defaults included."""
    names: set[str] = set()
    for part in template:
        if isinstance(part, Slot):
            names |= {part.name} if isinstance(part.name, str) else names_in(part.name)
            names |= names_in(part.default)
    return names
