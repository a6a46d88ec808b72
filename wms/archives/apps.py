"""Django app of archives: files of DAGs that have ended, written, checked, kept and read."""

from __future__ import annotations

from django.apps import AppConfig


class ArchivesConfig(AppConfig):
    """Archives of DAGs: their format, and those that are kept here."""

    name = "wms.archives"
    label = "archives"
    default_auto_field = "django.db.models.BigAutoField"
