"""Serializers of TaskQueues, their policy, and running limits."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from portal.api.shapes.common import NeedsField, StrictSerializer
from portal.api.shapes.explanations import QueueFitSerializer
from wms.jobs.models import RunningLimit
from wms.sites.models import Site
from wms.taskqueues.listing import TaskQueueLine
from wms.taskqueues.models import TaskQueuePolicy


class TaskQueueSerializer(serializers.Serializer[TaskQueueLine]):
    """A TaskQueue: what waits in it, and its part in the draws."""

    id = serializers.IntegerField()
    needs = NeedsField(source="needs.as_dict")
    waiting_jobs = serializers.IntegerField()
    oldest_at = serializers.DateTimeField(
        allow_null=True, help_text="Since when the oldest of its jobs waits."
    )
    priority = serializers.FloatField(help_text="Its weight in the draw.")
    share = serializers.FloatField(help_text="Its priority's part in the sum of all, up to 1.")
    created_at = serializers.DateTimeField()


class JobPrioritySerializer(serializers.Serializer[Any]):
    """The waiting jobs of one priority, and their part in the weight of all that wait there."""

    priority = serializers.IntegerField()
    jobs = serializers.IntegerField()
    weight = serializers.FloatField(help_text="Of one job.")
    part = serializers.FloatField()


class OldJobSerializer(serializers.Serializer[Any]):
    """A job that waits."""

    job = serializers.IntegerField(source="job_id")
    priority = serializers.IntegerField()
    enqueued_at = serializers.DateTimeField()


class OriginSerializer(serializers.Serializer[Any]):
    """How the priority came about."""

    group_share = serializers.FloatField()
    has_job_sharing = serializers.BooleanField()
    users = serializers.IntegerField(help_text="Of the group that have TaskQueues now.")
    part = serializers.FloatField(
        help_text="Of the user, or with job sharing of the group; without correction by use."
    )
    pool_task_queues = serializers.IntegerField(help_text="TaskQueues that share that part.")
    pool_priority = serializers.FloatField(help_text="The sum of their priorities.")
    group_priority = serializers.FloatField(help_text="The sum of the group's priorities.")
    whole = serializers.FloatField(help_text="The sum of all priorities.")
    uses_feedback = serializers.BooleanField(help_text="Recent use corrects the shares.")


class TaskQueueDetailSerializer(TaskQueueSerializer):
    """A TaskQueue with its jobs by priority, its oldest ones, and where they can run."""

    origin = OriginSerializer()
    priorities = JobPrioritySerializer(many=True, help_text="The highest first.")
    oldest = OldJobSerializer(many=True, help_text="Up to ten jobs, the oldest first.")
    verdict = serializers.CharField()
    summary = serializers.CharField()
    unknown = serializers.ListField(
        child=serializers.CharField(), help_text="What is asked for and offered nowhere today."
    )
    queues = QueueFitSerializer(many=True)


class TaskQueuePolicySerializer(StrictSerializer, serializers.ModelSerializer[TaskQueuePolicy]):
    """What operators set for all TaskQueues."""

    cpu_segments_s = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=2**31 - 1),
        max_length=50,
        help_text="Upper ends of the CPU time segments, rising.",
    )

    class Meta:
        model = TaskQueuePolicy
        fields = ["cpu_segments_s", "law", "default_share", "uses_feedback", "max_correction"]
        extra_kwargs = {name: {"required": True} for name in fields}


class SiteField(serializers.SlugRelatedField[Site]):
    """A site by its name."""

    def to_internal_value(self, data: Any) -> Site:
        """The site. No name has a null character, with which PostgreSQL cannot compare."""
        site: Site = super().to_internal_value(str(data).replace("\0", "?"))
        return site


class RunningLimitSerializer(StrictSerializer, serializers.ModelSerializer[RunningLimit]):
    """How many jobs of a kind may run at once, and how soon after one another they may start.

    Without a site, job type or group it is for any of them.
    """

    site = SiteField(
        "name", queryset=Site.objects.all(), allow_null=True, required=False, default=None
    )
    job_type = serializers.CharField(max_length=64, allow_blank=True, required=False, default="")
    owner_group = serializers.CharField(max_length=64, allow_blank=True, required=False, default="")
    maximum = serializers.IntegerField(
        min_value=0, max_value=2**31 - 1, allow_null=True, required=False, default=None
    )
    min_interval_s = serializers.FloatField(
        min_value=0, max_value=86_400, allow_null=True, required=False, default=None
    )
    note = serializers.CharField(max_length=200, allow_blank=True, required=False, default="")
    running = serializers.IntegerField(
        read_only=True, help_text="Jobs of the kind that have a pilot now."
    )

    class Meta:
        model = RunningLimit
        fields = [
            "id", "site", "job_type", "owner_group", "maximum", "min_interval_s", "note",
            "running", "last_match_at",
        ]  # fmt: skip
        read_only_fields = ["last_match_at"]
        # The domain tells what is wrong with the whole, with its field.
        validators: list[Any] = []
