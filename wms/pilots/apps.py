"""Django app of pilots: director, submitter, monitor, node checks, protocol with the agent.

On start it registers the validation of a queue's node checks and of a group's frontend, and the
director's task as the one that new waiting jobs wake.
"""

from __future__ import annotations

from django.apps import AppConfig


class PilotsConfig(AppConfig):
    """Pilots, the director that sends them, and the monitor that watches them."""

    name = "wms.pilots"
    label = "pilots"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register checks of queues and groups that only pilots know, and what wakes the
        director.
        """
        from wms.accounting.services import register_group_check
        from wms.core.inbox import register_reader
        from wms.jobs.clusters.lifecycle import NEW_JOBS_TOPIC
        from wms.pilots.factories.services import check_group_frontend
        from wms.pilots.pressure.director import DIRECT_TASK
        from wms.pilots.program.check_settings import check_queue_checks
        from wms.sites.queue_validation import register_queue_check

        register_queue_check(check_queue_checks)
        register_group_check(check_group_frontend)
        register_reader(NEW_JOBS_TOPIC, DIRECT_TASK)
