"""Base admins with permissions by the user's role, and by the sites that the user may configure.

They replace Django's model permissions, let nobody delete, and lead to history and revert. Also
actor, role and sites of the user of a request.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import ForeignKey, JSONField, ManyToManyField, Model, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse

from portal.admin.forms import StorableJsonField
from portal.admin.history import history_page, prefilled_by
from wms.accounting.models import AccountingGroup, Frontend
from wms.accounting.walls import Walls, seen_by
from wms.core.actors import Actor
from wms.core.models import Role, User
from wms.core.policy import has_role
from wms.sites.models import Site
from wms.sites.policy import configurable_sites

_Row = TypeVar("_Row", bound=Model)


def role_of(request: HttpRequest, role: Role) -> bool:
    """Whether the user of the request has a role."""
    return isinstance(request.user, User) and has_role(request.user, role)


def actor_of(request: HttpRequest) -> Actor:
    """Actor of a change: the user of the request."""
    assert isinstance(request.user, User)
    return Actor.person(request.user)


def sites_of_user(request: HttpRequest) -> QuerySet[Site]:
    """The sites that the user of the request may configure."""
    user = request.user
    return configurable_sites(user) if isinstance(user, User) else Site.objects.none()


def people_beside(request: HttpRequest) -> QuerySet[User]:
    """The accounts that the user of the request may choose from, by name."""
    return _beside(request, User.objects.order_by("username"), Walls.of_users)


def groups_beside(request: HttpRequest) -> QuerySet[AccountingGroup]:
    """The accounting groups that the user of the request may choose from."""
    groups = AccountingGroup.objects.all()
    return _beside(request, groups, Walls.of_groups)


def frontends_beside(request: HttpRequest) -> QuerySet[Frontend]:
    """The frontends that the user of the request may choose from."""
    frontends = Frontend.objects.all()
    return _beside(request, frontends, lambda walls: Q(pk__in=walls.frontends))


def _beside(
    request: HttpRequest, rows: QuerySet[_Row], condition: Callable[[Walls], Q]
) -> QuerySet[_Row]:
    user = request.user
    return seen_by(user, rows, condition) if isinstance(user, User) else rows.none()


class RoleAdmin(admin.ModelAdmin):
    """Objects that one role may view and change; nothing is deleted, to keep the history."""

    role: Role = Role.OPERATOR
    formfield_overrides = {JSONField: {"form_class": StorableJsonField}}

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Tell whether the objects appear on the first page."""
        return role_of(request, self.role)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Tell whether the user may look at them."""
        return role_of(request, self.role)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Tell whether the user may make one."""
        return role_of(request, self.role)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Tell whether the user may change them."""
        return role_of(request, self.role)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody may."""
        return False

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Any:
        """Return the object, or None. An empty name of a field is none, not one to look for."""
        return super().get_object(request, object_id, from_field or None)

    def get_form(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        """Show the form as it was before a change that is to be taken back, if one is named."""
        form = super().get_form(request, obj, **kwargs)
        chosen = request.GET.get("revert", "")
        if obj is not None and request.method == "GET" and chosen:
            form.prefilled, message = prefilled_by(chosen, obj, form)
            messages.info(request, message)
        return form

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show what was changed, from what to what, by whom and why."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        obj = self.get_object(request, unquote(object_id))
        if obj is None or not self.has_view_permission(request, obj):
            self._get_obj_does_not_exist_redirect(request, self.opts, object_id)
        return history_page(self, request, obj)

    def _get_obj_does_not_exist_redirect(
        self, request: HttpRequest, opts: Any, object_id: str
    ) -> NoReturn:
        """Answer 404: what does not exist, and what one may not see, look alike."""
        raise Http404(f"There is no {opts.verbose_name} {unquote(object_id)}.")


class OwnSitesAdmin(RoleAdmin):
    """Objects that belong to a site: all for operators, those of their own sites for others.

    `site_field` is the lookup of the site. `operators_fields` are visible to administrators of the
    site, but only operators may change them.
    """

    site_field = "site"
    operators_fields: tuple[str, ...] = ()
    may_be_added = True

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Tell whether the user has any site here."""
        return super().has_module_permission(request) or sites_of_user(request).exists()

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Tell whether the user may look at one, or at the list."""
        return self._may(request, obj)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Tell whether the user may change one, or any."""
        return self._may(request, obj)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Tell whether the user may make one at some site."""
        return super().has_add_permission(request) or (self.may_be_added and self._may(request))

    def _may(self, request: HttpRequest, obj: Any = None) -> bool:
        if role_of(request, Role.OPERATOR):
            return True
        if obj is None or obj.pk is None:
            return sites_of_user(request).exists()
        return self.get_queryset(request).filter(pk=obj.pk).exists()

    def all_rows(self, request: HttpRequest) -> QuerySet[Any]:
        """Read the objects of all sites."""
        return super().get_queryset(request)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Leave out what is not of the user's sites: it does not exist for the user."""
        rows = self.all_rows(request)
        if role_of(request, Role.OPERATOR):
            return rows
        return rows.filter(**{f"{self.site_field}__in": sites_of_user(request)})

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Add what only operators change."""
        fields = tuple(super().get_readonly_fields(request, obj))
        if role_of(request, Role.OPERATOR):
            return fields
        return (*fields, *(name for name in self.operators_fields if name not in fields))

    def formfield_for_foreignkey(
        self, db_field: ForeignKey[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> Any:
        """Offer the user's sites; what is of all sites is the operators'."""
        is_bound = db_field.name == "site" and not role_of(request, Role.OPERATOR)
        if is_bound:
            kwargs["queryset"] = sites_of_user(request)
        elif db_field.related_model is AccountingGroup:
            kwargs.setdefault("queryset", groups_beside(request))
        elif db_field.related_model is Frontend:
            kwargs.setdefault("queryset", frontends_beside(request))
        field = super().formfield_for_foreignkey(db_field, request, **kwargs)
        if is_bound and field is not None:
            field.required = True
        return field

    def formfield_for_manytomany(
        self, db_field: ManyToManyField[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> Any:
        """Offer accounts by name."""
        if db_field.related_model is User:
            kwargs["queryset"] = people_beside(request).filter(is_active=True)
        return super().formfield_for_manytomany(db_field, request, **kwargs)
