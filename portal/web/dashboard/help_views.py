"""Help pages: filters, expressions and keyboard shortcuts; glossary of states and their events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from portal.shared.state_badges import MEANINGS
from portal.shared.state_words import ENTITIES, Entity
from portal.web.shared.pages import page, render_page

#: Kinds of objects whose states do not come from a table of transitions.
_DERIVED = {
    "downtime": "Downtime",
    "attempt": "Attempt of a job",
    "script": "Script of a node",
    "check": "Check of a worker node",
    "outcome": "Object of a bulk operation",
    "loop": "Control loop",
}
#: How a site stands is more than what people decided about it.
_STANDINGS = ("enabled", "disabled", "no queue", "downtime", "expired", "throttled")


@dataclass(frozen=True, slots=True)
class StateChange:
    """An event of a state machine, as a line of the glossary."""

    event: str
    sources: Sequence[str]
    target: str
    needs_reason: bool
    meaning: str


@dataclass(frozen=True, slots=True)
class Section:
    """States of one kind of object, and the events by which they change."""

    kind: str
    title: str
    states: Sequence[tuple[str, str]]
    first: str = ""
    ends: frozenset[str] = frozenset()
    changes: Sequence[StateChange] = ()


@require_safe
@page
def help_page(request: HttpRequest) -> HttpResponse:
    """Help on filters, expressions and keys."""
    return render_page(request, "help", {})


@require_safe
@page
def states(request: HttpRequest) -> HttpResponse:
    """Glossary of states: meaning, and events that change them."""
    sections = [_section(entity) for entity in ENTITIES]
    sections += [
        Section(kind, title, list(MEANINGS[kind].items())) for kind, title in _DERIVED.items()
    ]
    return render_page(request, "help_states", {"sections": sections})


def _section(entity: Entity) -> Section:
    meanings = MEANINGS[entity.kind]
    names = list(entity.states.values)
    if entity.kind == "site":
        names += _STANDINGS
    return Section(
        kind=entity.kind,
        title=entity.title,
        states=[(name, meanings[name]) for name in names],
        first=entity.first,
        ends=frozenset(entity.terminal),
        changes=[
            StateChange(
                event=name,
                sources=sorted(step.sources),
                target=step.target,
                needs_reason=step.needs_reason,
                meaning=entity.event_meanings[name],
            )
            for name, step in entity.transitions.items()
        ],
    )
