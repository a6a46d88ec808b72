"""Admin page of the audit trail, read-only."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from portal.admin.roles import RoleAdmin


class AuditAdmin(RoleAdmin):
    """Audit entries: actor, action, object and reason; latest first."""

    list_display = ("created_at", "actor", "action", "target", "reason")
    search_fields = ("actor", "action", "target")
    ordering = ("-created_at", "-pk")
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody writes it by hand."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody changes it."""
        return False
