"""The filter of jobs, of which there are so many that each question needs its index."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from django.db.models import Q, QuerySet, Subquery

from portal.failure_field import OfFailure
from portal.filter_fields import (
    Chosen,
    Moments,
    Numbers,
    NumbersField,
    Owners,
    Texts,
    Words,
    hidden_numbers,
)
from portal.list_filter import ListFilter, within_ids
from wms.dags.lifecycle import JOB_TOPIC
from wms.jobs.models import Job
from wms.jobs.states import JobState

#: Names of jobs have no index: without a DAG or an id they are looked for in so many of the latest.
SEARCHED_JOBS = 200_000


class OfTopic(Numbers):
    """The DAG that something was made for: its key in the inbox of a topic."""

    field_class = NumbersField

    def __init__(self, topic: str, **options: Any) -> None:
        super().__init__(field_name="topic_key", smallest=1, label="DAG", **options)
        self.topic = topic

    def condition(self, values: Sequence[Any]) -> Q:
        """True for what was made for any of the DAGs."""
        return Q(topic=self.topic) & super().condition(values)


class _Reasons(Texts):
    """Why jobs are in their state. Few have a reason, and those are found by an index."""

    def condition(self, values: Sequence[str]) -> Q:
        """True for jobs with a reason that contains any of the parts."""
        return ~Q(state_reason="") & super().condition(values)


class JobFilter(ListFilter):
    """Jobs by state, owner, DAG, site, name, reason and time."""

    name = Texts(label="Name contains")
    state = Words(choices=JobState.choices, label="State")
    owner = Owners(field_name="owner_id", label="Owner")
    site = Words(field_name="site_name", label="Site")
    dag = OfTopic(JOB_TOPIC)
    reason = _Reasons(field_name="state_reason", label="Reason contains")
    created = Moments(field_name="created_at", label="Made")
    since = Moments(field_name="state_since", label="In its state since")
    attempts = Numbers(field_name="attempt_number", label="Attempts")
    id = Numbers(smallest=1, label="Number")
    cluster = hidden_numbers("cluster_id", "Of the list of job")
    failure = OfFailure("job")

    class Meta:
        model = Job
        fields: Sequence[str] = ()

    def _passing(self, queryset: QuerySet[Job], *, leaving: Collection[str]) -> QuerySet[Job]:
        found = super()._passing(queryset, leaving=leaving)
        if not self._is_cut:
            return found
        latest = Job.objects.order_by("-pk").values("pk")[:1]
        return found.filter(pk__gt=Subquery(latest) - SEARCHED_JOBS)

    @property
    def _is_cut(self) -> bool:
        asked = self.form.cleaned_data
        return bool(asked["name"]) and not any(asked[name] for name in ("dag", "id", "cluster"))

    def hinted(self, queryset: QuerySet[Job]) -> QuerySet[Job]:
        """Those made in a stretch of time are looked for in a range of ids."""
        made: Chosen | None = self.form.cleaned_data["created"] if self.is_bound else None
        if not made:
            return queryset
        return within_ids(queryset, Job.objects.all(), made.included[0], self.now)

    def notes(self) -> list[str]:
        """How far names are looked for."""
        if not self._is_cut:
            return []
        return [
            f"Names are looked for in the latest {SEARCHED_JOBS:,} jobs. With a DAG or a range of "
            "numbers, in all of these."
        ]
