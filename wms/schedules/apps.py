"""Django app of schedules: recurring submissions of a DAG."""

from __future__ import annotations

from django.apps import AppConfig


class SchedulesConfig(AppConfig):
    """Schedules, by which a DAG is submitted again and again."""

    name = "wms.schedules"
    label = "schedules"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register which schedules a user may see, and what schedules use of quotas."""
        from wms.accounting.walls import seen_or_all
        from wms.core.audit import register_sight
        from wms.core.models import AuditKind
        from wms.jobs.quotas import register_counter
        from wms.schedules.quota_usage import usage_by_schedules
        from wms.schedules.selectors import visible_schedules

        register_sight(AuditKind.SCHEDULE, lambda user: seen_or_all(user, visible_schedules))
        register_counter(usage_by_schedules)
