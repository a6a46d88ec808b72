"""Serializers of DAGs: submission and check, detail, events, files, rescues, exports.

Also of limits, the reasons for which ready nodes are kept back, and stays at sites.
"""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from matching.task_queues.weighted_draws import MAX_JOB_PRIORITY
from portal.api.shapes import (
    CAUSED_EVENT_FIELDS,
    AmountsByNameField,
    EventSerializer,
    FindingSerializer,
    InputsSerializer,
    NumbersByNameField,
    ObjectField,
    OptionsField,
    ProblemSerializer,
    TextsByNameField,
)
from wms.dags.engine.settling.tolerance import tolerated_count
from wms.dags.models import Dag, DagEvent, MatchRecord, Rescue
from wms.dags.reading.accepting_sites import accepting_sites
from wms.dags.reading.input_sets import inputs_of_dag
from wms.dags.states import Binding
from wms.jobs.models import WorkspaceFile


class SubmissionSerializer(serializers.Serializer[Any]):
    """The parts of a submission, as multipart/form-data. Names may have directories."""

    dag = serializers.ListField(
        child=serializers.FileField(),
        help_text="The DAG file; several run as one DAG. As a text: the path of one in `archive`.",
    )
    description = serializers.FileField(
        required=False, help_text="A submit description for the DAG's own ad: what site it wants."
    )
    file = serializers.ListField(
        child=serializers.FileField(),
        required=False,
        help_text="Every other file: submit descriptions, programs, inputs. Repeat the part.",
    )
    archive = serializers.FileField(
        required=False, help_text="Many files as one: zip, tar, or tar packed by gzip."
    )
    uploads = serializers.CharField(
        required=False,
        help_text="Files that were uploaded before: a JSON object of their names and the numbers "
        "of complete uploads.",
    )
    directory = serializers.CharField(
        required=False,
        help_text="The directory, in what is sent, from which names in DAG files are looked up: "
        "where condor_submit_dag would be called. By default the top.",
    )
    root = serializers.CharField(
        required=False,
        help_text="The absolute path that the top of what is sent has where it comes from: "
        "absolute names in DAG files that begin with it are names in what is sent.",
    )
    use_dag_dir = serializers.BooleanField(
        required=False,
        help_text="Names in each DAG file are looked up from its own folder, as by -UseDagDir.",
    )
    options = serializers.CharField(
        required=False, help_text="Options of the run, as a JSON object: max_jobs, max_idle, ..."
    )
    resume = serializers.CharField(
        required=False,
        default="newest",
        help_text="What it begins from: newest (rescue), afresh, or the number of a rescue.",
    )
    save_point = serializers.CharField(required=False, help_text="Or the name of a save point.")
    binding = serializers.ChoiceField(
        Binding.choices, required=False,
        help_text="What is bound to a site: the DAG (site), or each job when a pilot draws it "
        "(job). It wins over the description.",
    )  # fmt: skip
    labels = serializers.CharField(
        required=False,
        help_text="Words to find it by, with commas, such as campaign=mc27; more than those of the "
        "description.",
    )
    priority = serializers.IntegerField(
        required=False, min_value=0, max_value=MAX_JOB_PRIORITY,
        help_text="Among the DAGs of its owner, and of all of its jobs; usual is 1. It wins over "
        "the description.",
    )  # fmt: skip


class StatisticsSerializer(serializers.Serializer[Any]):
    """The shape of a DAG. FINAL and its like do not count."""

    nodes = serializers.IntegerField()
    arcs = serializers.IntegerField()
    height = serializers.IntegerField(help_text="Nodes on the longest way through it.")
    width = serializers.IntegerField(help_text="Nodes of the broadest level.")
    widths = serializers.ListField(
        child=serializers.IntegerField(), help_text="Of the first 1,000 levels."
    )
    cycle = serializers.ListField(
        child=serializers.CharField(),
        help_text="Nodes along a cycle, the first one once more at the end; empty without one.",
    )


class CheckSerializer(serializers.Serializer[Any]):
    """Findings of a check."""

    is_faultless = serializers.BooleanField(help_text="It would be accepted.")
    findings = FindingSerializer(many=True, help_text="Faults.")
    warnings = FindingSerializer(many=True, help_text="What is accepted but may not be meant.")
    statistics = StatisticsSerializer()


