"""The web pages as a Django app."""

from __future__ import annotations

from django.apps import AppConfig


class WebConfig(AppConfig):
    """Pages for people."""

    name = "portal.web"
    label = "web"
