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
from wms.pilots.factories.callers import renew_caller_token, revoke_caller_token
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


def _token_field(new: str) -> forms.ChoiceField:
    """Fate of the token of one who calls; `new` says it of a new one."""
    return forms.ChoiceField(
        required=False,
        choices=(("", "leave it"), ("renew", "make a new one"), ("revoke", "revoke it")),
        help_text="A new one is shown once, and the old one is worth nothing from then on; either "
        f"needs a reason. {new}",
    )


class TokenForm(CheckedForm):
    """Form of a partner that calls with a token, or is called."""

    def clean(self) -> dict[str, Any]:
        """Ask for a reason where the token is changed, and for nobody's where there is none."""
        values = super().clean() or {}
        if not self.instance.pk or not values.get("token"):
            return values
        if not values.get("reason"):
            self.add_error("reason", "Give a reason: it is recorded with the change of the token.")
        if values.get("url") and values["token"] == "renew":
            self.add_error("token", "This installation calls: the token is made at the other side.")
        return values


class RemoteFactoryForm(TokenForm):
    """A factory of which there is no other of the same name, and what becomes of its token."""

    check = staticmethod(check_factory)

    sites = forms.MultipleChoiceField(
        required=False,
        widget=TwoLists("sites", is_stacked=False),
        help_text="Sites whose queues it may serve; none chosen: all.",
    )
    token = _token_field("A new factory that calls gets one in any case.")

    class Meta:
        model = RemoteFactory
        fields = ("name", "description", "is_enabled", "url", "frontend_name", "sites")
        help_texts = {"name": "What queues call it, and what it calls itself here."}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["sites"]
        assert isinstance(field, forms.MultipleChoiceField)
        names = set(Site.objects.values_list("name", flat=True))
        # One that is no more stays chosen: without it the factory might serve all.
        names |= {str(name) for name in self.instance.sites}
        field.choices = [(name, name) for name in sorted(names)]


class TokenAdmin(DeletableAdmin):
    """Page of a partner: a new token of it is shown once, in the answer to the request."""

    _TOKEN = "_new_token"
    token_template: str

    def keep_token(self, request: HttpRequest, token: str) -> None:
        """Keep a new token for this answer only; of an empty text nothing is shown."""
        if token:
            setattr(request, self._TOKEN, token)

    def response_add(
        self, request: HttpRequest, obj: Any, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Show the token of a new partner that calls, once."""
        shown = self._shown(request, obj)
        return shown or super().response_add(request, obj, post_url_continue)

    def response_change(self, request: HttpRequest, obj: Any) -> HttpResponse:
        """Show a new token, once."""
        return self._shown(request, obj) or super().response_change(request, obj)

    def _shown(self, request: HttpRequest, obj: Any) -> HttpResponse | None:
        token = getattr(request, self._TOKEN, "")
        if not token:
            return None
        context = {
            **self.admin_site.each_context(request),
            "title": "New token",
            "partner": obj,
            "token": token,
        }
        return TemplateResponse(request, self.token_template, context)


class RemoteFactoryAdmin(TokenAdmin):
    """Remote factories, when they were heard last, and why a call failed or was refused."""

    form = RemoteFactoryForm
    token_template = "admin/factories/remotefactory/token.html"
    list_display = ("name", "url", "is_enabled", "seen_at", "error", "refused_at", "refused_reason")
    search_fields = ("name", "description", "url")
    readonly_fields = (
        "token_at", "seen_at", "advertised", "called_at", "failures", "next_at", "error",
        "refused_at", "refused_reason",
    )  # fmt: skip

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
            self.keep_token(request, create_factory(obj, actor=actor, reason=reason))
            return
        save_factory(obj, actor=actor, reason=reason)
        if form.cleaned_data["token"] == "renew":
            self.keep_token(request, renew_token(obj, actor=actor, reason=reason))
        elif form.cleaned_data["token"] == "revoke":
            revoke_token(obj, actor=actor, reason=reason)

    def check_deletion(self, obj: RemoteFactory) -> None:
        """Raise Conflict when pilots are ordered of the factory."""
        check_factory_deletion(obj)

    def delete_model(self, request: HttpRequest, obj: RemoteFactory) -> None:
        """Delete the factory with an audit entry."""
        delete_factory(obj, actor=actor_of(request), reason=deletion_reason(request))


class RemoteFrontendForm(TokenForm):
    """A frontend whose jobs are at another installation, and what becomes of its token."""

    check = staticmethod(check_remote_frontend)

    token = _token_field("A new frontend that calls gets one in any case.")

    class Meta:
        model = RemoteFrontend
        fields = ("frontend", "url", "factory_name", "is_enabled")


class RemoteFrontendAdmin(TokenAdmin):
    """Remote frontends: when they were heard last, and what is wrong."""

    form = RemoteFrontendForm
    token_template = "admin/pilots/remotefrontend/token.html"
    list_display = ("frontend", "url", "is_enabled", "answered_at", "lease_until", "error")
    list_select_related = ("frontend",)
    search_fields = ("frontend__name", "url")
    readonly_fields = (
        "called_at", "answered_at", "lease_until", "failures", "next_at", "error", "refused",
        "token_at", "refused_at", "refused_reason",
    )  # fmt: skip

    def save_model(
        self, request: HttpRequest, obj: RemoteFrontend, form: Any, change: bool
    ) -> None:
        """Store the remote frontend with an audit entry; a new token is kept for this answer."""
        actor, reason = actor_of(request), form.said_reason
        token = form.cleaned_data["token"] if change else "" if obj.url else "renew"
        save_remote_frontend(obj, actor=actor, reason=reason)
        if token == "renew":
            said = reason or "it was made with the frontend"
            self.keep_token(request, renew_caller_token(obj, actor=actor, reason=said))
        elif token == "revoke":
            revoke_caller_token(obj, actor=actor, reason=reason)

    def check_deletion(self, obj: RemoteFrontend) -> None:
        """Raise Conflict when it has orders here."""
        check_remote_deletion(obj)

    def delete_model(self, request: HttpRequest, obj: RemoteFrontend) -> None:
        """Delete the remote frontend with an audit entry."""
        delete_remote_frontend(obj, actor=actor_of(request), reason=deletion_reason(request))
