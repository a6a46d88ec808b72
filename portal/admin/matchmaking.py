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
        labels = {
            "rematch_expression": "Take a match back if",
            "max_rematches": "Rematches by policy at most",
            "avoid_s": "Avoid the site for (seconds)",
            "priority_half_life_s": "Half-life of priorities (seconds)",
        }
        widgets = {
            "rematch_expression": forms.Textarea(
                attrs={"rows": 3, "cols": 100, "spellcheck": "false"}
            ),
        }
        help_texts = {
            "rematch_expression": "ClassAd expression over a running DAG's figures, such as "
            "QueuedSeconds > 7200 && NodesRunning == 0. For DAGs without their own.",
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
