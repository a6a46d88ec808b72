"""Django app of factories: other installations that submit pilots for this one.

On start it registers orders, whose secrets are kept under the secret key.
"""

from __future__ import annotations

from django.apps import AppConfig


class FactoriesConfig(AppConfig):
    """Remote factories, what they advertise, and the pilots that are ordered of them."""

    name = "wms.factories"
    label = "factories"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register what is kept under the secret key."""
        from wms.core.key_rotation import Kept, KeyKind, register_kept
        from wms.factories.models import PilotOrder
        from wms.factories.orders import renew_sealed

        orders = PilotOrder.objects.exclude(sealed="").only("sealed")
        register_kept(
            Kept(
                "orders of pilots",
                KeyKind.SECRET,
                orders.all,
                ("sealed",),
                renew_sealed,
                can_be_lost=False,
            )
        )
