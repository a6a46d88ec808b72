"""Django app of the traces, installed where the settings name a collector."""

from __future__ import annotations

from importlib import import_module

from django.apps import AppConfig


class TracingConfig(AppConfig):
    """Traces of requests, tasks and statements."""

    name = "portal.tracing"

    def ready(self) -> None:
        """Connect to the signals of tasks and of connections; requests have a middleware."""
        import_module("portal.tracing.tasks")
        import_module("portal.tracing.statements")
