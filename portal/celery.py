"""The Celery application: its schedule is made of the registered control loops."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

from celery import Celery
from celery.signals import beat_init

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

app = Celery("pilotage")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@beat_init.connect
def _schedule_loops(sender: Any, **_: Any) -> None:
    """Fill the schedule: a task that no worker took within its period is dropped, not piled up."""
    from wms.core.loops import LOOPS

    app.loader.import_default_modules()
    for loop in LOOPS.values():
        sender.scheduler.add(
            name=loop.name,
            task=loop.task,
            schedule=loop.period_s,
            # Long ago, so that every loop has its first turn at once and is not taken for late.
            last_run_at=app.now() - timedelta(days=1),
            options={"expires": max(loop.period_s, 2.0)},
        )
