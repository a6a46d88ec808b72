"""Django app of failure groups (failures with one cause) and the rules that normalise messages."""

from __future__ import annotations

from django.apps import AppConfig


class FailuresConfig(AppConfig):
    """Groups of failures with one cause, and the rules that normalise their messages."""

    name = "wms.failures"
    label = "failures"
    default_auto_field = "django.db.models.BigAutoField"
