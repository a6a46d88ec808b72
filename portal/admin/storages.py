"""Admin page of storages: endpoints, sites that they are near, space and limits."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from django.utils import timezone

from portal.admin.accounting import DeletableAdmin, deletion_reason
from portal.admin.forms import CheckedForm
from portal.admin.roles import actor_of
from wms.placement.amounts import bytes_of
from wms.placement.storages.models import Storage
from wms.placement.storages.selectors import listed_storages
from wms.placement.storages.services import (
    check_deletion,
    check_storage,
    delete_storage,
    save_storage,
)


class BytesField(forms.CharField):
    """Bytes, typed in with or without a unit."""

    def clean(self, value: Any) -> int | None:
        """Return the bytes; None for an empty field. Raises ValidationError."""
        text = super().clean(value)
        if not text:
            return None
        try:
            return bytes_of(text)
        except ValueError as error:
            raise forms.ValidationError(str(error)) from None


class StorageForm(CheckedForm):
    """A storage whose endpoints are addresses that modules serve."""

    check = staticmethod(check_storage)
    space_bytes = BytesField(
        required=False,
        label="Space",
        max_length=40,
        help_text="So much may be allocated, in bytes or with a unit, such as 200 TB; empty: "
        "nothing.",
    )

    class Meta:
        model = Storage
        fields = (
            "name", "endpoints", "sites", "space_bytes", "max_transfers", "max_link_transfers",
            "transfer_requirements", "is_enabled", "note",
        )  # fmt: skip
        widgets = {
            "endpoints": forms.Textarea(attrs={"rows": 4, "cols": 100, "spellcheck": "false"}),
            "transfer_requirements": forms.Textarea(
                attrs={"rows": 3, "cols": 100, "spellcheck": "false"}
            ),
            "note": forms.Textarea(attrs={"rows": 3, "cols": 80}),
        }
        help_texts = {
            "name": "What requests and sites' ads call it. It cannot be changed later.",
            "note": "For people.",
        }


class StorageAdmin(DeletableAdmin):
    """Storages, and how much of their space is allocated."""

    form = StorageForm
    filter_horizontal = ("sites",)
    list_display = ("name", "is_enabled", "allocated_now", "space", "max_transfers", "note")
    list_filter = ("is_enabled",)
    search_fields = ("name", "endpoints", "note")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Storage]:
        """Storages with what is allocated of them."""
        return listed_storages(timezone.now())

    @admin.display(description="space", ordering="space_bytes")
    def space(self, row: Storage) -> str:
        """Bytes that may be allocated."""
        return "-" if row.space_bytes is None else filesizeformat(row.space_bytes)

    @admin.display(description="allocated now")
    def allocated_now(self, row: Any) -> str:
        """Bytes that are allocated."""
        return filesizeformat(getattr(row, "allocated", 0))

    def save_model(self, request: HttpRequest, obj: Storage, form: Any, change: bool) -> None:
        """Store the storage with an audit entry."""
        sites = form.cleaned_data["sites"]
        save_storage(obj, actor=actor_of(request), reason=form.said_reason, sites=sites)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Do nothing: the sites were stored with the storage."""

    def check_deletion(self, obj: Storage) -> None:
        """Raise Conflict when something is kept there."""
        check_deletion(obj)

    def delete_model(self, request: HttpRequest, obj: Storage) -> None:
        """Delete the storage with an audit entry."""
        delete_storage(obj.name, actor=actor_of(request), reason=deletion_reason(request))
