"""Django app of notices: subscriptions, notices, channels (e-mail, webhook) and deliveries.

On start it registers the fan-out as the reader of the events that users are notified of, and
secrets of webhooks, which depend on the secret key.
"""

from __future__ import annotations

from django.apps import AppConfig


class NoticesConfig(AppConfig):
    """Subscriptions, notices, channels and deliveries."""

    name = "wms.notices"
    label = "notices"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the fan-out as reader of events, and secrets of webhooks."""
        from wms.core.inbox import register_reader
        from wms.core.key_rotation import register_kept
        from wms.notices.occurrences import READ_TASK, TOPICS
        from wms.notices.signing import WEBHOOK_SECRETS

        register_kept(WEBHOOK_SECRETS)
        for topic in TOPICS:
            register_reader(topic, READ_TASK)
