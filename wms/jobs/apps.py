"""Django app of jobs: clusters, attempts, workspaces, stored files, output, running limits.

On start it registers the task that events of clusters' jobs wake (the materialiser), and the
counter of what clusters use of quotas.
"""

from __future__ import annotations

from django.apps import AppConfig


class JobsConfig(AppConfig):
    """Jobs, their clusters, attempts, workspaces and files."""

    name = "wms.jobs"
    label = "jobs"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the events that wake the materialiser, and what clusters use of quotas."""
        from wms.core.inbox import register_reader
        from wms.jobs.clusters.lifecycle import MATERIALISE_TASK
        from wms.jobs.clusters.quota_usage import usage_by_clusters
        from wms.jobs.clusters.states import TOPIC
        from wms.jobs.quotas import register_counter

        register_reader(TOPIC, MATERIALISE_TASK)
        register_counter(usage_by_clusters)
