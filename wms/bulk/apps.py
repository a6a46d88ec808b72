"""Django app of bulk operations: one action on a frozen selection of many objects, in batches."""

from __future__ import annotations

from django.apps import AppConfig


class BulkConfig(AppConfig):
    """App of bulk operations: actions on frozen selections of objects, run in batches."""

    name = "wms.bulk"
    label = "bulk"
    default_auto_field = "django.db.models.BigAutoField"
