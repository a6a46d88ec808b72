"""Django app of TaskQueues: waiting jobs, their priorities, and the claim of one.

On start it registers the task that recomputes priorities when TaskQueues appear or go.
"""

from __future__ import annotations

from django.apps import AppConfig


class TaskQueuesConfig(AppConfig):
    """TaskQueues, the ids of waiting jobs, and the claim."""

    name = "wms.taskqueues"
    label = "taskqueues"
    verbose_name = "TaskQueues"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the recomputation of priorities as reader of changes of TaskQueues."""
        from wms.core.inbox import register_reader
        from wms.taskqueues.priorities import RECOMPUTE_TASK, TOPIC

        register_reader(TOPIC, RECOMPUTE_TASK)
