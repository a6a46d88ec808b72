"""Serializers of clusters: description, submission, check, progress, faulty rows and events."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.urls import reverse
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from portal.api.shapes import (
    CAUSED_EVENT_FIELDS,
    EventSerializer,
    FindingSerializer,
    InstantField,
    NumbersByNameField,
    ObjectField,
    TextsByNameField,
)
from wms.jobs.clusters.selectors import failure_causes, progress_of
from wms.jobs.clusters.submit import submission_warnings
from wms.jobs.models import Cluster, ClusterEvent, ClusterFault


class ParametersSerializer(serializers.Serializer[Any]):
    """A table of which each row makes jobs: its rows, a file with them, or names of files."""

    columns = serializers.ListField(child=serializers.CharField(), required=False)
    rows = serializers.ListField(
        required=False, help_text="Lists of values, or objects with one for each column."
    )
    file = serializers.CharField(required=False, help_text="Its name among the files.")
    matching = serializers.ListField(
        child=serializers.CharField(), required=False, help_text="Patterns of names of files."
    )
    slice = serializers.CharField(required=False, help_text="As in Python: [10:20] or [::2].")


def _text(words: str = "") -> serializers.CharField:
    return serializers.CharField(required=False, help_text=words)


@extend_schema_field({"oneOf": [{"type": "integer"}, {"type": "string"}]})
class NumberOrMacroField(serializers.JSONField):
    """A whole number, or a text with a macro that gives one."""


def _number(words: str = "") -> NumberOrMacroField:
    return NumberOrMacroField(required=False, help_text=words)


def _limit(words: str) -> serializers.IntegerField:
    return serializers.IntegerField(required=False, help_text=words)


def _names(words: str = "") -> serializers.ListField:
    return serializers.ListField(child=serializers.CharField(), required=False, help_text=words)


class DescriptionSerializer(serializers.Serializer[Any]):
    """Description of jobs in JSON. Texts may have macros: $(Process), $(Cluster), columns."""

    executable = _text("An absolute path on worker nodes, or the name of a file that is sent.")
    shell = _text("Instead of it: a command line.")
    arguments = _text("As one text, or as a list of words.")
    environment = serializers.DictField(child=serializers.CharField(), required=False)
    inputs = _names("Names of files that are sent.")
    outputs = _names("Files that are kept.")
    stdin = _text()
    stdout = _text()
    stderr = _text()
    directory = _text()
    container_image = _text()
    cores = _number()
    max_cores = _number()
    memory_mb = _number()
    gpus = _number()
    disk_mb = _number()
    cpu_time_s = _number()
    wall_time_s = _number()
    requirements = _text("A ClassAd expression about the worker node.")
    sites = _names("Where alone they may run.")
    banned_sites = _names("Where they may not run.")
    queues = _names()
    platforms = _names()
    pilot_types = _names()
    submit_pools = _names()
    middlewares = _names()
    tags = _names()
    setup = _text()
    job_type = _text()
    priority = _number("From 0 to 10; usual is 1.")
    retries = _number("So often a payload that failed is run again.")
    attributes = ObjectField(required=False, help_text="Further attributes of the jobs' ads.")
    commands = TextsByNameField(
        required=False, help_text="Further commands of submit language, by their names."
    )
    queue = _limit("So many jobs, or so many for each row.")
    parameters = ParametersSerializer(required=False)
    name = _text()
    labels = _names("Words to find it by.")
    group = _text("Accounting group; yours by default.")
    deadline = InstantField(required=False, help_text="It is removed then.")
    max_idle = _limit("No further jobs are made while so many wait.")
    max_materialize = _limit("No further jobs are made while so many have not ended.")
    eager = serializers.BooleanField(
        required=False, help_text="Make all jobs at once, 100,000 at most."
    )


class JobSubmissionSerializer(serializers.Serializer[Any]):
    """The parts of a submission with files, as multipart/form-data. Names may have directories."""

    description = serializers.FileField(
        help_text="In submit language, or in JSON; as a file, or as a text."
    )
    file = serializers.ListField(
        child=serializers.FileField(), required=False,
        help_text="Programs, inputs and tables of parameters. Repeat the part.",
    )  # fmt: skip
    uploads = serializers.CharField(
        required=False,
        help_text="Files that were uploaded before: a JSON object of their names and the numbers "
        "of complete uploads.",
    )
    options = serializers.CharField(
        required=False,
        help_text="As a JSON object: name, labels, group, deadline, max_idle, max_materialize, "
        "eager.",
    )


class ClusterSerializer(serializers.ModelSerializer[Cluster]):
    """A cluster in a list."""

    owner = serializers.CharField(source="owner.username", read_only=True)
    group = serializers.SerializerMethodField(help_text="Its accounting group; empty: none.")
    made = serializers.IntegerField(
        source="next_process", read_only=True, help_text="Rows gone through so far."
    )
    done = serializers.IntegerField(source="done_count", read_only=True)
    failed = serializers.IntegerField(source="failed_count", read_only=True)
    killed = serializers.IntegerField(source="killed_count", read_only=True)
    faulty = serializers.IntegerField(
        source="faulty_count", read_only=True, help_text="Rows that no job could be made of."
    )

    class Meta:
        model = Cluster
        fields = [
            "id", "name", "owner", "group", "labels", "state", "state_since", "state_reason",
            "state_cause", "size", "made", "done", "failed", "killed", "faulty", "created_at",
        ]  # fmt: skip

    def get_group(self, cluster: Cluster) -> str:
        """Name of the group."""
        return str(cluster.accounting_group) if cluster.accounting_group_id else ""


class ProgressSerializer(serializers.Serializer[Any]):
    """Progress of a cluster: rows by state; the numbers add up to its size."""

    size = serializers.IntegerField()
    not_yet_made = serializers.IntegerField()
    never_made = serializers.IntegerField(help_text="Left when it was removed.")
    faulty = serializers.IntegerField()
    done = serializers.IntegerField()
    failed = serializers.IntegerField()
    killed = serializers.IntegerField()
    live = NumbersByNameField(help_text="Jobs that have not ended, by state.")
    ending = serializers.IntegerField(help_text="Jobs that have ended and are counted soon.")


class ClusterDetailSerializer(ClusterSerializer):
    """A cluster with its progress, limits and changes."""

    progress = serializers.SerializerMethodField()
    failure_causes = serializers.SerializerMethodField(
        help_text="How many of the failed jobs, of the first 10,000, have which cause."
    )
    overrides = ObjectField(read_only=True, help_text="What was changed for all of its jobs.")
    previous = serializers.IntegerField(
        source="previous_id", read_only=True, allow_null=True,
        help_text="The cluster whose failed jobs it runs again.",
    )  # fmt: skip
    url = serializers.SerializerMethodField(help_text="Its address in this API.")
    page = serializers.SerializerMethodField(help_text="The address of its page.")

    class Meta(ClusterSerializer.Meta):
        fields = [
            *ClusterSerializer.Meta.fields, "progress", "failure_causes", "language", "max_idle",
            "max_materialize", "deadline", "delay_reason", "overrides", "previous", "url", "page",
        ]  # fmt: skip

    @extend_schema_field(ProgressSerializer)
    def get_progress(self, cluster: Cluster) -> dict[str, Any]:
        """Progress of the cluster, by state of its rows."""
        return asdict(progress_of(cluster))

    @extend_schema_field({"type": "object", "additionalProperties": {"type": "integer"}})
    def get_failure_causes(self, cluster: Cluster) -> dict[str, int]:
        """Causes of failures by how often."""
        return failure_causes(cluster)

    def get_url(self, cluster: Cluster) -> str:
        """Address for programs."""
        return reverse("api:cluster", args=[cluster.pk])

    def get_page(self, cluster: Cluster) -> str:
        """Address for people."""
        return reverse("web:cluster", args=[cluster.pk])


class SubmittedClusterSerializer(ClusterDetailSerializer):
    """A cluster that was accepted, with what may not have been meant."""

    warnings = serializers.SerializerMethodField(
        help_text="What is accepted but may not be meant, such as needs that no queue meets."
    )

    class Meta(ClusterDetailSerializer.Meta):
        fields = [*ClusterDetailSerializer.Meta.fields, "warnings"]

    @extend_schema_field(FindingSerializer(many=True))
    def get_warnings(self, cluster: Cluster) -> list[dict[str, Any]]:
        """Warnings of the submission, also when it is repeated."""
        return [asdict(warning) for warning in submission_warnings(cluster)]


class JobsCheckSerializer(serializers.Serializer[Any]):
    """Result of a check."""

    is_faultless = serializers.BooleanField()
    size = serializers.IntegerField(help_text="How many jobs it makes; 0 with faults.")
    findings = FindingSerializer(many=True)
    warnings = FindingSerializer(many=True)


class ClusterEventSerializer(EventSerializer):
    """One change of a cluster."""

    class Meta:
        model = ClusterEvent
        fields = CAUSED_EVENT_FIELDS


class ClusterFaultSerializer(serializers.ModelSerializer[ClusterFault]):
    """A row that no job could be made of."""

    class Meta:
        model = ClusterFault
        fields = ["process", "reason"]
