"""Celery application of the portal; ends stale database connections before and after each task.

Each task begins with a look at the files of the secret key.

Its import also puts the portal's own Redis transport in the place of Celery's.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from celery import Celery
from celery.signals import task_postrun, task_prerun, worker_init
from django.db import close_old_connections

import portal.config.broker  # noqa: F401 - puts its transport in the place of Celery's
from portal.config.live_keys import follow_files
from wms.elements.logins import sweep

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
# Checks of Django go through all pages and the API, which no task needs: to import them costs each
# program of Celery as much as all else at its start. `prepare_data`, which all wait for, checks.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

app = Celery("pilotage")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@task_prerun.connect
def _follow_keys(**_: Any) -> None:
    follow_files()


# By itself Celery opens a connection for each task, which costs more than most tasks do. Django's
# own rule, of age and health, is the one of web requests.
@task_prerun.connect
@task_postrun.connect
def _renew_connections(**_: Any) -> None:
    close_old_connections()


@worker_init.connect
def _measure_tasks(**_: Any) -> None:
    """Counters of tasks; not at the import of this module, which is before the settings."""
    import_module("portal.metrics.measured_tasks")


@worker_init.connect
def _remove_left_logins(**_: Any) -> None:
    """Leftovers of killed workers are removed before the next one works."""
    sweep()
