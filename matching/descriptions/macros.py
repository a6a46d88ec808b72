"""Macro expansion in submit descriptions: `$(name)` and `$(name:default)`, by HTCondor's rules.

Names are case-insensitive. A value is looked up when a job is made of the description (so the last
assignment wins, wherever it stands) and may contain macros itself. A name without a value, or with
an empty one, becomes its default, or nothing. Where a value uses its own name, the earlier value of
that name is meant. `$(DOLLAR)` is a dollar sign that begins no macro.
`Scopes` expands all macros, from layers of values; `Flattener` only what a description itself
defines. `Budget` limits the length and work of an expansion. `$INT(name)` and its like are
functions: `matching.descriptions.macro_functions`. `$$(...)` and `$ENV(...)` are references, which
`matching.descriptions.substitution` expands later; macros inside of them are expanded here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matching.descriptions.macro_functions import SEEDS, FunctionError, call
from matching.descriptions.macro_templates import (
    MAX_DEPTH,
    Call,
    MacroError,
    Slot,
    Template,
    names_in,
    parse_template,
    text_of,
)
from matching.descriptions.substitution import MAX_TEXT_LENGTH

__all__ = [
    "Budget", "Call", "Flattener", "MacroError", "Scopes", "Slot", "Template", "merged", "names_in",
    "parse_template", "text_of",
]  # fmt: skip

#: So many slots a template has after the description's own values are filled in.
_MAX_PARTS = 10_000
_DOLLAR = "dollar"
#: A macro costs as much as so many characters, also one that stands for nothing.
_STEPS_PER_SLOT = 16
#: A function more: it may evaluate an expression.
_STEPS_PER_CALL = 256
#: What macros may take that share nothing with others.
STEPS = 1024 * 1024
#: And all texts of a description together.
STEPS_OF_DESCRIPTION = 4 * STEPS


class Budget:
    """Limit on the characters that macro expansion may make or read; each macro costs some extra.

    Texts that are expanded with one budget share its limit.
    """

    __slots__ = ("_left", "_steps")

    def __init__(self, steps: int = STEPS) -> None:
        self._steps = self._left = steps

    def spend(self, steps: int) -> None:
        """Count steps. Raises MacroError when the budget is used up."""
        self._left -= steps
        if self._left < 0:
            raise MacroError(f"its values take more than {self._steps} steps to be found")

    def add(self, steps: int) -> None:
        """Raise the limit."""
        self._steps += steps
        self._left += steps


class Scopes:
    """Values of names in layers: an earlier layer hides the later ones."""

    def __init__(self, *layers: Mapping[str, str], budget: Budget | None = None) -> None:
        """`layers` by lower-case name. All expansions share the budget."""
        self._layers = layers
        self._made = 0
        self._budget = budget or Budget()

    def expand(self, template: Template) -> str:
        """Text with all macros expanded. Raises MacroError."""
        self._made = 0
        return self._expand(template, "", 0, 0)

    def value(self, layer: int, name: str) -> str:
        """Value of a name in a layer, with its macros expanded. Raises MacroError."""
        self._made = 0
        return self._expand(parse_template(self._layers[layer][name]), name, layer, 0)

    def _expand(self, template: Template, own_name: str, own_layer: int, depth: int) -> str:
        if depth > MAX_DEPTH:
            raise MacroError(_too_deep(own_name))
        texts = [
            part if isinstance(part, str) else self._part(part, place, own_name, own_layer, depth)
            for place, part in enumerate(template)
        ]
        text = "".join(texts)
        self._made += len(text)
        self._budget.spend(len(text))
        if self._made > MAX_TEXT_LENGTH:
            raise MacroError(f"macros expand to more than {MAX_TEXT_LENGTH} characters")
        return text

    def _part(
        self, part: Slot | Call, place: int, own_name: str, own_layer: int, depth: int
    ) -> str:
        self._budget.spend(_STEPS_PER_SLOT)
        if isinstance(part, Slot):
            return self._value(part, own_name, own_layer, depth)
        arguments = [self._expand(each, own_name, own_layer, depth + 1) for each in part.arguments]
        seat = part.seat or f"{own_name}#{place}"
        self._budget.spend(_STEPS_PER_CALL)
        try:
            return call(part.function, arguments, lambda: [*map(self._plain, SEEDS), seat])
        except FunctionError as error:
            raise MacroError(str(error)) from error

    def _plain(self, name: str) -> str:
        """Value of a name, if that contains no macros."""
        return next((layer[name] for layer in self._layers if name in layer), "")

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
                self._budget.spend(len(value))
                return self._expand(parse_template(value), name, layer, depth + 1)
            if value is not None:
                if slot.takes_empty:
                    return ""
                break
        return self._expand(slot.default, own_name, own_layer, depth + 1)


def merged(earlier: str | None, name: str, text: str) -> str:
    """Value of a name that is assigned again: where it uses itself, the earlier value stands.

    Raises MacroError where it grows without bounds.
    """
    if earlier is None or "$" not in text:
        return text
    template = parse_template(text)
    own = _count_of(template, name)
    if not own:
        return text
    if len(text) + own * len(earlier) > MAX_TEXT_LENGTH:
        raise MacroError(f"macros expand to more than {MAX_TEXT_LENGTH} characters")
    return text_of(_with_earlier(template, name, earlier))


def _count_of(template: Template, name: str) -> int:
    """Number of times a name stands in a template, or in the arguments of its functions."""
    calls = [part for part in template if isinstance(part, Call)]
    inner = sum(_count_of(each, name) for part in calls for each in part.arguments)
    return inner + sum(isinstance(part, Slot) and part.name == name for part in template)


def _with_earlier(template: Template, name: str, earlier: str) -> Template:
    """Template with the name replaced by its earlier value."""
    parts: list[str | Slot | Call] = []
    for part in template:
        if isinstance(part, Call):
            arguments = tuple(_with_earlier(each, name, earlier) for each in part.arguments)
            parts.append(part._replace(arguments=arguments))
        elif isinstance(part, Slot) and part.name == name:
            parts += [earlier] if earlier or part.takes_empty else part.default
        else:
            parts.append(part)
    return tuple(parts)


class Flattener:
    """Expands the values that a description itself defines; other names stay slots."""

    def __init__(self, known: Mapping[str, str], budget: Budget | None = None) -> None:
        """`known` by lower-case name. All expansions share the budget."""
        self._known = known
        self._budget = budget or Budget(STEPS_OF_DESCRIPTION)
        self._done: dict[str, tuple[Template, int]] = {}

    def flatten(self, text: str, seat: str = "") -> Template:
        """Template of a text with the description's own values expanded. Raises MacroError.

        `seat` is where the text stands, for what its functions draw at random.
        """
        return self._flatten(parse_template(text), "", (seat,), 0)[0]

    def value(self, name: str) -> Template:
        """Template of a name that the description defines. Raises MacroError."""
        return self._value(name, (), 0)[0]

    def _value(self, name: str, path: tuple[str, ...], depth: int) -> tuple[Template, int]:
        if name in self._done:
            return self._done[name]
        if name in path:
            raise MacroError(_too_deep(name))
        template = parse_template(self._known[name])
        self._done[name] = self._flatten(template, name, (*path, name), depth)
        return self._done[name]

    def _flatten(
        self, template: Template, own_name: str, path: tuple[str, ...], depth: int
    ) -> tuple[Template, int]:
        """Template, and how deep its names are nested; `depth` is where it stands itself."""
        if depth > MAX_DEPTH:
            raise MacroError(_too_deep(own_name))
        parts: list[str | Slot | Call] = []
        nested = length = 0
        for place, part in enumerate(template):
            more, deeper = self._part(part, place, own_name, path, depth)
            parts += more
            nested = max(nested, deeper)
            more_length = sum(len(each) if isinstance(each, str) else 1 for each in more)
            length += more_length
            self._budget.spend(more_length + _STEPS_PER_SLOT * len(more))
            if nested > MAX_DEPTH:
                raise MacroError(_too_deep(own_name))
            if length > MAX_TEXT_LENGTH or len(parts) > _MAX_PARTS:
                raise MacroError(f"macros expand to more than {MAX_TEXT_LENGTH} characters")
        return _joined(parts), nested

    def _part(
        self, part: str | Slot | Call, place: int, own_name: str, path: tuple[str, ...], depth: int
    ) -> tuple[Template, int]:
        if isinstance(part, str):
            return (part,), 0
        if isinstance(part, Slot):
            return self._slot(part, own_name, path, depth)
        flat = [self._flatten(each, own_name, path, depth + 1) for each in part.arguments]
        seat = part.seat or f"{path[-1] if path else ''}#{place}"
        nested = max((deeper for _, deeper in flat), default=0)
        return (Call(part.function, tuple(each for each, _ in flat), seat),), nested + 1

    def _slot(
        self, slot: Slot, own_name: str, path: tuple[str, ...], depth: int
    ) -> tuple[Template, int]:
        if slot.name == _DOLLAR:
            return ("$",), 0
        if isinstance(slot.name, str) and slot.name != own_name and self._known.get(slot.name):
            value, deeper = self._value(slot.name, path, depth + 1)
            return value, deeper + 1
        default, deeper = self._flatten(slot.default, own_name, path, depth + 1)
        if not isinstance(slot.name, str):
            name, deeper_name = self._flatten(slot.name, own_name, path, depth + 1)
            return (Slot(name, default),), max(deeper, deeper_name) + 1
        # Its own name in a value means what the name was before the description.
        if slot.name == own_name or slot.name not in self._known:
            return (Slot(slot.name, default, slot.takes_empty),), deeper + 1
        return () if slot.takes_empty else default, deeper + 1


def _too_deep(name: str) -> str:
    return f"a macro uses itself, or more than {MAX_DEPTH} are nested: $({name})"


def _joined(parts: Sequence[str | Slot | Call]) -> Template:
    joined: list[str | Slot | Call] = []
    plain: list[str] = []
    for part in parts:
        if isinstance(part, str):
            plain.append(part)
            continue
        if plain:
            joined.append("".join(plain))
            plain.clear()
        joined.append(part)
    if plain:
        joined.append("".join(plain))
    return tuple(joined)
