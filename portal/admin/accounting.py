"""Admin pages of fair share: accounting groups, submitters, quotas, concurrency limits.

Also the base admins of all objects that may be deleted with a reason, and of limits that site
administrators set.
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import F, QuerySet
from django.http import HttpRequest

from portal.admin.forms import CheckedForm
from portal.admin.roles import OwnSitesAdmin, RoleAdmin, actor_of
from wms.accounting.models import AccountingGroup, ConcurrencyLimit, Quota, Submitter
from wms.accounting.selectors import ranked_submitters
from wms.accounting.services import (
    check_group,
    check_group_deletion,
    check_limit,
    check_quota_row,
    delete_group,
    delete_limit,
    delete_quota,
    save_group,
    save_limit,
    save_quota,
    save_submitter,
)
from wms.core.database.saving import check_row
from wms.core.errors import Conflict
from wms.core.models import User

_EFFECTIVE_PRIORITY = F("real_priority") * F("factor")


def deletion_reason(request: HttpRequest) -> str:
    """Reason of a deletion, as typed on its confirmation page."""
    return request.POST.get("reason", "").replace("\0", "").strip()[:2000]


class DeletableAdmin(RoleAdmin):
    """Admin of objects that may be deleted one by one, if nothing needs them."""

    actions = None
    delete_confirmation_template = "admin/reasoned_delete_confirmation.html"

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Who may change them may delete them."""
        return self.has_change_permission(request, obj)

    def check_deletion(self, obj: Any) -> None:
        """Raise Conflict when the object is needed."""

    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[list[str], dict[str, int], set[str], list[str]]:
        """Tell what would be deleted, and what is against it."""
        refusals = []
        for obj in objs:
            try:
                self.check_deletion(obj)
            except Conflict as error:
                refusals.append(str(error))
        return [str(obj) for obj in objs], {}, set(), refusals


class OwnLimitsAdmin(OwnSitesAdmin, DeletableAdmin):
    """Admin of limits that the administrators of a site set for it."""


class GroupForm(CheckedForm):
    """A group whose parent exists."""

    check = staticmethod(check_group)

    class Meta:
        model = AccountingGroup
        fields = (
            "name", "frontend", "quota_kind", "quota", "accepts_surplus", "share",
            "has_job_sharing", "members",
        )  # fmt: skip
        labels = {"has_job_sharing": "Job sharing"}
        help_texts = {
            "name": "Points lead from parent to child: physics.higgs belongs to physics.",
        }


class GroupAdmin(DeletableAdmin):
    """Groups with their quotas, shares and members."""

    form = GroupForm
    list_display = (
        "name", "frontend", "quota", "quota_kind", "accepts_surplus", "share", "has_job_sharing",
    )  # fmt: skip
    list_select_related = ("frontend",)
    search_fields = ("name",)
    filter_horizontal = ("members",)

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Offer all accounts by name."""
        return super().formfield_for_manytomany(
            db_field, request, **{"queryset": User.objects.order_by("username"), **kwargs}
        )

    def save_model(
        self, request: HttpRequest, obj: AccountingGroup, form: Any, change: bool
    ) -> None:
        """Store the group and its members with an audit entry."""
        save_group(
            obj,
            actor=actor_of(request),
            reason=form.said_reason,
            members=form.cleaned_data["members"],
        )

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Do nothing: the members were stored with the group."""

    def check_deletion(self, obj: AccountingGroup) -> None:
        """Raise Conflict when DAGs or other groups belong to the group."""
        check_group_deletion(obj)

    def delete_model(self, request: HttpRequest, obj: AccountingGroup) -> None:
        """Delete the group with an audit entry."""
        delete_group(obj, actor=actor_of(request), reason=deletion_reason(request))


class SubmitterForm(CheckedForm):
    """A submitter's factor."""

    check = staticmethod(check_row)

    class Meta:
        model = Submitter
        fields = ("factor",)


