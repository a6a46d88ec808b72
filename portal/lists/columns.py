"""Columns of every list for its page and export: label and value of each.

Each value is plain: a text, a number, a time, or None. Also the lines made of several rows that
some of them read: a job with its DAG and attempt, a placement request with its node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from wms.dags.models import Dag, Node
from wms.dags.reading.dag_jobs import dag_id_of
from wms.jobs.clusters.states import TOPIC as CLUSTER_TOPIC
from wms.jobs.models import Job
from wms.placement.models import PlacementRequest


@dataclass(frozen=True, slots=True)
class Column:
    """A column under its name in addresses. `fields` are its values in an export, by their names.

    One that `is_fixed` is always shown; one that is not `is_usual` only when somebody chose it.
    """

    name: str
    label: str
    fields: Mapping[str, Callable[[Any], Any]]
    is_fixed: bool = False
    is_usual: bool = True
    style: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class LatestAttempt:
    """Host, pilot and end of a job's latest attempt."""

    site_name: str
    host: str
    pilot_id: int
    exit_code: int | None
    signal: int | None


@dataclass(frozen=True, slots=True)
class JobLine:
    """A job with its DAG and its latest attempt."""

    job: Job
    node: Node | None
    attempt: LatestAttempt | None

    @property
    def dag_id(self) -> int | None:
        """The DAG that it was made for; None for a single job."""
        return dag_id_of(self.job) if self.dag_name is not None else None

    @property
    def dag_name(self) -> str | None:
        """The name of that DAG."""
        return getattr(self.job, "dag_name", None)

    @property
    def cluster_id(self) -> int | None:
        """The cluster that it was submitted with; None for a job of a DAG or a single one."""
        return self.job.cluster_id if self.job.topic == CLUSTER_TOPIC else None

    @property
    def process(self) -> int | None:
        """Its number there."""
        return self.job.process if self.cluster_id is not None else None


@dataclass(frozen=True, slots=True)
class RequestLine:
    """A placement request with its node."""

    request: PlacementRequest
    node: Node | None


def _one(path: str, name: str = "") -> dict[str, Callable[[Any], Any]]:
    return {name or path.replace(".", "_"): attrgetter(path)}


def _from(part: str, **paths: str) -> dict[str, Callable[[Any], Any]]:
    """Values of a part of the line that may be missing."""

    def reader(path: str) -> Callable[[Any], Any]:
        def read(line: Any) -> Any:
            found = getattr(line, part)
            return None if found is None else attrgetter(path)(found)

        return read

    return {name: reader(path) for name, path in paths.items()}


def _why(dag: Dag) -> str:
    return dag.unmatched_reason if dag.state == "idle" else dag.state_reason


