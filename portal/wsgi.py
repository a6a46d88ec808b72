"""WSGI entry point of the portal, served by gunicorn."""

from __future__ import annotations

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

application = get_wsgi_application()

# What follows reads the settings, which are loaded now.
from portal.middleware.overload import bounded  # noqa: E402

application = bounded(application)
