"""Endpoint of the audit trail: list of audited actions with filters.

Operators read all of it, others what concerns them or objects that everybody may see.
"""

from __future__ import annotations

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema

from portal.api.audit.shapes import AuditEntrySerializer
from portal.api.base import ListView, caller, refusals
from portal.lists.audit_filters import AuditFilter
from wms.core.audit import visible_entries
from wms.core.models import AuditEntry


@extend_schema(
    summary="Read the audit trail", responses={200: AuditEntrySerializer, **refusals(400)}
)
class AuditList(ListView):
    """Audited actions with their changes, latest first.

    Operators read all of it. Others read what they did, what was done to their own account, and
    what was done to objects that everybody may see.
    """

    queryset = AuditEntry.objects.none()
    serializer_class = AuditEntrySerializer
    filterset_class = AuditFilter

    def get_queryset(self) -> QuerySet[AuditEntry]:
        """Return the entries that the caller may read."""
        return visible_entries(caller(self.request))
