"""Django app of failure groups (failures with one cause) and the rules that normalise messages."""

from __future__ import annotations

from django.apps import AppConfig


class FailuresConfig(AppConfig):
    """Groups of failures with one cause, and the rules that normalise their messages."""

    name = "wms.failures"
    label = "failures"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register which groups a user may see."""
        from wms.accounting.walls import seen_or_all
        from wms.core.audit import register_sight
        from wms.core.models import AuditKind
        from wms.failures.selectors import visible_groups

        register_sight(AuditKind.FAILURE, lambda user: seen_or_all(user, visible_groups))
