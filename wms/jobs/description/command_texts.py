"""Texts of commands and attributes while a submit description is compiled, and what they refer to.

Also the error that names the command at fault.
"""

from __future__ import annotations

from dataclasses import dataclass

from matching.descriptions.macro_functions import UNKNOWN
from matching.descriptions.macros import Budget, names_in, parse_template
from matching.descriptions.substitution import uses_macros
from wms.jobs.description.needs import is_need
from wms.jobs.description.renderer_inputs import CannotRender, CommandSet
from wms.jobs.description.templates import Fill, Values


@dataclass(frozen=True, slots=True)
class CommandText:
    """Text of a command or attribute: fixed, or a template that is filled with the values of a
    node.

    None is a text that is not known yet.
    """

    name: str
    fixed: str | None
    fill: Fill | None
    names: frozenset[str]
    #: The values of a node stand in it as they are.
    is_verbatim: bool = False

    def get(self, values: Values, budget: Budget) -> str | None:
        """Text for a node with these values."""
        return self.fixed if self.fill is None else self.fill(values, budget)


def error_of(name: str, error: Exception) -> CannotRender:
    """CannotRender with the name of the command or attribute."""
    return CannotRender(f"{name}: {error}", name)


def has_references(name: str) -> bool:
    """Whether references to the site are expanded in a command or attribute."""
    return not name.startswith("+") or is_need(name[1:])


def is_unknown(text: str) -> bool:
    return UNKNOWN in text or ("$" in text and uses_macros(text))


def macros_of(source: CommandSet) -> set[str]:
    """Commands that are used as macros in others: they are no attributes of the job."""
    used: set[str] = set()
    for text in (*source.commands.values(), *source.attributes.values()):
        if "$" in text:
            used |= names_in(parse_template(text))
    return used
