"""Signals of Celery by which workers count and time tasks, and name them in the log."""

from __future__ import annotations

import time
from typing import Any

import structlog
from celery.signals import task_postrun, task_prerun

from portal.metrics import counts

#: Of the tasks that this process is at: one.
_started: dict[str, float] = {}


@task_prerun.connect
def _begin(task_id: str, task: Any, **_: Any) -> None:
    _started[task_id] = time.monotonic()
    structlog.contextvars.bind_contextvars(task=task.name, task_id=task_id)


@task_postrun.connect
def _end(task_id: str, task: Any, state: str | None = None, **_: Any) -> None:
    structlog.contextvars.unbind_contextvars("task", "task_id")
    started = _started.pop(task_id, None)
    with counts.unfailing():
        counts.TASKS.labels(task.name, "success" if state == "SUCCESS" else "failure").inc()
        if started is not None:
            counts.TASK_SECONDS.labels(task.name).observe(time.monotonic() - started)
