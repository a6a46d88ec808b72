"""Admin pages of remote factories, which submit pilots for us, and of those we submit for."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.widgets import FilteredSelectMultiple
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from portal.admin.accounting import DeletableAdmin, deletion_reason
from portal.admin.forms import CheckedForm
from portal.admin.roles import actor_of
from wms.factories.models import RemoteFactory
from wms.factories.services import (
    check_factory,
    check_factory_deletion,
    create_factory,
    delete_factory,
    renew_token,
    revoke_token,
    save_factory,
)
from wms.pilots.factories.services import (
    check_remote_deletion,
    check_remote_frontend,
    delete_remote_frontend,
    save_remote_frontend,
)
from wms.pilots.factory_models import RemoteFrontend
from wms.sites.models import Site


class TwoLists(FilteredSelectMultiple):
    """Two lists, of what may be chosen and of what is, in a box of their own beside the label."""

    def render(self, *args: Any, **kwargs: Any) -> SafeString:
        """Put them into the box; without one the script would put them before the label."""
        lists = super().render(*args, **kwargs)
        return format_html('<div class="related-widget-wrapper">{}</div>', lists)


class RemoteFactoryForm(CheckedForm):
    """A factory of which there is no other of the same name, and what becomes of its token."""

    check = staticmethod(check_factory)

    sites = forms.MultipleChoiceField(
        required=False,
        widget=TwoLists("sites", is_stacked=False),
        help_text="Sites whose queues it may serve; none chosen: all.",
    )
    token = forms.ChoiceField(
        required=False,
        choices=(("", "leave it"), ("renew", "make a new one"), ("revoke", "revoke it")),
        help_text="A new one is shown once, and the old one is worth nothing from then on; either "
        "needs a reason. A new factory gets one in any case.",
    )

    class Meta:
        model = RemoteFactory
        fields = ("name", "description", "is_enabled", "sites")
        help_texts = {"name": "What queues call it, and what it calls itself here."}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["sites"]
        assert isinstance(field, forms.MultipleChoiceField)
        names = set(Site.objects.values_list("name", flat=True))
        # One that is no more stays chosen: without it the factory might serve all.
        names |= {str(name) for name in self.instance.sites}
        field.choices = [(name, name) for name in sorted(names)]

    def clean(self) -> dict[str, Any]:
        """Ask for a reason where the token is changed."""
        values = super().clean() or {}
        if self.instance.pk and values.get("token") and not values.get("reason"):
            self.add_error("reason", "Give a reason: it is recorded with the change of the token.")
        return values


class RemoteFactoryAdmin(DeletableAdmin):
    """Remote factories, when they were heard last, and why a call was refused."""

    form = RemoteFactoryForm
    list_display = ("name", "is_enabled", "seen_at", "refused_at", "refused_reason")
    search_fields = ("name", "description")
    readonly_fields = ("token_at", "seen_at", "advertised", "refused_at", "refused_reason")
    _TOKEN = "_new_token"

    @admin.display(description="entries, as advertised last")
    def advertised(self, row: RemoteFactory) -> str:
        """The entries of a factory, with what is against them."""
        if row.pk is None:
            return ""
        lines = [
            f"{entry.name}: {entry.refusal or entry.reason or 'open'}"
            for entry in row.entries.order_by("name")
        ]
        return "\n".join(lines) or "none"

    def save_model(self, request: HttpRequest, obj: RemoteFactory, form: Any, change: bool) -> None:
        """Store the factory with an audit entry; a new token is kept for this answer only."""
        actor, reason = actor_of(request), form.said_reason
        if not change:
            setattr(request, self._TOKEN, create_factory(obj, actor=actor, reason=reason))
            return
        save_factory(obj, actor=actor, reason=reason)
        if form.cleaned_data["token"] == "renew":
            setattr(request, self._TOKEN, renew_token(obj, actor=actor, reason=reason))
        elif form.cleaned_data["token"] == "revoke":
            revoke_token(obj, actor=actor, reason=reason)

    def response_add(
        self, request: HttpRequest, obj: RemoteFactory, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Show the token of the new factory, once."""
        return self._shown(request, obj)

    def response_change(self, request: HttpRequest, obj: RemoteFactory) -> HttpResponse:
        """Show a new token, once."""
        if hasattr(request, self._TOKEN):
            return self._shown(request, obj)
        return super().response_change(request, obj)

    def _shown(self, request: HttpRequest, obj: RemoteFactory) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "title": "New token of a factory",
            "factory": obj,
            "token": getattr(request, self._TOKEN),
        }
        return TemplateResponse(request, "admin/factories/remotefactory/token.html", context)

    def check_deletion(self, obj: RemoteFactory) -> None:
        """Raise Conflict when pilots are ordered of the factory."""
        check_factory_deletion(obj)

    def delete_model(self, request: HttpRequest, obj: RemoteFactory) -> None:
        """Delete the factory with an audit entry."""
        delete_factory(obj, actor=actor_of(request), reason=deletion_reason(request))


class RemoteFrontendForm(CheckedForm):
    """A frontend whose jobs are at another installation."""

    check = staticmethod(check_remote_frontend)

    class Meta:
        model = RemoteFrontend
        fields = ("frontend", "url", "factory_name", "is_enabled")


class RemoteFrontendAdmin(DeletableAdmin):
    """Remote frontends: when they answered last, and what is wrong."""

    form = RemoteFrontendForm
    list_display = ("frontend", "url", "is_enabled", "answered_at", "lease_until", "error")
    list_select_related = ("frontend",)
    search_fields = ("frontend__name", "url")
    readonly_fields = (
        "called_at", "answered_at", "lease_until", "failures", "next_at", "error", "refused",
    )  # fmt: skip

    def save_model(
        self, request: HttpRequest, obj: RemoteFrontend, form: Any, change: bool
    ) -> None:
        """Store the remote frontend with an audit entry."""
        save_remote_frontend(obj, actor=actor_of(request), reason=form.said_reason)

    def check_deletion(self, obj: RemoteFrontend) -> None:
        """Raise Conflict when it has orders here."""
        check_remote_deletion(obj)

    def delete_model(self, request: HttpRequest, obj: RemoteFrontend) -> None:
        """Delete the remote frontend with an audit entry."""
        delete_remote_frontend(obj, actor=actor_of(request), reason=deletion_reason(request))
