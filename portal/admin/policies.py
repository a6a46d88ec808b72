"""Base admin of policies, which have exactly one row: its page takes the place of the list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from portal.admin.roles import RoleAdmin, actor_of
from wms.core.actors import Actor

_Policy = TypeVar("_Policy", bound=Model)


class PolicyAdmin(RoleAdmin, Generic[_Policy]):
    """Admin of a policy, of which there is only one: its list redirects to it."""

    #: Both are services of the domain: what is in force, set or not, and how it is changed.
    current: Callable[[], _Policy]
    store: Callable[..., None]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """There is one already."""
        return False

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> _Policy | None:
        """Find the policy in force, which nobody may have set yet."""
        return type(self).current() if object_id == "1" else None

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Lead to the policy."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        return redirect(f"admin:{self.opts.app_label}_{self.opts.model_name}_change", 1)

    def save_model(self, request: HttpRequest, obj: _Policy, form: Any, change: bool) -> None:
        """Store the policy with an audit entry."""
        actor: Actor = actor_of(request)
        type(self).store(obj, actor=actor, reason=form.said_reason)