class FaultyDagSerializer(ProblemSerializer):
    """Why a DAG was refused, and what else was found in it."""

    warnings = FindingSerializer(many=True, required=False)
    statistics = StatisticsSerializer(required=False)


class DagEventSerializer(EventSerializer):
    """One change of a DAG as a whole."""

    class Meta:
        model = DagEvent
        fields = CAUSED_EVENT_FIELDS


class NodeCountsSerializer(serializers.Serializer[Dag]):
    """A DAG's progress in nodes."""

    total = serializers.IntegerField(source="node_count")
    done = serializers.IntegerField(source="done_count")
    submitted = serializers.IntegerField(source="submitted_count")
    ready = serializers.IntegerField(source="ready_count")
    failed = serializers.IntegerField(source="failed_count")
    futile = serializers.IntegerField(source="futile_count")
    skipped = serializers.IntegerField(source="skipped_count")


class DagSerializer(serializers.ModelSerializer[Dag]):
    """A DAG in a list."""

    owner = serializers.CharField(source="owner.username", read_only=True)
    status = serializers.IntegerField(
        read_only=True,
        help_text="DAGMan's code: 0 OK, 1 engine error, 2 node failed, 3 aborted, 4 removed, "
        "5 cycle, 6 halted.",
    )
    site = serializers.CharField(source="site.name", default=None, read_only=True, allow_null=True)
    nodes = NodeCountsSerializer(source="*", read_only=True)
    root = serializers.IntegerField(
        source="root_id", read_only=True, allow_null=True,
        help_text="The outermost DAG around it; null if nothing is.",
    )  # fmt: skip

    class Meta:
        model = Dag
        fields = [
            "id", "name", "owner", "state", "state_since", "state_reason", "state_cause", "status",
            "exit_code",
            "site", "binding", "unmatched_reason", "nodes", "root", "created_at", "ended_at",
            "labels", "priority",
        ]  # fmt: skip


class DagInputsSerializer(InputsSerializer):
    """Input data that nodes of a DAG want near, or from anywhere."""

    is_anywhere = serializers.BooleanField(
        help_text="They may be fetched from afar, and make the DAG prefer sites."
    )


class DagDetailSerializer(DagSerializer):
    """A DAG with its ad, its match, and the DAGs and runs around it."""

    ad_attributes = TextsByNameField(read_only=True)
    match_attributes = ObjectField(read_only=True)
    environment = TextsByNameField(read_only=True)
    accounting_group = serializers.CharField(
        source="accounting_group.name", default=None, read_only=True, allow_null=True
    )
    concurrency_limits = AmountsByNameField(read_only=True)
    options = OptionsField(read_only=True, help_text="What differs from the defaults.")
    category_limits = NumbersByNameField(read_only=True)
    success_rule = serializers.CharField(
        read_only=True, allow_blank=True, help_text="The expression of SUCCESS WHEN."
    )
    tolerated = serializers.SerializerMethodField(
        help_text="Failed nodes that TOLERANCE lets pass: what waits for them goes on."
    )
    outer = serializers.IntegerField(
        source="parent_node.dag_id", default=None, read_only=True, allow_null=True,
        help_text="The DAG whose node runs this one.",
    )  # fmt: skip
    outer_node = serializers.IntegerField(
        source="parent_node_id", read_only=True, allow_null=True, help_text="That node."
    )
    previous_run = serializers.IntegerField(
        source="previous_run_id", read_only=True, allow_null=True
    )
    is_ending = serializers.SerializerMethodField(help_text="Only its FINAL node runs any more.")
    accepting_sites = serializers.SerializerMethodField(
        help_text="Where pilots draw its jobs, if each is bound by its claim; else null."
    )
    inputs = serializers.SerializerMethodField(
        help_text="Input data of its nodes, as far as they were known when it was submitted. They "
        "are not followed any more, and are left out, at the latest an hour after its end."
    )

    class Meta(DagSerializer.Meta):
        fields = [
            *DagSerializer.Meta.fields, "matched_at", "ad_attributes", "match_attributes",
            "environment", "accounting_group", "concurrency_limits", "rematch_expression",
            "rematch_count", "dag_files", "directory", "root_path", "uses_dag_dir", "options",
            "category_limits", "success_rule", "tolerated", "outer", "outer_node",
            "previous_run", "rescue_number", "is_followed", "is_ending", "accepting_sites",
            "inputs",
        ]  # fmt: skip

    def get_tolerated(self, dag: Dag) -> int:
        """Number of failed nodes that are tolerated."""
        return tolerated_count(dag)

    def get_is_ending(self, dag: Dag) -> bool:
        """Whether its end is known."""
        return dag.is_ending

    @extend_schema_field({"type": "array", "items": {"type": "string"}, "nullable": True})
    def get_accepting_sites(self, dag: Dag) -> list[str] | None:
        """Names of the sites; no query for a DAG that has one."""
        return accepting_sites(dag)

    @extend_schema_field(DagInputsSerializer(many=True))
    def get_inputs(self, dag: Dag) -> Any:
        """Inputs that must be near, and those from afar; no query for a DAG without any."""
        return DagInputsSerializer(inputs_of_dag(dag), many=True).data


