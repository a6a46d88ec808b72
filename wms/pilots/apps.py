from __future__ import annotations

from django.apps import AppConfig


class PilotsConfig(AppConfig):
    """Pilots, the director that sends them, and the monitor that watches them."""

    name = "wms.pilots"
    label = "pilots"
    default_auto_field = "django.db.models.BigAutoField"
