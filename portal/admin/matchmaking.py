"""Admin page of the matchmaking policy: when DAGs are rematched, half-life of priorities."""

from __future__ import annotations

from django import forms

from portal.admin.forms import CheckedForm
from portal.admin.policies import PolicyAdmin
from wms.dags.models import MatchmakingPolicy
from wms.dags.services.policies import check_policy, matchmaking_policy, save_policy


class MatchmakingPolicyForm(CheckedForm):
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
            "rematch_expression": "ClassAd expression over a running DAG's figures, for DAGs "
            "without their own.",
        }


class MatchmakingPolicyAdmin(PolicyAdmin[MatchmakingPolicy]):
    """Matchmaking policy, which holds for all DAGs."""

    form = MatchmakingPolicyForm
    current = staticmethod(matchmaking_policy)
    store = staticmethod(save_policy)
