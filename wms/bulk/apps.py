from __future__ import annotations

from django.apps import AppConfig


class BulkConfig(AppConfig):
    """Actions on many objects at once: frozen selections, carried out in batches."""

    name = "wms.bulk"
    label = "bulk"
    default_auto_field = "django.db.models.BigAutoField"
