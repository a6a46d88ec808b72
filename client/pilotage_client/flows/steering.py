"""Flows that change something: DAGs, clusters, jobs, pilots, many at once. Each with a reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..model import Cluster, Dag, Job, Pilot, Raw
from ..wire import Flow
from ..wire import path as at
from .asking import listed, new_key, post


def hold_dag(dag_id: int, reason: str) -> Flow[Dag]:
    """Hold of a DAG: what runs finishes, and nothing more starts."""
    return Dag.of((yield from _steer("dags", dag_id, "hold", reason)))


def release_dag(dag_id: int, reason: str = "") -> Flow[Dag]:
    """Release of a held or halted DAG: it goes on."""
    return Dag.of((yield from _steer("dags", dag_id, "release", reason)))


def halt_dag(dag_id: int, reason: str) -> Flow[Dag]:
    """Halt of a DAG: what is submitted ends, then the DAG with a rescue."""
    return Dag.of((yield from _steer("dags", dag_id, "halt", reason)))


def remove_dag(dag_id: int, reason: str) -> Flow[Dag]:
    """End the DAG, kill its jobs, and write a rescue."""
    return Dag.of((yield from _steer("dags", dag_id, "remove", reason)))


def rematch_dag(
    dag_id: int, reason: str, *, lets_finish: bool | None = None, avoid_s: int | None = None
) -> Flow[Dag]:
    """Take the DAG from its site."""
    more = {"lets_finish": lets_finish, "avoid_s": avoid_s}
    return Dag.of((yield from _steer("dags", dag_id, "rematch", reason, more)))


def rescue_dag(
    dag_id: int,
    reason: str,
    *,
    resume: str | None = None,
    save_point: str | None = None,
    options: Mapping[str, Any] | None = None,
    key: str = "",
) -> Flow[Dag]:
    """Run a DAG that has ended again, as a new one."""
    content = {"reason": reason, "resume": resume, "save_point": save_point, "options": options}
    raw = yield from post(at("dags", dag_id, "rescue"), content, key or new_key())
    return Dag.of(raw)


def rerun_nodes(
    dag_id: int, nodes: Sequence[str], reason: str, *, with_descendants: bool = True
) -> Flow[Raw]:
    """Run nodes again; how many were changed and skipped."""
    content = {"nodes": list(nodes), "reason": reason, "with_descendants": with_descendants}
    changed: Raw = yield from post(at("dags", dag_id, "nodes", "rerun"), content)
    return changed


def change_nodes(
    dag_id: int,
    nodes: Sequence[str],
    reason: str,
    *,
    variables: Mapping[str, str] | None = None,
    priority: int | None = None,
    max_retries: int | None = None,
) -> Flow[Raw]:
    """Change nodes that are not submitted yet; how many were changed and skipped."""
    content = {
        "nodes": list(nodes), "reason": reason, "variables": variables, "priority": priority,
        "max_retries": max_retries,
    }  # fmt: skip
    changed: Raw = yield from post(at("dags", dag_id, "nodes", "change"), content)
    return changed


def prioritise_dag(dag_id: int, priority: int, reason: str) -> Flow[Dag]:
    """Give a DAG and all of its jobs another priority."""
    more = {"priority": priority}
    return Dag.of((yield from _steer("dags", dag_id, "prioritise", reason, more)))


def label_dag(
    dag_id: int, reason: str, *, add: Sequence[str] = (), remove: Sequence[str] = ()
) -> Flow[Dag]:
    """Add and remove labels of a DAG."""
    more = {"add": list(add), "remove": list(remove)}
    return Dag.of((yield from _steer("dags", dag_id, "label", reason, more)))


def limit_dag(dag_id: int, options: Mapping[str, Any], reason: str) -> Flow[Raw]:
    """Change options of a DAG, such as `max_jobs`; all that hold now."""
    limits: Raw = yield from _steer("dags", dag_id, "limits", reason, {"options": dict(options)})
    return limits


def hold_cluster(cluster_id: int, reason: str) -> Flow[Cluster]:
    """Hold the jobs of a cluster that are there, and those to come."""
    return Cluster.of((yield from _steer("clusters", cluster_id, "hold", reason)))


def release_cluster(cluster_id: int, reason: str = "") -> Flow[Cluster]:
    """Release the jobs of a cluster."""
    return Cluster.of((yield from _steer("clusters", cluster_id, "release", reason)))


def remove_cluster(cluster_id: int, reason: str) -> Flow[Cluster]:
    """End a cluster and kill its jobs."""
    return Cluster.of((yield from _steer("clusters", cluster_id, "remove", reason)))


def rerun_cluster(
    cluster_id: int,
    reason: str,
    *,
    with_killed: bool | None = None,
    memory_mb: int | None = None,
    sites: Sequence[str] | None = None,
    banned_sites: Sequence[str] | None = None,
    key: str = "",
) -> Flow[Cluster]:
    """Run the failed jobs of a cluster again, as a new one."""
    content = {
        "reason": reason, "with_killed": with_killed, "memory_mb": memory_mb, "sites": sites,
        "banned_sites": banned_sites,
    }  # fmt: skip
    raw = yield from post(at("clusters", cluster_id, "rerun"), content, key or new_key())
    return Cluster.of(raw)


def change_cluster(
    cluster_id: int,
    reason: str,
    *,
    memory_mb: int | None = None,
    sites: Sequence[str] | None = None,
    banned_sites: Sequence[str] | None = None,
) -> Flow[Cluster]:
    """Change what the jobs of a cluster ask for."""
    more = {"memory_mb": memory_mb, "sites": sites, "banned_sites": banned_sites}
    return Cluster.of((yield from _steer("clusters", cluster_id, "change", reason, more)))


def prioritise_cluster(cluster_id: int, priority: int, reason: str) -> Flow[Cluster]:
    """Give the jobs of a cluster another priority."""
    more = {"priority": priority}
    return Cluster.of((yield from _steer("clusters", cluster_id, "prioritise", reason, more)))


def label_cluster(
    cluster_id: int, reason: str, *, add: Sequence[str] = (), remove: Sequence[str] = ()
) -> Flow[Cluster]:
    """Add and remove labels of a cluster."""
    more = {"add": list(add), "remove": list(remove)}
    return Cluster.of((yield from _steer("clusters", cluster_id, "label", reason, more)))


def limit_cluster(
    cluster_id: int,
    reason: str,
    *,
    max_idle: int | None = None,
    max_materialize: int | None = None,
) -> Flow[Cluster]:
    """Change how many jobs of a cluster there are at once."""
    more = {"max_idle": max_idle, "max_materialize": max_materialize}
    return Cluster.of((yield from _steer("clusters", cluster_id, "limits", reason, more)))


def kill_job(job_id: int, reason: str) -> Flow[Job]:
    """End a job for good."""
    return Job.of((yield from _steer("jobs", job_id, "kill", reason)))


def drain_pilot(uuid: str, reason: str) -> Flow[Pilot]:
    """Drain of a pilot: it takes no more jobs."""
    return Pilot.of((yield from _steer("pilots", uuid, "drain", reason)))


def remove_pilot(uuid: str, reason: str) -> Flow[Pilot]:
    """End a pilot at once; its jobs run again elsewhere."""
    return Pilot.of((yield from _steer("pilots", uuid, "remove", reason)))


def preview_bulk(
    of: str,
    action: str,
    reason: str,
    *,
    filters: Mapping[str, Sequence[str]] | None = None,
    ids: Sequence[int] | None = None,
    arguments: Mapping[str, Any] | None = None,
) -> Flow[Raw]:
    """Preview of an action on many objects; nothing is changed."""
    content = {
        "list": of, "action": action, "reason": reason, "dry_run": True, "ids": ids,
        "filter": None if filters is None else {name: list(v) for name, v in filters.items()},
        "arguments": arguments,
    }  # fmt: skip
    preview: Raw = yield from post("bulk/", content)
    return preview


def begin_bulk(operation_token: str, expected_count: int) -> Flow[Raw]:
    """Begin what was previewed, if as many objects are left; sent again it begins once."""
    content = {"operation_token": operation_token, "expected_count": expected_count}
    operation: Raw = yield from post("bulk/", content)
    return operation


def bulk_operations(*, limit: int | None = 20, **filters: object) -> Flow[list[dict[str, Any]]]:
    """Operations on many objects, the latest first."""
    return (yield from listed("bulk/", dict, limit, filters))


def _steer(
    of: str, name: object, action: str, reason: str, more: Mapping[str, Any] | None = None
) -> Flow[Any]:
    return (yield from post(at(of, name, action), {"reason": reason, **(more or {})}))
