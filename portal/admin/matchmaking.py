"""The matchmaking policy in the administration: one page."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from portal.admin.roles import CheckedForm, RoleAdmin, actor_of
from wms.dags.models import MatchmakingPolicy
from wms.dags.policies import check_policy, matchmaking_policy, save_policy


class PolicyForm(CheckedForm):
    """A policy whose expression can be evaluated."""

    check = staticmethod(check_policy)

    class Meta:
        model = MatchmakingPolicy
        fields = ("rematch_expression", "max_rematches", "avoid_s", "priority_half_life_s")
        widgets = {
            "rematch_expression": forms.Textarea(
                attrs={"rows": 3, "cols": 100, "spellcheck": "false"}
            ),
        }


class PolicyAdmin(RoleAdmin):
    """What holds for all DAGs. There is one policy: its list leads to it."""

    form = PolicyForm

    def has_add_permission(self, request: HttpRequest) -> bool:
        """There is one already."""
        return False

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> MatchmakingPolicy | None:
        """Find the policy in force, which nobody may have set yet."""
        return matchmaking_policy() if object_id == "1" else None

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Lead to the policy."""
        return redirect("admin:dags_matchmakingpolicy_change", 1)

    def save_model(
        self, request: HttpRequest, obj: MatchmakingPolicy, form: Any, change: bool
    ) -> None:
        """Store the policy with an audit entry."""
        save_policy(obj, actor=actor_of(request))
