"""Rights in the administration follow from the role, not from Django's permissions per model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

from wms.core.actors import Actor
from wms.core.errors import InvalidInput, PilotageError
from wms.core.models import Role, User
from wms.core.policy import has_role


def role_of(request: HttpRequest, role: Role) -> bool:
    """Tell whether the user of the request has a role."""
    return isinstance(request.user, User) and has_role(request.user, role)


def actor_of(request: HttpRequest) -> Actor:
    """Name the user of the request as author of a change."""
    assert isinstance(request.user, User)
    return Actor.person(request.user)


class RoleAdmin(admin.ModelAdmin):
    """Objects that one role may look at and change; nothing is deleted, for history's sake."""

    role: Role = Role.OPERATOR

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


class CheckedForm(forms.ModelForm):
    """A form that asks the domain whether the object is right, and shows its findings in place."""

    check: Callable[[Model], None]

    def _post_clean(self) -> None:
        super()._post_clean()
        if self.errors:
            return
        try:
            type(self).check(self.instance)
        except InvalidInput as error:
            for finding in error.findings:
                place = "" if finding.line is None else f"line {finding.line}: "
                known = finding.field if finding.field in self.fields else None
                self.add_error(known, f"{place}{finding.message}")
        except PilotageError as error:
            self.add_error(None, str(error))
