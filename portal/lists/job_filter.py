"""Filter of the list of jobs, of which there are so many that every condition needs an index.

Parts of names have none: without a DAG, a cluster or a number, the latest jobs only are searched,
and a note says so. Also the filter by the DAG that something was made for.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Any

from django import forms
from django.db.models import F, Q, QuerySet, Subquery

from portal.lists.base_filter import ListFilter, is_wanted, within_ids
from portal.lists.failure_field import FailureOccurrenceFilter
from portal.lists.filter_fields import (
    Chosen,
    HiddenValues,
    Moments,
    Numbers,
    NumbersField,
    Owners,
    Texts,
    TextsField,
    Words,
    in_ranges,
)
from portal.lists.sorting import Border, Sorting, by_number, by_text, by_time, newest
from wms.dags.lifecycle import JOB_TOPIC
from wms.jobs.models import Attempt, Job
from wms.jobs.states import JobCause, JobState

#: An index has the beginnings of jobs' names, and not their parts: without a DAG or an id these are
#: looked for in so many of the latest.
SEARCHED_JOBS = 200_000
#: Names with a beginning that more than so many have are looked for in the same way.
BEGINNINGS = 10_000
#: With one of these there are few jobs, whatever their names.
_NARROW = ("dag", "id", "cluster")
#: Filters with which an index has the jobs in the order of their last changes.
_BY_CHANGE = frozenset({"state", "since"})


class TopicFilter(Numbers):
    """The DAG that something was made for: its key in the inbox of a topic."""

    field_class = NumbersField

    def __init__(self, topic: str, **options: Any) -> None:
        super().__init__(field_name="topic_key", smallest=1, label="DAG", **options)
        self.topic = topic

    def condition(self, values: Sequence[Any]) -> Q:
        """True for what was made for any of the DAGs."""
        return Q(topic=self.topic) & super().condition(values)


class _Clusters(Numbers):
    """Cluster of a job, for links. The index of clusters leaves out jobs that have its id."""

    def condition(self, values: Sequence[Any]) -> Q:
        """True for jobs whose cluster is in any of the ranges."""
        is_first = Q(cluster_id=F("pk"))
        return (in_ranges("cluster_id", values) & ~is_first) | (in_ranges("pk", values) & is_first)


class _Reasons(Texts):
    """Reason of a job's state. Few jobs have one, and those are found by an index."""

    def condition(self, values: Sequence[str]) -> Q:
        """True for jobs with a reason that contains any of the parts."""
        return ~Q(state_reason="") & super().condition(values)


class _Causes(Words):
    """Cause of a job's state. Such jobs have a reason, by which an index finds them."""

    def __init__(self, **options: Any) -> None:
        super().__init__(field_name="state_cause", **options)

    def condition(self, values: Sequence[str]) -> Q:
        """True for jobs with any of the causes."""
        return ~Q(state_reason="") & super().condition(values)


class _Ends(Numbers):
    """Exit code or signal of the latest attempt, of jobs that are not done.

    An index has the attempts with such an end.
    """

    field_class = NumbersField

    def __init__(self, column: str, **options: Any) -> None:
        super().__init__(field_name=column, smallest=1, **options)

    def condition(self, values: Sequence[Any]) -> Q:
        """True for jobs that are not done whose latest attempt ended so."""
        ended = Attempt.objects.filter(
            in_ranges(self.field_name, values),
            number=F("job__attempt_number"),
            **{f"{self.field_name}__gt": 0},
        )
        return ~Q(state=JobState.DONE) & Q(pk__in=ended.values("job_id"))


class _BeginningsField(TextsField):
    """Beginnings of a text, as it is written."""

    can_flip = False

    def chosen(self, included: Sequence[str], excluded: Sequence[str]) -> Chosen:
        """The beginnings. Raises ValidationError for one that is not wanted."""
        if excluded:
            raise forms.ValidationError("Give the beginning of names, without !.")
        return Chosen(tuple(included))


class _Beginnings(Texts):
    """A column of text that begins with any of some words, in upper or lower case as they are."""

    field_class = _BeginningsField
    hint = "As it is written, in upper and lower case."

    def condition(self, values: Sequence[str]) -> Q:
        """True for rows whose text begins with any of the words."""
        whole = Q()
        for value in values:
            whole |= Q(**{f"{self.field_name}__startswith": value})
        return whole


