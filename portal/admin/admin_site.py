"""AdminSite of Pilotage: who may enter, its first page, self-test, login, and change of password.

Also registers all objects that can be configured.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from django.contrib.admin import AdminSite
from django.contrib.auth.views import PasswordChangeView, redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import path, reverse

from portal.admin.accounting import GroupAdmin, LimitAdmin, QuotaAdmin, SubmitterAdmin
from portal.admin.accounts import ServiceAccountAdmin, TokenAdmin, UserAdmin
from portal.admin.audit import AuditAdmin
from portal.admin.checks import NodeCheckAdmin
from portal.admin.credentials import CredentialAdmin
from portal.admin.factories import RemoteFactoryAdmin, RemoteFrontendAdmin
from portal.admin.frontends import FrontendAdmin, FrontendEntryAdmin
from portal.admin.identities import IdentityAdmin
from portal.admin.matchmaking import MatchmakingPolicyAdmin
from portal.admin.pilot_limits import PilotLimitAdmin
from portal.admin.roles import role_of, sites_of_user
from portal.admin.self_test import self_test
from portal.admin.shared_limits import SharedLimitAdmin
from portal.admin.sites import DowntimeAdmin, QueueAdmin, SiteAdmin
from portal.admin.storages import StorageAdmin
from portal.admin.task_queues import RunningLimitAdmin, TaskQueueAdmin, TaskQueuePolicyAdmin
from portal.shared.passwords import OwnPasswordForm
from portal.web.shared.pages import refusal
from wms.accounting.models import AccountingGroup, ConcurrencyLimit, Frontend, Quota, Submitter
from wms.core.errors import NotPermitted
from wms.core.identity_models import Identity
from wms.core.models import ApiToken, AuditEntry, Role, ServiceAccount, User
from wms.dags.models import MatchmakingPolicy, SharedLimit
from wms.factories.models import RemoteFactory
from wms.jobs.models import RunningLimit
from wms.pilots.credential_models import Credential
from wms.pilots.factory_models import RemoteFrontend
from wms.pilots.models import NodeCheck
from wms.pilots.pressure_models import PilotLimit
from wms.placement.storages.models import Storage
from wms.sites.downtimes.models import Downtime
from wms.sites.frontends.models import FrontendEntry
from wms.sites.models import Queue, Site
from wms.taskqueues.models import TaskQueue, TaskQueuePolicy


class OwnPasswordView(PasswordChangeView):
    """Page to change one's own password; the form gets the request, for the login throttle."""

    def get_form_kwargs(self) -> dict[str, Any]:
        """Arguments of the form, with the request."""
        return {**super().get_form_kwargs(), "request": self.request}


class Administration(AdminSite):
    """AdminSite for users who may configure something; they log in on the portal's own page."""

    site_title = "Pilotage administration"
    site_header = "Pilotage administration"
    index_title = "Configuration"
    site_url = None  # the head of each page leads to the portal

    def has_permission(self, request: HttpRequest) -> bool:
        """Tell whether the user may see anything here."""
        return role_of(request, Role.OPERATOR) or sites_of_user(request).exists()

    def get_urls(self) -> list[Any]:
        """Add the page that is of no object."""
        view = self.admin_view(partial(self_test, self))
        return [path("self-test/", view, name="self_test"), *super().get_urls()]

    def index(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        """Show what may be configured; lead administrators to the self-test."""
        context = {"is_administrator": role_of(request, Role.ADMIN), **(extra_context or {})}
        return super().index(request, context)

    def login(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Send visitors to the portal's login; who is logged in and not let in lacks the role."""
        if self.has_permission(request):
            return redirect("admin:index")
        if request.user.is_authenticated:
            why = (
                f"The administration needs the role {Role.OPERATOR.label}, or to be named as "
                "administrator by a site."
            )
            return refusal(request, NotPermitted(why))
        return redirect_to_login(request.GET.get("next", reverse("admin:index")))

    def password_change(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Change one's own password, which is audited."""
        view = OwnPasswordView.as_view(
            form_class=OwnPasswordForm,
            success_url=reverse("admin:password_change_done"),
            extra_context={**self.each_context(request), **(extra_context or {})},
        )
        return view(request)


site = Administration(name="admin")
site.register(Site, SiteAdmin)
site.register(Queue, QueueAdmin)
site.register(Downtime, DowntimeAdmin)
site.register(Storage, StorageAdmin)
site.register(NodeCheck, NodeCheckAdmin)
site.register(PilotLimit, PilotLimitAdmin)
site.register(Frontend, FrontendAdmin)
site.register(FrontendEntry, FrontendEntryAdmin)
site.register(Credential, CredentialAdmin)
site.register(RemoteFactory, RemoteFactoryAdmin)
site.register(RemoteFrontend, RemoteFrontendAdmin)
site.register(AccountingGroup, GroupAdmin)
site.register(Submitter, SubmitterAdmin)
site.register(Quota, QuotaAdmin)
site.register(ConcurrencyLimit, LimitAdmin)
site.register(MatchmakingPolicy, MatchmakingPolicyAdmin)
site.register(SharedLimit, SharedLimitAdmin)
site.register(TaskQueue, TaskQueueAdmin)
site.register(TaskQueuePolicy, TaskQueuePolicyAdmin)
site.register(RunningLimit, RunningLimitAdmin)
site.register(User, UserAdmin)
site.register(ServiceAccount, ServiceAccountAdmin)
site.register(Identity, IdentityAdmin)
site.register(ApiToken, TokenAdmin)
site.register(AuditEntry, AuditAdmin)
