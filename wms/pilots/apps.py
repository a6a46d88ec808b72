"""Django app of pilots: director, submitter, monitor, node checks, protocol with the agent.

On start it registers the checks of a queue's node checks, an entry's limits and a group's frontend,
the director's task as the one that new waiting jobs wake, and which pilots a user may see.
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
        director, and which pilots a user may see.
        """
        from wms.accounting.services import register_group_check
        from wms.accounting.walls import seen_or_all
        from wms.core.audit import register_sight
        from wms.core.inbox import register_reader
        from wms.core.models import AuditKind
        from wms.jobs.clusters.lifecycle import NEW_JOBS_TOPIC
        from wms.pilots.factories.services import check_group_frontend
        from wms.pilots.pressure.director import DIRECT_TASK
        from wms.pilots.pressure.pilot_limits import entry_contradictions
        from wms.pilots.program.check_settings import check_queue_checks
        from wms.pilots.selectors import visible_pilots
        from wms.sites.frontends.entries import register_entry_check
        from wms.sites.queue_validation import register_queue_check

        register_queue_check(check_queue_checks)
        register_entry_check(entry_contradictions)
        register_group_check(check_group_frontend)
        register_reader(NEW_JOBS_TOPIC, DIRECT_TASK)
        register_sight(AuditKind.PILOT, lambda user: seen_or_all(user, visible_pilots))
