"""Django app of remarks: what shifters write about DAGs, sites and failures, and the shift log."""

from __future__ import annotations

from django.apps import AppConfig


class RemarksConfig(AppConfig):
    """Remarks, acknowledgements and assignments, which together are the shift log."""

    name = "wms.remarks"
    label = "remarks"
    default_auto_field = "django.db.models.BigAutoField"
