from __future__ import annotations

from django.apps import AppConfig


class TaskQueuesConfig(AppConfig):
    """TaskQueues, the ids of waiting jobs, and the claim."""

    name = "wms.taskqueues"
    label = "taskqueues"
    default_auto_field = "django.db.models.BigAutoField"
