"""Admin page of credentials of frontends: a secret is typed in, and never shown."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.decorators import method_decorator
from django.views.decorators.debug import sensitive_post_parameters

from portal.admin.accounting import DeletableAdmin, deletion_reason
from portal.admin.forms import CheckedForm, date_and_time
from portal.admin.roles import actor_of
from wms.pilots.credential_models import Credential
from wms.pilots.credentials.secrets import MOST_BYTES
from wms.pilots.credentials.services import (
    check_credential,
    check_deletion,
    delete_credential,
    save_credential,
)
from wms.sites.models import Queue


class UnshownTextarea(forms.Textarea):
    """A text area that shows nothing of what was typed into it."""

    def format_value(self, value: Any) -> str:
        """Return nothing."""
        return ""


class CredentialForm(CheckedForm):
    """A credential that is of use where it is for, with a secret that may be set anew."""

    check = staticmethod(check_credential)
    secret = forms.CharField(
        required=False,
        strip=False,
        max_length=MOST_BYTES,
        widget=UnshownTextarea(attrs={"rows": 6, "autocomplete": "off", "spellcheck": "false"}),
        help_text="The key, token, or certificate with its key, as text. It is stored encrypted "
        "and never shown; leave it empty to keep the one that is stored.",
    )

    class Meta:
        model = Credential
        fields = (
            "name", "frontend", "queue", "site", "kind", "account", "directory", "valid_until",
            "is_enabled",
        )  # fmt: skip
        widgets = {"valid_until": date_and_time("Valid until")}
        help_texts = {
            "name": "What reasons and the audit trail call it.",
            "kind": "What it is: the element of the queue says which it takes.",
        }

    def clean_secret(self) -> str:
        """Hand it over to the check, and keep nothing of it for the form."""
        self.instance.new_secret = self.cleaned_data["secret"]
        return ""


class CredentialAdmin(DeletableAdmin):
    """Credentials of frontends: name, kind, fingerprint, expiry and last use."""

    form = CredentialForm
    list_display = (
        "name", "whose", "place", "kind", "is_enabled", "expires_at", "last_used_at",
    )  # fmt: skip
    list_filter = ("frontend", "kind", "is_enabled")
    list_select_related = ("frontend", "queue__site", "site")
    search_fields = ("name", "frontend__name", "queue__site__name", "site__name")
    readonly_fields = ("fingerprint", "subject", "expires_at", "replaced_at", "last_used_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Credential]:
        """Read nothing that is secret."""
        return super().get_queryset(request).defer("sealed")

    @admin.display(description="frontend", ordering="frontend__name")
    def whose(self, row: Credential) -> str:
        """Name of the frontend."""
        return row.frontend.name if row.frontend else "(default)"

    @admin.display(description="for", ordering="queue__site__name")
    def place(self, row: Credential) -> str:
        """Queue or site."""
        return str(row.queue or row.site)

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Offer the queues with their sites."""
        if db_field.name == "queue":
            kwargs["queryset"] = Queue.objects.select_related("site")
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    @method_decorator(sensitive_post_parameters())
    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Show the form, or store what was typed; no page of a fault shows it."""
        return super().changeform_view(request, *args, **kwargs)

    def save_model(self, request: HttpRequest, obj: Credential, form: Any, change: bool) -> None:
        """Store the credential with an audit entry."""
        save_credential(obj, actor=actor_of(request), reason=form.said_reason)

    def check_deletion(self, obj: Credential) -> None:
        """Raise Conflict while pilots need it."""
        check_deletion(obj)

    def delete_model(self, request: HttpRequest, obj: Credential) -> None:
        """Delete the credential with an audit entry."""
        delete_credential(obj, actor=actor_of(request), reason=deletion_reason(request))
