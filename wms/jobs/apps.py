"""Django app of jobs: clusters, attempts, workspaces, stored files, output, running limits.

On start it registers the task that events of clusters' jobs wake (the materialiser), the
counter of what clusters use of quotas, the reader of their groups and labels for the accounts,
which jobs and clusters a user may see, and that tokens of attempts depend on the secret key.
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
        from wms.accounting.walls import seen_or_all
        from wms.core.audit import register_sight
        from wms.core.inbox import register_reader
        from wms.core.key_rotation import Lasting, register_lasting
        from wms.core.models import AuditKind
        from wms.jobs.account_names import names_in, register_names
        from wms.jobs.clusters.lifecycle import MATERIALISE_TASK
        from wms.jobs.clusters.quota_usage import usage_by_clusters
        from wms.jobs.clusters.selectors import visible_clusters
        from wms.jobs.clusters.states import TOPIC
        from wms.jobs.models import Attempt, Cluster
        from wms.jobs.quotas import register_counter
        from wms.jobs.selectors import visible_jobs

        register_reader(TOPIC, MATERIALISE_TASK)
        register_counter(usage_by_clusters)
        register_names(TOPIC, lambda keys: names_in(Cluster.objects.all(), keys))
        open_attempts = Attempt.objects.filter(outcome="")
        register_lasting(
            Lasting(
                "tokens of running attempts",
                count=lambda before: open_attempts.filter(matched_at__lte=before).count(),
            )
        )
        register_sight(AuditKind.JOB, lambda user: seen_or_all(user, visible_jobs))
        register_sight(AuditKind.CLUSTER, lambda user: seen_or_all(user, visible_clusters))
