"""Admin page of shared limits: most nodes that several DAGs together have submitted at once."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from portal.admin.accounting import OwnLimitsAdmin, deletion_reason
from portal.admin.forms import CheckedForm
from portal.admin.roles import actor_of, people_beside
from wms.core.models import User
from wms.dags.models import SharedLimit
from wms.dags.services.shared_limits import (
    check_shared_limit,
    delete_shared_limit,
    save_shared_limit,
    visible_shared_limits,
)


class SharedLimitForm(CheckedForm):
    """A limit of which there is no other of the same kind."""

    check = staticmethod(check_shared_limit)

    class Meta:
        model = SharedLimit
        fields = ("owner", "site", "category", "max_jobs", "note")
        labels = {"max_jobs": "Nodes submitted at once"}
        widgets = {"note": forms.TextInput(attrs={"size": 80})}
        help_texts = {
            "owner": "Whose DAGs; none: everybody's together.",
            "site": "None: over all sites together.",
            "category": "As DAG files name it with CATEGORY; empty: all nodes.",
        }


class SharedLimitAdmin(OwnLimitsAdmin):
    """Limits of nodes that several DAGs may have submitted at once."""

    form = SharedLimitForm
    list_display = ("kind", "submitted", "max_jobs", "note")
    search_fields = ("owner__username", "site__name", "category", "note")
    readonly_fields = ("submitted",)

    def all_rows(self, request: HttpRequest) -> QuerySet[SharedLimit]:
        """Limits with the number of nodes that are submitted now."""
        assert isinstance(request.user, User)
        return visible_shared_limits(request.user)

    @admin.display(description="limit of", ordering="owner__username")
    def kind(self, row: SharedLimit) -> str:
        """Name of the nodes that the limit counts."""
        return str(row)

    @admin.display(description="submitted now")
    def submitted(self, row: Any) -> str:
        """Number of nodes that are submitted now."""
        return str(getattr(row, "submitted", "-"))

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Offer all accounts by name."""
        if db_field.name == "owner":
            kwargs["queryset"] = people_beside(request)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: SharedLimit, form: Any, change: bool) -> None:
        """Store the limit with an audit entry."""
        save_shared_limit(obj, actor=actor_of(request), reason=form.said_reason)

    def delete_model(self, request: HttpRequest, obj: SharedLimit) -> None:
        """Delete the limit with an audit entry."""
        delete_shared_limit(obj, actor=actor_of(request), reason=deletion_reason(request))
