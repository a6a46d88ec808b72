"""Django app of data placement: transfer requests, attempts, modules that carry them out."""

from __future__ import annotations

from django.apps import AppConfig


class PlacementConfig(AppConfig):
    """Placement of data: transfer requests, their attempts and the modules that carry them out."""

    name = "wms.placement"
    label = "placement"
    verbose_name = "Data placement"
    default_auto_field = "django.db.models.BigAutoField"
