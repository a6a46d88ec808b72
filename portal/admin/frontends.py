"""Admin pages of frontends, and of their entries at queues."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from portal.admin.accounting import DeletableAdmin, deletion_reason
from portal.admin.forms import CheckedForm
from portal.admin.roles import actor_of
from wms.accounting.frontends import (
    check_frontend,
    check_frontend_deletion,
    delete_frontend,
    save_frontend,
)
from wms.accounting.models import Frontend
from wms.sites.frontends.entries import check_entry, delete_entry, save_entry
from wms.sites.frontends.models import FrontendEntry
from wms.sites.models import Queue


class FrontendForm(CheckedForm):
    """A frontend of which there is no other of the same name."""

    check = staticmethod(check_frontend)

    class Meta:
        model = Frontend
        fields = ("name", "description", "start_expression", "is_enabled")
        help_texts = {"name": "What groups and entries call it."}


class FrontendAdmin(DeletableAdmin):
    """Frontends: collaborations that have pilots of their own."""

    form = FrontendForm
    list_display = ("name", "is_enabled", "description")
    search_fields = ("name", "description")

    def save_model(self, request: HttpRequest, obj: Frontend, form: Any, change: bool) -> None:
        """Store the frontend with an audit entry."""
        save_frontend(obj, actor=actor_of(request), reason=form.said_reason)

    def check_deletion(self, obj: Frontend) -> None:
        """Raise Conflict when groups, entries or pilots are the frontend's."""
        check_frontend_deletion(obj)

    def delete_model(self, request: HttpRequest, obj: Frontend) -> None:
        """Delete the frontend with an audit entry."""
        delete_frontend(obj, actor=actor_of(request), reason=deletion_reason(request))


class FrontendEntryForm(CheckedForm):
    """An entry at a queue whose pilots have no owners."""

    check = staticmethod(check_entry)

    class Meta:
        model = FrontendEntry
        fields = (
            "queue", "frontend", "share", "max_pilots", "max_queued_pilots", "start_expression",
        )  # fmt: skip
        help_texts = {"queue": "Where it may have pilots; not at a queue of private ones."}


class FrontendEntryAdmin(DeletableAdmin):
    """Queues at which frontends have pilots, with their shares and limits there."""

    form = FrontendEntryForm
    list_display = ("queue", "whose", "share", "max_pilots", "max_queued_pilots")
    list_filter = ("frontend",)
    list_select_related = ("queue__site", "frontend")
    search_fields = ("queue__site__name", "queue__name", "frontend__name")

    @admin.display(description="frontend", ordering="frontend__name")
    def whose(self, row: FrontendEntry) -> str:
        """Name of the frontend."""
        return row.frontend.name if row.frontend else "(default)"

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Offer the queues with their sites."""
        if db_field.name == "queue":
            kwargs["queryset"] = Queue.objects.select_related("site")
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: FrontendEntry, form: Any, change: bool) -> None:
        """Store the entry with an audit entry."""
        save_entry(obj, actor=actor_of(request), reason=form.said_reason)

    def delete_model(self, request: HttpRequest, obj: FrontendEntry) -> None:
        """Delete the entry with an audit entry."""
        delete_entry(obj, actor=actor_of(request), reason=deletion_reason(request))
