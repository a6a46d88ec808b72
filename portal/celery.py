"""The Celery application."""

from __future__ import annotations

import os

from celery import Celery

import portal.broker  # noqa: F401 - puts its transport in the place of Celery's

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

app = Celery("pilotage")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
