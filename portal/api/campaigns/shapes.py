"""Serializers of campaigns and of the sums by label."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from portal.api.shapes import InstantField, NumbersByNameField, ReasonSerializer
from wms.campaigns.forecast import NoForecast, Verdict
from wms.campaigns.selectors import Campaign


class LabelSumSerializer(serializers.Serializer[Any]):
    """Sums of what carries a label, as far as you may see it."""

    label = serializers.CharField()
    dags = serializers.IntegerField(help_text="Without those inside of others.")
    active_dags = serializers.IntegerField(help_text="Those that have not ended.")
    nodes = NumbersByNameField(help_text="Nodes by state, those of inner DAGs as well.")
    clusters = serializers.IntegerField()
    active_clusters = serializers.IntegerField()
    jobs = NumbersByNameField(help_text="Jobs of the clusters, by state.")
    jobs_done = serializers.IntegerField(help_text="Jobs of DAGs and clusters that are done.")
    core_hours = serializers.FloatField(help_text="Of attempts that have ended.")


class CampaignLineSerializer(serializers.Serializer[Any]):
    """A campaign in the list."""

    name = serializers.CharField()
    sums = LabelSumSerializer()
    deadline = serializers.DateTimeField(allow_null=True)


class CampaignProgressSerializer(serializers.Serializer[Any]):
    """Nodes of DAGs and jobs of clusters, each run again once."""

    total = serializers.IntegerField()
    done = serializers.IntegerField()
    failed = serializers.IntegerField()
    lost = serializers.IntegerField(help_text="Killed, or waiting for what failed or was removed.")
    left = serializers.IntegerField(help_text="What can still end.")
    standing_still = serializers.IntegerField(help_text="Of that, what is held or halted.")
    part_done = serializers.FloatField(help_text="From 0 to 1.")
    begun_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True, help_text="Null while something goes on.")


class ForecastSerializer(serializers.Serializer[Any]):
    """When it ends if it goes on as in the last 24 hours; in four of five cases in the range."""

    cause = serializers.ChoiceField(
        [(each.value, each.value) for each in NoForecast], allow_null=True,
        help_text="Why nothing is forecast.",
    )  # fmt: skip
    expected = serializers.DateTimeField(allow_null=True)
    earliest = serializers.DateTimeField(allow_null=True)
    latest = serializers.DateTimeField(
        allow_null=True, help_text="Null also where the rates differ too much to tell one."
    )
    per_hour = serializers.FloatField(help_text="Ends in an hour.")


class CampaignUseSerializer(serializers.Serializer[Any]):
    """Cost in core-hours, and ended attempts by outcome."""

    core_hours = serializers.FloatField()
    useful_core_s = serializers.FloatField(source="spent.useful_s")
    failed_core_s = serializers.FloatField(source="spent.failed_s")
    lost_core_s = serializers.FloatField(source="spent.lost_s")
    attempts_done = serializers.IntegerField(source="done")
    attempts_failed = serializers.IntegerField(source="failed")
    attempts_lost = serializers.IntegerField(source="lost")


class CampaignCauseSerializer(serializers.Serializer[Any]):
    """A cause of failures, as a failure group."""

    group = serializers.IntegerField(source="group.pk")
    kind = serializers.CharField(source="group.kind")
    category = serializers.CharField(source="group.category")
    text = serializers.CharField(source="group.text")
    count = serializers.IntegerField(help_text="Of the latest 2,000 failures.")


class CampaignSerializer(serializers.Serializer[Any]):
    """A campaign: all DAGs and clusters with one label that you may see."""

    name = serializers.CharField()
    sums = LabelSumSerializer()
    progress = CampaignProgressSerializer()
    forecast = ForecastSerializer()
    deadline = serializers.SerializerMethodField()
    outlook = serializers.ChoiceField(
        [(each.value, each.value) for each in Verdict],
        source="verdict",
        help_text="Whether the deadline is met.",
    )
    use = CampaignUseSerializer()
    causes = CampaignCauseSerializer(many=True, help_text="The most frequent ones.")

    def get_deadline(self, campaign: Campaign) -> str | None:
        """The deadline that counts for you."""
        found = campaign.deadline
        return found.deadline.isoformat() if found and found.deadline else None


class DeadlineSerializer(ReasonSerializer):
    """A deadline, or null for none."""

    deadline = InstantField(allow_null=True)
