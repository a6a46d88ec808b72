"""Django app of sites: queues, ads, advertisements, downtimes, throttling."""

from __future__ import annotations

from django.apps import AppConfig


class SitesConfig(AppConfig):
    """Sites, their queues and their ads."""

    name = "wms.sites"
    label = "sites"
    default_auto_field = "django.db.models.BigAutoField"
