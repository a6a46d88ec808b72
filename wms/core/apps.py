"""Django app of what all other domain apps use: users, events, audit, state machine, loops."""

from __future__ import annotations

from django.apps import AppConfig


class CoreConfig(AppConfig):
    """Events, audit, actors, errors: what every other domain app stands on."""

    name = "wms.core"
    label = "core"
    verbose_name = "Accounts and audit"
    default_auto_field = "django.db.models.BigAutoField"
