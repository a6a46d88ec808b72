"""Django app of the web pages for people."""

from __future__ import annotations

from django.apps import AppConfig


class WebConfig(AppConfig):
    """Pages for people."""

    name = "portal.web"
    label = "web"
