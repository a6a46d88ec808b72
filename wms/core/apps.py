"""Django app of what all other domain apps use: users, events, audit, state machine, loops.

On start it registers sessions as kept under the secret key, and how long answers to repeated
requests depend on that.
"""

from __future__ import annotations

from django.apps import AppConfig


class CoreConfig(AppConfig):
    """Events, audit, actors, errors: what every other domain app stands on."""

    name = "wms.core"
    label = "core"
    verbose_name = "Accounts and audit"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register what depends on the secret key."""
        from wms.core.idempotency import KEY_LIFETIME
        from wms.core.key_rotation import Lasting, register_kept, register_lasting
        from wms.core.session_renewal import SESSIONS

        register_kept(SESSIONS)
        register_lasting(Lasting("cursors, selections and keys of requests", KEY_LIFETIME))
