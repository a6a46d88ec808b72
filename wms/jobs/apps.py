from __future__ import annotations

from django.apps import AppConfig


class JobsConfig(AppConfig):
    """Jobs, their attempts, workspaces and files."""

    name = "wms.jobs"
    label = "jobs"
    default_auto_field = "django.db.models.BigAutoField"
