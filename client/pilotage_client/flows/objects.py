"""Flows that read DAGs, nodes, jobs, clusters, sites and pilots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import NoSuchNode, NotFound
from ..model import Cluster, Dag, Job, Pilot, Raw, Site
from ..wire import Flow
from ..wire import path as at
from .asking import get, listed, post


def username() -> Flow[str]:
    """Name of the user whose token is sent; empty if the portal is too old to tell it.

    Raises NotAuthenticated.
    """
    try:
        me: Raw = yield from get("me/")
    except NotFound:
        # Only who is known is answered, whatever there is.
        yield from get("my-quotas/")
        return ""
    return str(me.get("username") or me.get("name") or "")


def dag(dag_id: int) -> Flow[Dag]:
    """One DAG."""
    return Dag.of((yield from get(at("dags", dag_id))))


def dags(*, limit: int | None = 200, **filters: object) -> Flow[list[Dag]]:
    """DAGs, the latest first, by the filters of the API's list."""
    return (yield from listed("dags/", Dag.of, limit, filters))


def cluster(cluster_id: int) -> Flow[Cluster]:
    """One cluster."""
    return Cluster.of((yield from get(at("clusters", cluster_id))))


def clusters(*, limit: int | None = 200, **filters: object) -> Flow[list[Cluster]]:
    """Clusters, the latest first, by the filters of the API's list."""
    return (yield from listed("clusters/", Cluster.of, limit, filters))


def job(job_id: int) -> Flow[Job]:
    """One job, with its attempts and events in `raw`."""
    return Job.of((yield from get(at("jobs", job_id))))


def jobs(*, limit: int | None = 200, **filters: object) -> Flow[list[Job]]:
    """Jobs, the latest first, by the filters of the API's list."""
    return (yield from listed("jobs/", Job.of, limit, filters))


def site(name: str) -> Flow[Site]:
    """One site."""
    return Site.of((yield from get(at("sites", name))))


def sites(*, limit: int | None = None, **filters: object) -> Flow[list[Site]]:
    """Sites by their names."""
    return (yield from listed("sites/", Site.of, limit, filters))


def pilot(uuid: str) -> Flow[Pilot]:
    """One pilot."""
    return Pilot.of((yield from get(at("pilots", uuid))))


def pilots(*, limit: int | None = 200, **filters: object) -> Flow[list[Pilot]]:
    """Pilots, the latest first, by the filters of the API's list."""
    return (yield from listed("pilots/", Pilot.of, limit, filters))


def nodes(dag_id: int, *, limit: int | None = 200, **filters: object) -> Flow[list[dict[str, Any]]]:
    """Nodes of a DAG, as the API tells them."""
    return (yield from listed(at("dags", dag_id, "nodes"), dict, limit, filters))


def node(dag_id: int, name: str) -> Flow[Raw]:
    """One node by its name, as the API tells it. Raises NoSuchNode."""
    # The filter finds parts of names.
    for found in (yield from listed(at("dags", dag_id, "nodes"), dict, None, {"name": name})):
        if found["name"] == name:
            detail: Raw = yield from get(at("dags", dag_id, "nodes", found["id"]))
            return detail
    raise NoSuchNode(f"DAG {dag_id} has no node {name}.")


def explain(subject: str, value: Any, changes: Mapping[str, Any] | None = None) -> Flow[Raw]:
    """Why something does not run; `subject` is dag, job, task_queue, site or ad."""
    answer: Raw = yield from post("explain/", {subject: value, "changes": changes or None})
    return answer
