"""User interfaces of Pilotage: web pages, REST API, pilot API, command line, settings."""

from __future__ import annotations

import gc
from importlib.util import find_spec

# What a program loads stays: a seventh of the time of a start would look for garbage among it.
gc.set_threshold(50_000, 20, 20)

# On hosts without an installation, commands run that need nothing of it.
if find_spec("celery") is not None:
    from portal.config.lean_imports import import_without_options

    import_without_options()
    from portal.celery import app as celery_app

    __all__ = ["celery_app"]
