from __future__ import annotations

from django.apps import AppConfig


class DagsConfig(AppConfig):
    """DAGs: language, engine and negotiation with sites."""

    name = "wms.dags"
    label = "dags"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Have the engine woken by the events that it reads."""
        from wms.core.inbox import register_reader
        from wms.dags.lifecycle import ADVANCE_TASK, CONTROL_TOPIC, JOB_TOPIC

        register_reader(JOB_TOPIC, ADVANCE_TASK)
        register_reader(CONTROL_TOPIC, ADVANCE_TASK)
