from __future__ import annotations

from django.apps import AppConfig


class AccountingConfig(AppConfig):
    """Whose turn it is: submitters' priorities, groups with quotas, concurrency limits."""

    name = "wms.accounting"
    label = "accounting"
    default_auto_field = "django.db.models.BigAutoField"
