"""Django app of accounting: groups with quotas, submitters, concurrency limits, core-seconds."""

from __future__ import annotations

from django.apps import AppConfig


class AccountingConfig(AppConfig):
    """Submitters' priorities, groups with quotas, concurrency limits, accounts of core-seconds."""

    name = "wms.accounting"
    label = "accounting"
    default_auto_field = "django.db.models.BigAutoField"
