"""Template tags of the audit trail: page of an entry's object, entries of an object, changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from django import template
from django.urls import NoReverseMatch, reverse

from portal.web.records.views import facts_of
from wms.core.models import AuditEntry, AuditKind

register = template.Library()


def _queue(key: str) -> str:
    site, _, queue = key.partition("/")
    return reverse("web:queue", args=[site, queue])


_PAGES: dict[str, Callable[[str], str]] = {
    AuditKind.DAG: lambda key: reverse("web:dag", args=[int(key)]),
    AuditKind.JOB: lambda key: reverse("web:job", args=[int(key)]),
    AuditKind.CLUSTER: lambda key: reverse("web:cluster", args=[int(key)]),
    AuditKind.PLACEMENT: lambda key: reverse("web:placement", args=[int(key)]),
    AuditKind.PILOT: lambda key: reverse("web:pilot", args=[int(key)]),
    AuditKind.SITE: lambda key: reverse("web:site", args=[key]),
    AuditKind.QUEUE: _queue,
    AuditKind.FAILURE: lambda key: reverse("web:error", args=[int(key)]),
    AuditKind.SCHEDULE: lambda key: reverse("web:schedule", args=[int(key)]),
    AuditKind.OPERATION: lambda key: reverse("web:bulk-operation", args=[int(key)]),
}


@register.filter
def object_page(entry: AuditEntry) -> str:
    """Page of an entry's object; empty if it has none."""
    find = _PAGES.get(entry.object_kind)
    try:
        return find(entry.object_key) if find else ""
    except (NoReverseMatch, ValueError):
        return ""


@register.simple_tag
def audit_of(kind: str, key: Any) -> str:
    """Address of the audit entries of an object."""
    return f"{reverse('web:audit')}?{urlencode({'object': f'{kind}:{key}'})}"


@register.filter
def changed_names(entry: AuditEntry) -> list[str]:
    """Names of the fields that an entry changed."""
    return [fact.name for fact in facts_of(entry.facts) if fact.is_change]