class JobFilter(ListFilter):
    """Jobs by state, owner, DAG, site, name, reason and time."""

    by_age = frozenset({"state", "created", "id"})

    name = Texts(label="Name contains")
    begins = _Beginnings(field_name="name", label="Name begins with")
    state = Words(choices=JobState.choices, label="State")
    owner = Owners(field_name="owner_id", label="Owner")
    site = Words(field_name="site_name", label="Site")
    dag = TopicFilter(JOB_TOPIC)
    reason = _Reasons(field_name="state_reason", label="Reason contains")
    created = Moments(field_name="created_at", label="Made")
    since = Moments(field_name="state_since", label="In its state since")
    attempts = Numbers(field_name="attempt_number", label="Attempts")
    exit = _Ends("exit_code", label="Exit code")
    signal = _Ends("signal", label="Signal")
    id = Numbers(smallest=1, label="Number")
    cluster = _Clusters(field_name="cluster_id", label="Cluster", smallest=1, widget=HiddenValues)
    cause = _Causes(choices=JobCause.choices, label="Cause", widget=HiddenValues)
    failure = FailureOccurrenceFilter("job")
    sort = Sorting(
        newest("Made", "created"),
        by_time("since", "In its state since", "state_since"),
        by_number("priority", "Priority", "priority"),
        by_number(
            "attempt", "Attempts", "attempt_number", rising="fewest first", falling="most first"
        ),
        by_text("name", "Name", "name", "job"),
    )

    class Meta:
        model = Job
        fields: Sequence[str] = ()

    def _passing(self, queryset: QuerySet[Job], *, leaving: Collection[str]) -> QuerySet[Job]:
        found = super()._passing(queryset, leaving=leaving)
        if self._is_cut:
            latest = Job.objects.order_by("-pk").values("pk")[:1]
            return found.filter(pk__gt=Subquery(latest) - SEARCHED_JOBS)
        if self.form.cleaned_data["begins"] and not self._is_narrow:
            # Few: found by their names before anything else is asked of them.
            return found.filter(pk__in=self._beginning[:BEGINNINGS])
        return found

    @property
    def _is_narrow(self) -> bool:
        return any(self.form.cleaned_data[name] for name in _NARROW)

    @property
    def _beginning(self) -> QuerySet[Any]:
        chosen: Chosen = self.form.cleaned_data["begins"]
        found = Job.objects.filter(self.filters["begins"].condition(chosen.included))
        return found.order_by().values("pk")

    @cached_property
    def _many_begin(self) -> bool:
        """True when more jobs than can be looked up have such names. One query."""
        if not self.form.cleaned_data["begins"]:
            return False
        return self._beginning[: BEGINNINGS + 1].count() > BEGINNINGS

    @property
    def _is_cut(self) -> bool:
        if self._is_narrow:
            return False
        return bool(self.form.cleaned_data["name"]) or self._many_begin

    @property
    def is_walked(self) -> bool:
        """Whether an index has the jobs in order: by the last change, of all or in some states."""
        if self.order.sort.name != "since":
            return super().is_walked
        return self.parameters().keys() <= _BY_CHANGE

    def some(self, border: Border | None, limit: int, *, is_back: bool = False) -> list[Any]:
        """The next jobs in order; by the last change from the first ones of each state."""
        if self.order.is_by_id or not self.is_walked:
            return super().some(border, limit, is_back=is_back)
        ids = self._changed(border, limit, is_back=is_back)
        found = self.sortable().in_bulk(ids)
        return [found[pk] for pk in ids if pk in found]

    def _changed(self, border: Border | None, limit: int, *, is_back: bool) -> list[int]:
        """The ids of the next jobs by the last change. One query."""
        rows, order = self.sortable(), self.order
        if border is not None:
            rows = rows.filter(order.beyond(border, is_back=is_back))
        rows = rows.order_by(*order.by(is_back=is_back)).values_list("sort_key", "pk")
        chosen: Chosen = self.form.cleaned_data["state"] or Chosen()
        states = [state for state in JobState.values if is_wanted(state, chosen)]
        if not states:
            return []
        first, *others = (rows.filter(state=state)[:limit] for state in states)
        found = sorted(
            first.union(*others, all=True) if others else first,
            reverse=order.is_falling is not is_back,
        )
        return [pk for _, pk in found[:limit]]

    def hinted(self, queryset: QuerySet[Job]) -> QuerySet[Job]:
        """Rows with a range of ids as a hint, for jobs made in a stretch of time."""
        made: Chosen | None = self.form.cleaned_data["created"] if self.is_bound else None
        if not made:
            return queryset
        return within_ids(queryset, Job.objects.all(), made.included[0], self.now)

    def notes(self) -> list[str]:
        """Notes on jobs whose names were not searched."""
        if not self._is_cut:
            return []
        many = f"More than {BEGINNINGS:,} jobs have names that begin so. " * self._many_begin
        return [
            f"{many}Names are looked for in the latest {SEARCHED_JOBS:,} jobs. With a DAG or a "
            "range of numbers, in all of these."
        ]

    def wider(self) -> list[tuple[str, dict[str, list[str]]]]:
        """Link to a search among all jobs for names that begin with the search text."""
        parts = self.parameters()
        names = parts.pop("name", [])
        if not self._is_cut or "begins" in parts or any(name.startswith("!") for name in names):
            return []
        names_text = " or ".join(names)
        return [(f"Names that begin with {names_text}, among all jobs", {**parts, "begins": names})]
