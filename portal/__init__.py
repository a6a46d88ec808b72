"""User interfaces of Pilotage: web pages, REST API, pilot API, command line, settings."""

from __future__ import annotations

from portal.celery import app as celery_app

__all__ = ["celery_app"]
