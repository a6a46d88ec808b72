"""What people keep of the portal for themselves, as a Django app."""

from __future__ import annotations

from django.apps import AppConfig


class PersonalConfig(AppConfig):
    """Saved filters and preferences."""

    name = "portal.personal"
    label = "personal"