DAG_COLUMNS: Sequence[Column] = (
    Column("dag", "DAG", {**_one("pk", "id"), **_one("name")}, is_fixed=True),
    Column("state", "State", _one("state")),
    Column(
        "progress",
        "Progress",
        {
            **_one("node_count", "nodes"),
            **_one("done_count", "done"),
            **_one("submitted_count", "submitted"),
            **_one("ready_count", "ready"),
            **_one("failed_count", "failed"),
            **_one("futile_count", "futile"),
            **_one("skipped_count", "skipped"),
        },
        style="wide",
    ),
    Column("owner", "Owner", _one("owner.username", "owner")),
    Column("site", "Site", _from("site", site="name")),
    Column("labels", "Labels", {"labels": lambda dag: " ".join(dag.labels)}, is_usual=False),
    Column("priority", "Priority", _one("priority"), is_usual=False, style="num"),
    Column("since", "In its state since", _one("state_since"), is_usual=False),
    Column("created", "Submitted", _one("created_at", "submitted_at")),
    Column("ended", "Ended", _one("ended_at"), is_usual=False),
    Column("reason", "Reason", {"reason": _why}),
)
JOB_COLUMNS: Sequence[Column] = (
    Column("job", "Job", {**_one("job.pk", "id"), **_one("job.name", "name")}, is_fixed=True),
    Column("state", "State", _one("job.state", "state")),
    Column("since", "Since", _one("job.state_since", "state_since")),
    Column("dag", "DAG", {**_one("dag_id"), **_one("dag_name")}),
    Column("node", "Node", _from("node", node="name"), is_usual=False),
    Column(
        "cluster",
        "Cluster",
        {**_one("cluster_id", "cluster_id"), **_one("process", "process")},
        is_usual=False,
    ),
    Column("owner", "Owner", _one("job.owner.username", "owner")),
    Column(
        "attempt",
        "Attempt",
        {**_one("job.attempt_number", "attempt"), **_one("job.max_attempts", "max_attempts")},
    ),
    Column("priority", "Priority", _one("job.priority", "priority"), is_usual=False, style="num"),
    Column("where", "Where", _from("attempt", site="site_name", host="host", pilot_id="pilot_id")),
    Column(
        "exit",
        "Exit",
        _from("attempt", exit_code="exit_code", signal="signal"),
        is_usual=False,
        hint="Exit code or signal of the latest attempt.",
    ),
    Column("created", "Made", _one("job.created_at", "created_at"), is_usual=False),
    Column("reason", "Reason", _one("job.state_reason", "reason")),
)
CLUSTER_COLUMNS: Sequence[Column] = (
    Column("cluster", "Cluster", {**_one("pk", "id"), **_one("name")}, is_fixed=True),
    Column("state", "State", _one("state")),
    Column(
        "progress",
        "Progress",
        {
            **_one("size", "jobs"),
            **_one("next_process", "made"),
            **_one("done_count", "done"),
            **_one("failed_count", "failed"),
            **_one("killed_count", "killed"),
            **_one("faulty_count", "faulty"),
        },
        style="wide",
    ),
    Column("owner", "Owner", _one("owner.username", "owner")),
    Column("group", "Group", _from("accounting_group", group="name"), is_usual=False),
    Column("labels", "Labels", {"labels": lambda cluster: " ".join(cluster.labels)}),
    Column("since", "In its state since", _one("state_since"), is_usual=False),
    Column("created", "Submitted", _one("created_at", "submitted_at")),
    Column("reason", "Reason", _one("state_reason", "reason")),
)
SCHEDULE_COLUMNS: Sequence[Column] = (
    Column("schedule", "Schedule", {**_one("pk", "id"), **_one("name")}, is_fixed=True),
    Column("state", "State", _one("state")),
    Column("times", "Times", {**_one("cron"), **_one("time_zone")}),
    Column("next", "Next", _one("next_at")),
    Column("outcome", "Latest", {**_one("last_outcome"), **_one("last_dag_id", "last_dag")}),
    Column("owner", "Owner", _one("owner.username", "owner")),
    Column("group", "Group", _from("accounting_group", group="name"), is_usual=False),
    Column("labels", "Labels", {"labels": lambda schedule: " ".join(schedule.labels)}),
    Column("priority", "Priority", _one("priority"), is_usual=False, style="num"),
    Column(
        "overlap",
        "Overlap",
        _one("allows_overlap"),
        is_usual=False,
        hint="Submitted also while the DAG before has not ended",
    ),
    Column("since", "In its state since", _one("state_since"), is_usual=False),
    Column("created", "Made", _one("created_at"), is_usual=False),
    Column("reason", "Reason", _one("state_reason", "reason")),
)
PILOT_COLUMNS: Sequence[Column] = (
    Column("pilot", "Pilot", {**_one("pk", "id"), **_one("uuid")}, is_fixed=True),
    Column("state", "State", _one("state")),
    Column("since", "Since", _one("state_since")),
    Column(
        "queue",
        "Site and queue",
        {**_one("queue.site.name", "site"), **_one("queue.name", "queue")},
    ),
    Column("host", "Node", {"host": lambda pilot: pilot.node.get("hostname")}),
    Column("batch", "Batch id", _one("native_id", "batch_id"), is_usual=False),
    Column("heartbeat", "Last heartbeat", _one("heartbeat_at")),
    Column("created", "Made", _one("created_at"), is_usual=False),
    Column("ended", "Ended", _one("ended_at"), is_usual=False),
    Column("reason", "Reason", _one("state_reason", "reason")),
)
PLACEMENT_COLUMNS: Sequence[Column] = (
    Column("request", "Request", _one("request.pk", "id"), is_fixed=True),
    Column("state", "State", _one("request.state", "state")),
    Column(
        "addresses",
        "From and to",
        {
            **_one("request.source_url", "source"),
            **_one("request.destination_url", "destination"),
        },
    ),
    Column(
        "attempt",
        "Attempt",
        {
            **_one("request.attempt_number", "attempt"),
            **_one("request.max_attempts", "max_attempts"),
        },
    ),
    Column("owner", "Owner", _one("request.owner.username", "owner")),
    Column("node", "Node", _from("node", dag_id="dag_id", node="name")),
    Column("since", "Since", _one("request.state_since", "state_since")),
    Column("created", "Made", _one("request.created_at", "created_at"), is_usual=False),
    Column("reason", "Reason", _one("request.state_reason", "reason")),
)
SITE_COLUMNS: Sequence[Column] = (
    Column("site", "Site", _one("site.name", "site"), is_fixed=True),
    Column("state", "State", _one("state")),
    Column(
        "bound",
        "Bound",
        {
            **_one("matched", "bound"),
            **_one("site.max_matches", "max_matches"),
            **_one("site.matches_unit", "unit"),
        },
        style="num",
    ),
    Column("running", "Pilots running", _one("running_pilots"), style="num"),
    Column("queued", "Waiting", _one("queued_pilots"), style="num"),
    Column("stalled", "Stalled", _one("stalled_pilots"), style="num"),
    Column(
        "advertised",
        "Advertised",
        {"advertised_at": lambda line: _advertised_at(line.site)},
    ),
    Column("reason", "Why it takes no DAG", _one("why", "reason")),
)
TASK_QUEUE_COLUMNS: Sequence[Column] = (
    Column("task_queue", "TaskQueue", _one("id"), is_fixed=True),
    Column(
        "owner", "Owner", {**_one("needs.owner", "owner"), **_one("needs.owner_group", "group")}
    ),
    Column("needs", "Needs", {"needs": lambda line: line.needs.as_dict()}),
    Column("waiting", "Waiting", _one("waiting_jobs"), style="num"),
    Column("oldest", "Oldest", _one("oldest_at")),
    Column("priority", "Priority", _one("priority"), style="num"),
    Column("share", "Share", _one("share"), hint="The part of its priority in the sum of all"),
    Column("created", "Created", _one("created_at")),
)
AUDIT_COLUMNS: Sequence[Column] = (
    Column("when", "When", {**_one("pk", "id"), **_one("created_at", "at")}, is_fixed=True),
    Column("actor", "Who", _one("actor")),
    Column("action", "What", _one("action")),
    Column(
        "object",
        "To what",
        {**_one("target"), **_one("object_kind", "kind"), **_one("object_key", "key")},
    ),
    Column("reason", "Why", _one("reason")),
    Column("changes", "Before and after", _one("facts")),
    Column("request", "Request id", _one("request_id"), is_usual=False),
)
REMARK_COLUMNS: Sequence[Column] = (
    Column("when", "When", {**_one("pk", "id"), **_one("created_at", "at")}, is_fixed=True),
    Column("author", "Who", _one("author.username", "author")),
    Column(
        "event", "What", {**_one("event"), **_from("person", person="username"), **_one("until")}
    ),
    Column(
        "subject",
        "About",
        {
            **_one("subject_kind", "kind"),
            **_one("subject_id", "subject"),
            **_one("subject_name", "name"),
        },
    ),
    Column("text", "Text", _one("text")),
    Column("ticket", "Ticket", _one("ticket")),
)
BULK_COLUMNS: Sequence[Column] = (
    Column(
        "operation",
        "What",
        {**_one("pk", "id"), **_one("action"), **_one("list_name", "list")},
        is_fixed=True,
    ),
    Column("state", "State", _one("state")),
    Column(
        "progress",
        "Objects",
        {
            **_one("frozen_count", "objects"),
            **_one("done_count", "done"),
            **_one("skipped_count", "skipped"),
            **_one("failed_count", "failed"),
        },
    ),
    Column("owner", "By", _one("owner.username", "owner")),
    Column("created", "Made", _one("created_at")),
    Column("ended", "Ended", _one("ended_at"), is_usual=False),
    Column("reason", "Why", _one("reason")),
)
TRIAL_COLUMNS: Sequence[Column] = (
    Column("trial", "Trial", {**_one("pk", "id"), **_one("dag_files", "files")}, is_fixed=True),
    Column("kind", "What", _one("kind")),
    Column("state", "State", _one("state")),
    Column(
        "result",
        "Result",
        {
            **_one("exit_code"),
            **_one("node_count", "nodes"),
            **_one("ended_count", "ended_nodes"),
            **_one("state_reason", "reason"),
        },
    ),
    Column("owner", "Owner", _one("owner.username", "owner")),
    Column("created", "Asked for", _one("created_at", "created")),
    Column("ended", "Ended", _one("ended_at", "ended"), is_usual=False),
)
ARCHIVE_COLUMNS: Sequence[Column] = (
    Column("archive", "Archive of", {**_one("pk", "id"), **_one("name")}, is_fixed=True),
    Column("dag", "DAG", _one("dag_id", "dag")),
    Column("state", "State", _one("state")),
    Column("nodes", "Nodes", _one("node_count", "nodes"), style="num"),
    Column("owner", "Owner", _one("owner_name", "owner")),
    Column("group", "Group", _one("group_name", "group"), is_usual=False),
    Column("submitted", "Submitted", _one("submitted_at"), is_usual=False),
    Column("ended", "Ended", _one("ended_at")),
    Column("size", "Size", _one("blob.size_bytes", "size_bytes"), style="num"),
    Column("installation", "Written by", _one("installation"), is_usual=False),
    Column("imported", "Imported", _one("imported_at")),
)
DOWNTIME_COLUMNS: Sequence[Column] = (
    Column("site", "Site", {**_one("pk", "id"), **_one("site.name", "site")}, is_fixed=True),
    Column("state", "State", _one("state")),
    Column("start", "From", _one("start")),
    Column("end", "To", _one("ends_at", "end")),
    Column("lead", "Lead time", _one("lead_time_s"), hint="So long before it takes no new DAG"),
    Column("author", "Entered by", _one("author")),
    Column("entered", "Entered", _one("created_at"), is_usual=False),
    Column(
        "reason",
        "Reason",
        {**_one("reason"), **_one("cancelled_by"), **_one("cancel_reason")},
    ),
)


def _advertised_at(site: Any) -> Any:
    advertisement = getattr(site, "advertisement", None)
    return (
        advertisement.received_at
        if advertisement is not None and advertisement.invalidated_at is None
        else None
    )
