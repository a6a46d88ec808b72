"""Django app of notices: subscriptions, notices, channels (e-mail, webhook) and deliveries.

On start it registers the fan-out as the reader of the events that users are notified of.
"""

from __future__ import annotations

from django.apps import AppConfig


class NoticesConfig(AppConfig):
    """Subscriptions, notices, channels and deliveries."""

    name = "wms.notices"
    label = "notices"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the fan-out as reader of the events that users are notified of."""
        from wms.core.inbox import register_reader
        from wms.notices.occurrences import READ_TASK, TOPICS

        for topic in TOPICS:
            register_reader(topic, READ_TASK)
