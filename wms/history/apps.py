"""Django app of the history: round-robin archives of series, and the sampler that fills them."""

from __future__ import annotations

from django.apps import AppConfig


class HistoryConfig(AppConfig):
    """Round-robin archives and their sampling."""

    name = "wms.history"
    label = "history"
    default_auto_field = "django.db.models.BigAutoField"
