"""Django app of campaigns: all DAGs and clusters with one label, their progress and forecast."""

from __future__ import annotations

from django.apps import AppConfig


class CampaignsConfig(AppConfig):
    """Campaigns: sums, forecasts and deadlines of what a label names."""

    name = "wms.campaigns"
    label = "campaigns"
    default_auto_field = "django.db.models.BigAutoField"