class WorkspaceFileSerializer(serializers.ModelSerializer[WorkspaceFile]):
    """A file of a DAG: submitted, or sent back by a job."""

    size_bytes = serializers.IntegerField(source="blob.size_bytes", read_only=True)
    sha256 = serializers.CharField(source="blob_id", read_only=True)
    job = serializers.IntegerField(
        source="attempt.job_id", default=None, read_only=True, allow_null=True,
        help_text="The job that made it; null for other files.",
    )  # fmt: skip

    class Meta:
        model = WorkspaceFile
        fields = ["path", "size_bytes", "sha256", "job", "modified_at"]


class RescueSerializer(serializers.ModelSerializer[Rescue]):
    """A rescue or save point that Pilotage wrote."""

    dag = serializers.IntegerField(source="dag_id", allow_null=True, help_text="Who wrote it.")

    class Meta:
        model = Rescue
        fields = ["id", "kind", "number", "path", "dag", "done_count", "failed_count", "created_at"]


class OptionSerializer(serializers.Serializer[Any]):
    """One option of a run."""

    name = serializers.CharField()
    value = serializers.JSONField(help_text="A number, or true or false.")
    default = serializers.JSONField()
    is_live = serializers.BooleanField(help_text="It can be changed while the run goes on.")


class CategorySerializer(serializers.Serializer[Any]):
    """A category of nodes."""

    name = serializers.CharField()
    limit = serializers.IntegerField(allow_null=True)
    submitted = serializers.IntegerField()
    tolerance = serializers.CharField(
        allow_blank=True, help_text="As the DAG file gives it: a number of nodes, or a percentage."
    )
    tolerance_left = serializers.IntegerField(
        allow_null=True, help_text="Further failures that are tolerated; null without a tolerance."
    )
    tolerated = serializers.IntegerField(help_text="Failed nodes that are tolerated.")


class RoomSerializer(serializers.Serializer[Any]):
    """Limits that keep ready nodes back; empty without one."""

    reason = serializers.CharField(allow_blank=True)
    categories = TextsByNameField(help_text="Full categories, and why.")


class LimitsSerializer(serializers.Serializer[Any]):
    """The limits that a DAG is under."""

    options = OptionSerializer(many=True)
    categories = CategorySerializer(many=True)
    shared = serializers.ListField(
        child=serializers.IntegerField(), help_text="Ids of shared limits that count for it."
    )
    room = RoomSerializer()


class ExportSerializer(serializers.Serializer[Any]):
    """A file that can be made of a DAG now."""

    kind = serializers.CharField()
    title = serializers.CharField()
    name = serializers.CharField()
    content_type = serializers.CharField()


class MatchRecordSerializer(serializers.ModelSerializer[MatchRecord]):
    """One stay of a DAG at a site."""

    site = serializers.CharField(source="site.name", read_only=True)

    class Meta:
        model = MatchRecord
        fields = [
            "id", "site", "matched_at", "dag_rank", "site_rank", "ended_at", "end", "reason",
            "avoided_until",
        ]  # fmt: skip
