"""Serializers of schedules, of their times, and of what is sent to make one."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from portal.api.dags.shapes import SubmissionSerializer
from portal.api.shapes import OptionsField
from wms.schedules.models import Schedule, ScheduleRun
from wms.schedules.services import MAX_GRACE_S, MAX_KEPT_RUNS, ScheduleTerms
from wms.schedules.states import RunOutcome

_USUAL = ScheduleTerms(name="", cron="")


class TermsSerializer(serializers.Serializer[Any]):
    """The times at which a DAG is submitted."""

    name = serializers.CharField(max_length=128)
    cron = serializers.CharField(
        help_text="Minute, hour, day of the month, month, day of the week, as in 0 6 * * mon."
    )
    time_zone = serializers.CharField(
        required=False, default=_USUAL.time_zone, help_text="Such as Europe/Zurich."
    )
    allows_overlap = serializers.BooleanField(
        required=False, default=False,
        help_text="Submit it also while the DAG before has not ended.",
    )  # fmt: skip
    grace_s = serializers.IntegerField(
        required=False, default=_USUAL.grace_s, min_value=60, max_value=MAX_GRACE_S,
        help_text="It is not submitted later than that; such a time is missed.",
    )  # fmt: skip
    kept_runs = serializers.IntegerField(
        required=False, default=_USUAL.kept_runs, min_value=1, max_value=MAX_KEPT_RUNS,
        help_text="Records of times that are kept.",
    )  # fmt: skip


class ScheduleSubmissionSerializer(TermsSerializer, SubmissionSerializer):
    """The parts of a DAG, and the times at which it is submitted, as multipart/form-data."""


class ScheduleSerializer(serializers.ModelSerializer[Schedule]):
    """A schedule in a list."""

    owner = serializers.CharField(source="owner.username", read_only=True)
    group = serializers.SerializerMethodField(help_text="Its accounting group; empty: none.")
    last_outcome = serializers.ChoiceField(
        RunOutcome.choices, read_only=True, allow_null=True,
        help_text="Of the latest time that has come; null: none has.",
    )  # fmt: skip
    last_dag = serializers.IntegerField(
        source="last_dag_id", read_only=True, allow_null=True, help_text="The DAG of that time."
    )

    class Meta:
        model = Schedule
        fields = [
            "id", "name", "owner", "group", "cron", "time_zone", "state", "state_since",
            "state_reason", "next_at", "last_outcome", "last_dag", "created_at",
        ]  # fmt: skip

    def get_group(self, schedule: Schedule) -> str:
        """Name of the group."""
        return str(schedule.accounting_group) if schedule.accounting_group_id else ""


class ScheduleDetailSerializer(ScheduleSerializer):
    """A schedule with what it submits."""

    options = OptionsField(read_only=True, help_text="Options of each run.")
    files = serializers.SlugRelatedField("path", many=True, read_only=True)

    class Meta(ScheduleSerializer.Meta):
        fields = [
            *ScheduleSerializer.Meta.fields, "allows_overlap", "grace_s", "kept_runs", "dag_files",
            "description_name", "directory", "root_path", "uses_dag_dir", "options", "binding",
            "labels", "priority", "files",
        ]  # fmt: skip


class ScheduleRunSerializer(serializers.ModelSerializer[ScheduleRun]):
    """A time of a schedule that has come."""

    dag = serializers.IntegerField(
        source="dag_id", read_only=True, allow_null=True, help_text="The DAG that was submitted."
    )
    dag_state = serializers.CharField(
        source="dag.state", default=None, read_only=True, allow_null=True
    )

    class Meta:
        model = ScheduleRun
        fields = [
            "id", "planned_at", "outcome", "dag", "dag_state", "reason", "asked_by", "created_at",
        ]  # fmt: skip
