from __future__ import annotations

from django.apps import AppConfig


class NoticesConfig(AppConfig):
    """Subscriptions, notices, and what leaves the portal."""

    name = "wms.notices"
    label = "notices"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Have the reader woken by the events that it tells people of."""
        from wms.core.inbox import register_reader
        from wms.notices.reading import READ_TASK, TOPICS

        for topic in TOPICS:
            register_reader(topic, READ_TASK)
