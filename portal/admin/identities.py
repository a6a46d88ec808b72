"""Admin page of identities at providers: linked to accounts and unlinked by hand, with a reason."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from django.utils.safestring import SafeString, mark_safe

from portal.admin.accounting import DeletableAdmin, deletion_reason
from portal.admin.forms import CheckedForm
from portal.admin.roles import actor_of
from portal.identity.known_issuers import known_issuers, login_issuers
from portal.web.shared.pages import refusal
from wms.core.errors import PilotageError
from wms.core.identities import (
    check_link,
    identities_of,
    link_identity,
    named_subjects_of,
    unlink_identities,
)
from wms.core.identity_models import Identity, NamedSubject
from wms.core.models import Role, User


class IdentityForm(CheckedForm):
    """An identity to be linked to the account of a person."""

    @staticmethod
    def check(row: Any) -> None:
        """Raise InvalidInput or Conflict where it cannot be linked."""
        check_link(row.user, row.issuer, row.subject)

    class Meta:
        model = Identity
        fields = ("user", "issuer", "subject")
        help_texts = {
            "issuer": "As the provider writes itself in its configuration, to the last slash.",
            "subject": "The claim sub of the person there: whoever logs in as it has the account.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["reason"].required = True
        if named := known_issuers():
            self.fields["issuer"].help_text += f" The settings name {', '.join(named)}."


class IdentityAdmin(DeletableAdmin):
    """Identities of all accounts: linked and unlinked, never changed."""

    role = Role.ADMIN
    form = IdentityForm
    list_display = (
        "subject", "issuer", "user", "created_at", "linked_by", "last_used_at", "last_used_from",
    )  # fmt: skip
    list_select_related = ("user",)
    list_filter = ("issuer",)
    search_fields = ("subject", "issuer", "user__username")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Identity]:
        """All of them, the last linked first."""
        return super().get_queryset(request).order_by("-pk")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """One is linked and unlinked, never changed."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Who may link one may unlink it."""
        return self.has_add_permission(request)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """All that is known of one that is there."""
        return self.list_display if obj is not None else (*IdentityForm.Meta.fields, "reason")

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Offer the accounts of people: those of services have no login."""
        if db_field.name == "user":
            kwargs["queryset"] = User.objects.filter(is_service=False).order_by("username")
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: Identity, form: Any, change: bool) -> None:
        """Link it with an audit entry."""
        made = link_identity(
            obj.user, obj.issuer, obj.subject, actor=actor_of(request), reason=form.said_reason
        )
        obj.pk = made.pk

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Link one; what somebody else has linked at this moment is told on a page."""
        try:
            return super().add_view(request, form_url, extra_context)
        except PilotageError as error:
            return refusal(request, error)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: Any = None
    ) -> HttpResponse:
        """Unlink one; a missing reason, and one's own last way to log in, are told on a page."""
        try:
            return super().delete_view(request, object_id, extra_context)
        except PilotageError as error:
            return refusal(request, error)

    def delete_model(self, request: HttpRequest, obj: Identity) -> None:
        """Unlink it with an audit entry."""
        unlink_identities(
            [obj.pk],
            actor=actor_of(request),
            login_issuers=login_issuers(),
            reason=deletion_reason(request),
        )


def identities_of_account(user: User) -> SafeString:
    """Subjects of providers that have the account, with their last use, and the way to link one."""
    if not user.pk:
        return mark_safe("")
    rows: list[Any] = [*identities_of(user), *named_subjects_of(user)]
    told = format_html_join(
        "", "{} at {}{}, {}<br>", ((i.subject, i.issuer, _by(i), _last_use(i)) for i in rows)
    )
    if user.is_service:
        return told
    asked = urlencode({"user__id__exact": user.pk})
    return format_html(
        '{}<a href="{}?{}">See and unlink</a>, <a href="{}?user={}">link another one</a>',
        told,
        reverse("admin:core_identity_changelist"),
        asked,
        reverse("admin:core_identity_add"),
        user.pk,
    )


def _by(identity: Identity | NamedSubject) -> str:
    if isinstance(identity, NamedSubject):
        return ", named by the settings"
    at = f", linked {identity.created_at:%Y-%m-%d %H:%M} UTC"
    return f"{at} by {identity.linked_by}" if identity.linked_by else at


def _last_use(identity: Identity | NamedSubject) -> str:
    if identity.last_used_at is None:
        return "never used"
    told = f"last used {identity.last_used_at:%Y-%m-%d %H:%M} UTC"
    return f"{told} from {identity.last_used_from}" if identity.last_used_from else told
