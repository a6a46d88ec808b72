"""Django app of schedules: recurring submissions of a DAG."""

from __future__ import annotations

from django.apps import AppConfig


class SchedulesConfig(AppConfig):
    """Schedules, by which a DAG is submitted again and again."""

    name = "wms.schedules"
    label = "schedules"
    default_auto_field = "django.db.models.BigAutoField"
