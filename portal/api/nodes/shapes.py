"""Serializers of DAG nodes, their work, what they wait for, events, script runs, action results."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from portal.api.shapes import (
    CAUSED_EVENT_FIELDS,
    EventSerializer,
    ObjectField,
    TextsByNameField,
)
from wms.dags.joins.selectors import conditions_before, join_of
from wms.dags.models import Condition, Join, Node, NodeEvent, NodeWork, ScriptRun


class NodeEventSerializer(EventSerializer):
    """One change of a node."""

    node = serializers.CharField(source="node.name", read_only=True)

    class Meta:
        model = NodeEvent
        fields = ["node", *CAUSED_EVENT_FIELDS]


class NodeSerializer(serializers.ModelSerializer[Node]):
    """A node of a DAG."""

    submit_description = serializers.CharField(
        source="submit_description.name", default=None, read_only=True, allow_null=True
    )
    variables = TextsByNameField(read_only=True)
    parents = serializers.SerializerMethodField(help_text="Names of the nodes that it waits for.")
    job = serializers.IntegerField(
        source="job_id", read_only=True, allow_null=True,
        help_text="The first job of its latest cluster.",
    )  # fmt: skip

    class Meta:
        model = Node
        fields = [
            "id", "name", "kind", "state", "state_since", "state_reason", "state_cause",
            "submit_description",
            "directory", "variables", "parents", "unfinished_parents", "priority", "category",
            "retry_number", "max_retries", "job",
        ]  # fmt: skip

    def get_parents(self, node: Node) -> list[str]:
        """Read the prefetched edges."""
        return [edge.parent.name for edge in node.parent_edges.all()]


class NodeRefSerializer(serializers.Serializer[Any]):
    """A node by name."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    state = serializers.CharField()


class ObstacleSerializer(serializers.Serializer[Any]):
    """One thing that a node waits for."""

    kind = serializers.CharField(
        help_text="site, dag, parents, provisioner, limit, category, turn, gate, script, "
        "script slot, jobs, request, inner dag, failed parents, join, skipped, kind."
    )
    message = serializers.CharField()
    nodes = NodeRefSerializer(many=True)
    dag = serializers.IntegerField(allow_null=True)
    job = serializers.IntegerField(allow_null=True)
    request = serializers.IntegerField(allow_null=True)


class NodeWorkSerializer(serializers.ModelSerializer[NodeWork]):
    """Work of a node beyond one job."""

    inner_dag = serializers.IntegerField(source="inner_dag_id", read_only=True, allow_null=True)
    request = serializers.IntegerField(source="request_id", read_only=True, allow_null=True)

    class Meta:
        model = NodeWork
        fields = [
            "pre_code", "inner_dag", "request", "job_count", "jobs_left", "jobs_failed",
            "failure_code", "failure_reason", "hold_count", "is_provisioned", "is_fresh",
            "waits_since", "is_tolerated",
        ]  # fmt: skip


class ConditionSerializer(serializers.ModelSerializer[Condition]):
    """The condition of an arc to a node."""

    parent = serializers.CharField(source="parent.name", read_only=True)

    class Meta:
        model = Condition
        fields = ["parent", "expression", "holds", "reason"]


class JoinSerializer(serializers.ModelSerializer[Join]):
    """Join of a node: how many of its arcs have to hold, and what is known of them."""

    class Meta:
        model = Join
        fields = ["needed_count", "arc_count", "held_count", "ruled_out_count", "lost_count"]


class NodeDetailSerializer(NodeSerializer):
    """A node with what modifies it, and what it waits for."""

    features = ObjectField(read_only=True, allow_null=True, help_text="Scripts and other rules.")
    work = NodeWorkSerializer(
        read_only=True, allow_null=True, default=None,
        help_text="Beyond one job: scripts, lists of jobs, inner DAGs; null where it has none.",
    )  # fmt: skip
    waits_for = serializers.SerializerMethodField()
    join = serializers.SerializerMethodField(
        help_text="Null where the node simply waits for its parents."
    )
    conditions = serializers.SerializerMethodField(help_text="Of arcs to the node.")

    class Meta(NodeSerializer.Meta):
        fields = [
            *NodeSerializer.Meta.fields,
            "features",
            "work",
            "waits_for",
            "join",
            "conditions",
        ]

    @extend_schema_field(ObstacleSerializer(many=True))
    def get_waits_for(self, node: Node) -> list[dict[str, Any]]:
        """Fields that the view has computed."""
        obstacles: list[dict[str, Any]] = ObstacleSerializer(
            self.context["obstacles"], many=True
        ).data
        return obstacles

    @extend_schema_field(JoinSerializer(allow_null=True))
    def get_join(self, node: Node) -> dict[str, Any] | None:
        """The join of a node that has one; no query in a DAG without."""
        join = join_of(node)
        return None if join is None else JoinSerializer(join).data

    @extend_schema_field(ConditionSerializer(many=True))
    def get_conditions(self, node: Node) -> list[dict[str, Any]]:
        """At most 100; no query in a DAG without."""
        conditions: list[dict[str, Any]] = ConditionSerializer(
            conditions_before(node), many=True
        ).data
        return conditions


class ScriptRunSerializer(serializers.ModelSerializer[ScriptRun]):
    """One run of a script of a node."""

    node = serializers.IntegerField(source="node_id", read_only=True)
    node_name = serializers.CharField(source="node.name", read_only=True)
    output_bytes = serializers.IntegerField(
        source="output.size_bytes", default=None, read_only=True, allow_null=True,
        help_text="Null when it has printed nothing, or has not ended.",
    )  # fmt: skip

    class Meta:
        model = ScriptRun
        fields = [
            "id", "node", "node_name", "kind", "retry_number", "run_number", "executable",
            "arguments", "directory", "state", "asked_at", "due_at", "started_at", "ended_at",
            "exit_code", "failure", "output_bytes",
        ]  # fmt: skip


class ChangedNodesSerializer(serializers.Serializer[Any]):
    """Nodes that were changed."""

    changed = serializers.IntegerField(help_text="How many nodes were changed.")
    skipped = serializers.IntegerField(help_text="How many were left: they are under way.")
    state = serializers.CharField(help_text="Of the DAG.")
