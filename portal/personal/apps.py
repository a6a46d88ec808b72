"""Django app of saved filters and preferences."""

from __future__ import annotations

from django.apps import AppConfig


class PersonalConfig(AppConfig):
    """Saved filters and preferences."""

    name = "portal.personal"
    label = "personal"
