"""Admin pages of TaskQueues (read-only), of the TaskQueue policy, and of running limits of jobs."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.postgres.forms import SimpleArrayField
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.formats import date_format

from portal.admin.accounting import OwnLimitsAdmin, deletion_reason
from portal.admin.forms import CheckedForm
from portal.admin.policies import PolicyAdmin
from portal.admin.roles import RoleAdmin, actor_of
from portal.web.jobs.needs import words_of
from wms.core.models import User
from wms.jobs.limits import check_limit, delete_limit, save_limit, visible_limits
from wms.jobs.models import RunningLimit
from wms.taskqueues.listing import with_counts
from wms.taskqueues.models import TaskQueue, TaskQueuePolicy
from wms.taskqueues.selectors import needs_of
from wms.taskqueues.task_queue_policy import check_policy, save_policy, task_queue_policy


class TaskQueueAdmin(RoleAdmin):
    """TaskQueues, the newest first, to be read only: they come and go with their jobs."""

    list_display = ("number", "owner", "owner_group", "needs", "waiting", "oldest", "priority")
    list_display_links = ("number",)
    readonly_fields = ("waiting", "oldest", "priority")
    list_per_page = 50
    search_fields = ("owner__username", "owner_group")
    ordering = ("-pk",)
    sortable_by = ("number",)
    show_full_result_count = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[TaskQueue]:
        """TaskQueues with their waiting jobs, counted only for those that are shown."""
        queues: QuerySet[TaskQueue] = super().get_queryset(request)
        return with_counts(queues).select_related("owner", "ticket")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Jobs make them."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody changes one."""
        return False

    @admin.display(ordering="pk", description="TaskQueue")
    def number(self, row: TaskQueue) -> str:
        """Number of the TaskQueue, as a link text."""
        return str(row.pk)

    @admin.display
    def needs(self, row: TaskQueue) -> str:
        """Show the needs in a line."""
        return words_of(needs_of(row))

    @admin.display
    def waiting(self, row: Any) -> int:
        """Count the waiting jobs."""
        return int(row.waiting)

    @admin.display(empty_value="-")
    def oldest(self, row: Any) -> Any:
        """Tell since when the oldest job waits."""
        return row.oldest_at and date_format(timezone.localtime(row.oldest_at), "DATETIME_FORMAT")

    @admin.display(ordering="ticket__priority")
    def priority(self, row: TaskQueue) -> str:
        """Show the weight in the draw."""
        return f"{row.ticket.priority:.4g}" if hasattr(row, "ticket") else "-"


class TaskQueuePolicyForm(CheckedForm):
    """A policy whose segments rise."""

    check = staticmethod(check_policy)
    # The model's own field does not tell what is wrong with a number.
    cpu_segments_s = SimpleArrayField(
        forms.IntegerField(min_value=1, max_value=2**31 - 1),
        max_length=50,
        label="CPU time segments (seconds)",
        help_text=TaskQueuePolicy._meta.get_field("cpu_segments_s").help_text,
        widget=forms.TextInput(attrs={"size": 80}),
    )

    class Meta:
        model = TaskQueuePolicy
        fields = (
            "cpu_segments_s", "law", "default_share", "uses_feedback", "max_correction",
        )  # fmt: skip
        labels = {
            "law": "Law of the draw",
            "uses_feedback": "Use feedback",
        }


class TaskQueuePolicyAdmin(PolicyAdmin[TaskQueuePolicy]):
    """Policy that holds for all TaskQueues."""

    form = TaskQueuePolicyForm
    current = staticmethod(task_queue_policy)
    store = staticmethod(save_policy)


class RunningLimitForm(CheckedForm):
    """A limit that limits something, for a group that exists."""

    check = staticmethod(check_limit)

    class Meta:
        model = RunningLimit
        fields = ("site", "job_type", "owner_group", "maximum", "min_interval_s", "note")
        labels = {"min_interval_s": "Least time between two matches (seconds)"}
        widgets = {"note": forms.TextInput(attrs={"size": 80})}
        help_texts = {
            "site": "None: over all sites together.",
            "job_type": "As the jobs name it, such as User; empty: any.",
            "owner_group": "The name of an accounting group; empty: any.",
            "min_interval_s": "Keeps many jobs that begin alike from all beginning at once.",
        }

    def clean(self) -> dict[str, Any] | None:
        """Show at a field what the database's constraint would tell without one."""
        cleaned: dict[str, Any] | None = super().clean()
        values = self.cleaned_data
        if values.get("maximum", 0) is None and values.get("min_interval_s", 0) is None:
            self.add_error("maximum", "set a maximum, a time between two matches, or both")
        return cleaned


class RunningLimitAdmin(OwnLimitsAdmin):
    """Limits of jobs of a kind that run at a site."""

    form = RunningLimitForm
    list_display = ("kind", "running", "maximum", "min_interval_s", "note")
    list_select_related = ("site",)
    search_fields = ("site__name", "job_type", "owner_group", "note")
    readonly_fields = ("running", "last_match_at")

    def all_rows(self, request: HttpRequest) -> QuerySet[RunningLimit]:
        """Limits with the number of jobs that run now."""
        assert isinstance(request.user, User)
        return visible_limits(request.user)

    @admin.display(description="limit of", ordering="site__name")
    def kind(self, row: RunningLimit) -> str:
        """Name the kind of jobs and the place."""
        return str(row)

    @admin.display(description="running now")
    def running(self, row: Any) -> str:
        """Count the jobs of the kind that have a pilot."""
        return str(getattr(row, "running", "-"))

    def save_model(self, request: HttpRequest, obj: RunningLimit, form: Any, change: bool) -> None:
        """Store the limit with an audit entry."""
        save_limit(obj, actor=actor_of(request), reason=form.said_reason)

    def delete_model(self, request: HttpRequest, obj: RunningLimit) -> None:
        """Delete the limit with an audit entry."""
        delete_limit(obj, actor=actor_of(request), reason=deletion_reason(request))
