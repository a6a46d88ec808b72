"""Filling of macro templates with the values of nodes, by functions made once for a template."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, TypeGuard

from matching.descriptions.macros import Budget, Call, Scopes, Slot, Template

Values: TypeAlias = Mapping[str, str]
#: From the values of a node to a text; the budget is the node's.
Filler: TypeAlias = Callable[[Values, Budget], str]
#: The same; None is a text that is not known yet.
Fill: TypeAlias = Callable[[Values, Budget], str | None]
#: Larger ones may exceed limits with one node's values and not with another's.
_MOST_PARTS, _MOST_CHARACTERS = 100, 8 * 1024


def slot_of(name: str) -> Template:
    """Template that consists of the value of a name."""
    return (Slot(name, ()),)


def filler(template: Template) -> Filler:
    """Function that fills a template; fast where its names and defaults are plain."""
    slots: list[tuple[str, str]] = []
    texts: list[str] = []
    for part in template:
        if isinstance(part, str):
            texts.append(part.replace("%", "%%"))
            continue
        if not _is_plain(part):
            return lambda values, budget: Scopes(values, budget=budget).expand(template)
        slots.append((str(part.name), "".join(map(str, part.default))))
        texts.append("%s")
    pattern = "".join(texts)

    def fill(values: Values, budget: Budget) -> str:
        given = [values.get(name) or default for name, default in slots]
        # Before the text is made: a long value may be in it a thousand times.
        budget.spend(len(pattern) + sum(map(len, given)))
        return pattern % tuple(given)

    return fill


def _is_plain(part: Slot | Call) -> TypeGuard[Slot]:
    """Whether the part is a slot with a plain name and a plain default."""
    if isinstance(part, Call) or not isinstance(part.name, str) or part.takes_empty:
        return False
    return all(isinstance(each, str) for each in part.default)


def is_verbatim(template: Template) -> bool:
    """Whether a template of a usual size is a text without references to the site, in which values
    stand as they are.
    """
    texts = [part for part in template if isinstance(part, str)]
    return (
        len(template) <= _MOST_PARTS
        and sum(map(len, texts)) <= _MOST_CHARACTERS
        and not any("$" in text for text in texts)
        and all(isinstance(part, str) or _is_plain(part) for part in template)
    )
