"""Django app of DAGs: language, submission, engine, scripts, and negotiation with sites.

When it is set up, it registers the task that reads the engine's inboxes, the function that counts
what DAGs use of quotas, the reader of their groups and labels for the accounts, the one that tells
which DAGs a user may see, those that tell which sets of inputs open DAGs name and which nodes have
ended that were to take space, and the fence of scripts for programs that move files.
"""

from __future__ import annotations

from django.apps import AppConfig


class DagsConfig(AppConfig):
    """DAGs: language, engine and negotiation with sites."""

    name = "wms.dags"
    label = "dags"
    verbose_name = "DAGs"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the events that wake the engine, and what DAGs use of quotas.

        A wrong option of DAGs in the settings stops the start.
        """
        from django.core.exceptions import ImproperlyConfigured

        from wms.accounting.walls import seen_or_all
        from wms.core.audit import register_sight
        from wms.core.errors import InvalidInput
        from wms.core.inbox import register_reader
        from wms.core.models import AuditKind
        from wms.dags.engine.submitting.space_steps import ended_nodes
        from wms.dags.lifecycle import ADVANCE_TASK, JOB_TOPIC, TOPICS
        from wms.dags.models import Dag
        from wms.dags.reading.input_sets import sets_of_open_dags
        from wms.dags.reading.selectors import visible_dags
        from wms.dags.scripts.transfer_programs import fenced_workplace
        from wms.dags.submission.quota_usage import usage_by_dags
        from wms.dags.submission.runs import site_options
        from wms.dags.trials.quota_usage import usage_by_trials
        from wms.jobs.account_names import names_in, register_names
        from wms.jobs.input_data.sleeping import register_finder
        from wms.jobs.quotas import register_counter
        from wms.placement.modules.fenced import register_workplaces
        from wms.placement.space_plans.storing import register_ended

        for topic in TOPICS:
            register_reader(topic, ADVANCE_TASK)
        register_counter(usage_by_dags)
        register_counter(usage_by_trials)
        register_finder(sets_of_open_dags)
        register_workplaces(fenced_workplace)
        register_ended(ended_nodes)
        register_names(JOB_TOPIC, lambda keys: names_in(Dag.objects.all(), keys))
        register_sight(AuditKind.DAG, lambda user: seen_or_all(user, visible_dags))
        try:
            site_options()
        except InvalidInput as error:
            raise ImproperlyConfigured(str(error)) from None
