"""User interfaces of Pilotage: web pages, REST API, pilot API, command line, settings."""

from __future__ import annotations

from importlib.util import find_spec

# On hosts without an installation, commands run that need nothing of it.
if find_spec("celery") is not None:
    from portal.celery import app as celery_app

    __all__ = ["celery_app"]
