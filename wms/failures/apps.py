from __future__ import annotations

from django.apps import AppConfig


class FailuresConfig(AppConfig):
    """Groups of failures that have one cause, and the rules that tell causes apart."""

    name = "wms.failures"
    label = "failures"
    default_auto_field = "django.db.models.BigAutoField"
