"""Rows of the DAG timeline for single nodes: spans of waiting, scripts and execution."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from wms.dags.models import Dag, Node, NodeEvent
from wms.dags.states import NODE_TERMINAL, NodeState
from wms.jobs.models import Attempt, Job
from wms.jobs.selectors import of_clusters

MOST_ROWS = 200
_EVENTS_PER_NODE = 40
_ATTEMPTS_SHOWN = 2_000

#: Labels of node states in the timeline; waiting for parents is not drawn.
_DOES = {
    NodeState.READY.value: ("ready", "ready, waiting for its turn"),
    NodeState.PRE_RUNNING.value: ("pre_running", "PRE script"),
    NodeState.SUBMITTED.value: ("submitted", "submitted, waiting for a pilot"),
    NodeState.POST_RUNNING.value: ("post_running", "POST script"),
}


@dataclass(frozen=True, slots=True)
class Span:
    """Time span of a node in one state, in seconds of the epoch."""

    state_word: str
    words: str
    start: float
    end: float

    @property
    def seconds(self) -> float:
        """Length in seconds."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Row:
    """A node and its time spans."""

    node: Node
    spans: Sequence[Span]

    @property
    def took(self) -> float:
        """Seconds from the start of the first span to the end of the last."""
        return max(span.end for span in self.spans) - self.spans[0].start


def nodes_drawn(dag: Dag) -> QuerySet[Node]:
    """Queryset of a DAG's nodes with the columns that rows need."""
    return Node.objects.filter(dag=dag).only(
        "name", "state", "state_since", "job_id", "retry_number"
    )


def rows_of_nodes(dag: Dag, nodes: Sequence[Node], *, now: datetime) -> list[Row]:
    """Timeline rows of these nodes of `nodes_drawn`; two queries."""
    steps: dict[int, list[tuple[float, str]]] = defaultdict(list)
    events = NodeEvent.objects.filter(dag=dag, node__in=nodes).order_by("pk")
    for node_id, at, state in events.values_list("node_id", "created_at", "to_state"):
        if len(steps[node_id]) < _EVENTS_PER_NODE:
            steps[node_id].append((at.timestamp(), state))
    runs = _runs(nodes, now)
    return [
        Row(node, sorted(
            [*_spans(steps[node.pk], node, now), *runs.get(node.job_id or 0, [])],
            key=lambda span: (span.start, span.state_word == "running"),
        ))
        for node in nodes
    ]  # fmt: skip


def _spans(steps: Sequence[tuple[float, str]], node: Node, now: datetime) -> list[Span]:
    made = []
    has_ended = node.state in NODE_TERMINAL
    last = node.state_since.timestamp() if has_ended else now.timestamp()
    for place, (start, state) in enumerate(steps):
        end = steps[place + 1][0] if place + 1 < len(steps) else last
        if state in _DOES and end > start:
            state_word, words = _DOES[state]
            made.append(Span(state_word, words, start, end))
    return made


def _runs(nodes: Collection[Node], now: datetime) -> dict[int, list[Span]]:
    """Execution spans of these nodes' jobs in pilots, by the first job of the cluster."""
    jobs = {node.job_id for node in nodes if node.job_id}
    # The jobs first, by their indexes: a condition on both tables would read the whole of both.
    chosen = Job.objects.filter(of_clusters(jobs)).order_by()
    attempts = Attempt.objects.filter(
        job_id__in=chosen.values("pk"), started_at__isnull=False
    ).order_by("pk")
    rows = attempts.values_list("job_id", "job__cluster_id", "started_at", "ended_at", "outcome")
    made: dict[int, list[Span]] = defaultdict(list)
    for job, cluster, started, ended, outcome in rows[:_ATTEMPTS_SHOWN]:
        state_word = {"": "running", "done": "done"}.get(outcome, "failed")
        words = {"": "running", "done": "ran"}.get(outcome, f"ran, {outcome.replace('_', ' ')}")
        end = (ended or now).timestamp()
        made[cluster or job].append(Span(state_word, words, started.timestamp(), end))
    return made
