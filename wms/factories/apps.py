"""Django app of factories: other installations that submit pilots for this one."""

from __future__ import annotations

from django.apps import AppConfig


class FactoriesConfig(AppConfig):
    """Remote factories, what they advertise, and the pilots that are ordered of them."""

    name = "wms.factories"
    label = "factories"
    default_auto_field = "django.db.models.BigAutoField"
