"""Pages of the audit trail: list of entries, and one entry with its facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from portal.web.lists.listing import show_list
from portal.web.shared.pages import page, render_page
from wms.core.audit import find_entry


@dataclass(frozen=True, slots=True)
class AuditFact:
    """One fact of an entry: a value, or the values before and after."""

    name: str
    is_change: bool
    before: Any
    after: Any


@require_safe
@page
def audit_list(request: HttpRequest) -> HttpResponse:
    """Audit entries that the user may read, latest first."""
    return show_list(request, "audit")


@require_safe
@page
def audit_entry(request: HttpRequest, entry_id: int) -> HttpResponse:
    """One audit entry with its facts, before and after."""
    entry = find_entry(request.user, entry_id)
    facts = facts_of(entry.facts)
    context = {
        "entry": entry,
        "changes": [fact for fact in facts if fact.is_change],
        "plain_facts": [fact for fact in facts if not fact.is_change],
    }
    return render_page(request, "audit_entry", context)


def facts_of(facts: Mapping[str, Any]) -> Sequence[AuditFact]:
    """Facts of an entry. A pair of values is a change."""
    return [
        AuditFact(name, True, *value)
        if isinstance(value, list) and len(value) == 2 and name != "nodes"
        else AuditFact(name, False, None, value)
        for name, value in facts.items()
    ]
