"""Serializers of TaskQueues (jobs, priority, where they can run) and of the TaskQueue policy."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from portal.api.explain.shapes import QueueFitSerializer
from portal.api.shapes import NeedsField, StrictSerializer
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
    """Origin of the priority."""

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
    """Policy that operators set for all TaskQueues."""

    cpu_segments_s = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=2**31 - 1),
        max_length=50,
        help_text="Upper ends of the CPU time segments, rising.",
    )

    class Meta:
        model = TaskQueuePolicy
        fields = ["cpu_segments_s", "law", "default_share", "uses_feedback", "max_correction"]
        extra_kwargs = {name: {"required": True} for name in fields}
