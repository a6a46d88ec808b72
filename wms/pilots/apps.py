"""Django app of pilots: director, submitter, monitor, node checks, protocol with the agent.

On start it registers the checks of a queue's node checks, an entry's limits and a group's frontend,
the director's task as the one that new waiting jobs wake, which pilots a user may see, and what is
kept under keys.
"""

from __future__ import annotations

from django.apps import AppConfig


class PilotsConfig(AppConfig):
    """Pilots, the director that sends them, and the monitor that watches them."""

    name = "wms.pilots"
    label = "pilots"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register checks of queues, entries and groups that only pilots know, what wakes the
        director, which pilots a user may see, and what is kept under keys.
        """
        from wms.accounting.services import register_group_check
        from wms.accounting.walls import seen_or_all
        from wms.core.audit import register_sight
        from wms.core.inbox import register_reader
        from wms.core.key_rotation import Kept, KeyKind, register_kept
        from wms.core.models import AuditKind
        from wms.factories.orders import renew_sealed
        from wms.jobs.clusters.lifecycle import NEW_JOBS_TOPIC
        from wms.pilots.credential_models import Credential
        from wms.pilots.credentials.rotation import register_sealed
        from wms.pilots.factories.services import check_group_frontend
        from wms.pilots.factory_models import RemoteOrder
        from wms.pilots.pressure.director import DIRECT_TASK
        from wms.pilots.pressure.pilot_limits import entry_contradictions
        from wms.pilots.program.check_settings import check_queue_checks
        from wms.pilots.selectors import visible_pilots
        from wms.sites.frontends.entries import register_entry_check
        from wms.sites.queue_validation import register_queue_check

        brought = RemoteOrder.objects.exclude(sealed="").only("sealed")
        register_sealed("credentials of frontends", Credential)
        register_kept(
            Kept(
                "orders of frontends",
                KeyKind.SECRET,
                brought.all,
                ("sealed",),
                renew_sealed,
                can_be_lost=False,
            )
        )
        register_queue_check(check_queue_checks)
        register_entry_check(entry_contradictions)
        register_group_check(check_group_frontend)
        register_reader(NEW_JOBS_TOPIC, DIRECT_TASK)
        register_sight(AuditKind.PILOT, lambda user: seen_or_all(user, visible_pilots))
