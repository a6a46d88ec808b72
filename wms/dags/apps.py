from __future__ import annotations

from django.apps import AppConfig


class DagsConfig(AppConfig):
    """DAGs: language, engine and negotiation with sites."""

    name = "wms.dags"
    label = "dags"
    verbose_name = "DAGs"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the events that wake the engine."""
        from wms.core.inbox import register_reader
        from wms.dags.lifecycle import ADVANCE_TASK, TOPICS

        for topic in TOPICS:
            register_reader(topic, ADVANCE_TASK)
