"""Django app of data placement: transfer requests, attempts, modules that carry them out."""

from __future__ import annotations

from django.apps import AppConfig


class PlacementConfig(AppConfig):
    """Placement of data: requests, their attempts, and the modules that carry them out."""

    name = "wms.placement"
    label = "placement"
    verbose_name = "Data placement"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register which requests a user may see, what is sealed, where URLs of jobs lead, and
        where their input data are.

        A setting of the feeder that has the wrong form stops the start.
        """
        from wms.accounting.walls import seen_or_all
        from wms.core.audit import register_sight
        from wms.core.models import AuditKind
        from wms.jobs.input_data.wanted import register_locator
        from wms.pilots.credentials.rotation import register_sealed
        from wms.pilots.protocol.url_transfers import register_resolver
        from wms.placement.catalogue.locating import locate_inputs
        from wms.placement.conf import feeder_conf
        from wms.placement.credential_models import PlacementCredential
        from wms.placement.pilot_transfers import resolve_transfers
        from wms.placement.selectors import visible_requests

        # Its files are looked at by each run: without them all else goes on.
        feeder_conf()
        register_sealed("credentials for transfers", PlacementCredential)
        register_resolver(resolve_transfers)
        register_locator(locate_inputs)
        register_sight(AuditKind.PLACEMENT, lambda user: seen_or_all(user, visible_requests))