class SubmitterAdmin(RoleAdmin):
    """Submitters in the order in which they are served. All but the factor follows from use."""

    form = SubmitterForm
    list_display = (
        "name",
        "effective_priority",
        "rounded_priority",
        "factor",
        "used_slots",
        "used_core_hours",
        "charged_at",
    )
    readonly_fields = (
        "effective_priority",
        "rounded_priority",
        "used_slots",
        "used_core_hours",
        "charged_at",
    )
    ordering = (_EFFECTIVE_PRIORITY,)
    search_fields = ("user__username", "group__name")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Submitter]:
        """Read users and groups with them."""
        return ranked_submitters()

    def has_add_permission(self, request: HttpRequest) -> bool:
        """They come into being when they first use something."""
        return False

    @admin.display(ordering="user__username")
    def name(self, row: Submitter) -> str:
        """Name the group, if any, and the user."""
        return str(row)

    @admin.display(ordering=_EFFECTIVE_PRIORITY)
    def effective_priority(self, row: Submitter) -> str:
        """Show the real priority times the factor; smaller is better."""
        return f"{row.real_priority * row.factor:.2f}"

    @admin.display(ordering="real_priority", description="real priority")
    def rounded_priority(self, row: Submitter) -> str:
        """Show the slots used of late."""
        return f"{row.real_priority:.2f}"

    @admin.display(ordering="used_slot_s", description="core hours in all")
    def used_core_hours(self, row: Submitter) -> str:
        """Show what was used in all, in the usual unit."""
        return f"{row.used_slot_s / 3600:.1f}"

    def save_model(self, request: HttpRequest, obj: Submitter, form: Any, change: bool) -> None:
        """Store the factor with an audit entry."""
        save_submitter(obj, actor=actor_of(request), reason=form.said_reason)


class QuotaForm(CheckedForm):
    """A quota of a user, of a group, or of every user."""

    check = staticmethod(check_quota_row)

    class Meta:
        model = Quota
        fields = ("user", "group", "max_waiting_jobs", "max_clusters", "max_bytes")


class QuotaAdmin(DeletableAdmin):
    """Quotas of waiting jobs, clusters and stored bytes."""

    form = QuotaForm
    list_display = ("__str__", "max_waiting_jobs", "max_clusters", "max_bytes")
    list_select_related = ("user", "group")
    search_fields = ("user__username", "group__name")

    def save_model(self, request: HttpRequest, obj: Quota, form: Any, change: bool) -> None:
        """Store the quota with an audit entry."""
        save_quota(obj, actor=actor_of(request), reason=form.said_reason)

    def delete_model(self, request: HttpRequest, obj: Quota) -> None:
        """Delete the quota with an audit entry."""
        delete_quota(obj, actor=actor_of(request), reason=deletion_reason(request))


class LimitForm(CheckedForm):
    """A concurrency limit."""

    check = staticmethod(check_limit)

    class Meta:
        model = ConcurrencyLimit
        fields = ("name", "maximum", "note")
        widgets = {"note": forms.TextInput(attrs={"size": 80})}
        help_texts = {
            "name": "db, db.read, db.* for all of db that have none of their own, or * for all.",
            "maximum": "So much may be in use at once, over all sites.",
        }


class LimitAdmin(DeletableAdmin):
    """Concurrency limits."""

    form = LimitForm
    list_display = ("name", "maximum", "note")
    search_fields = ("name", "note")

    def save_model(
        self, request: HttpRequest, obj: ConcurrencyLimit, form: Any, change: bool
    ) -> None:
        """Store the limit with an audit entry."""
        save_limit(obj, actor=actor_of(request), reason=form.said_reason)

    def delete_model(self, request: HttpRequest, obj: ConcurrencyLimit) -> None:
        """Delete the limit with an audit entry."""
        delete_limit(obj, actor=actor_of(request), reason=deletion_reason(request))
