"""Flows that read DAGs, nodes, jobs, clusters, sites and pilots, and wait for their ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, Union

from ..errors import NoAnswer, NoSuchNode, NotFound, TimedOut
from ..model import Cluster, Dag, Job, Pilot, Raw, Site
from ..wire import Flow, Pause
from ..wire import path as at
from .asking import get, listed, post

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 10.0
#: So often in a row a portal may be away while one waits, each time for some 16 seconds.
_SILENCES = 20
Ends = Union[Dag, Cluster, Job]
E = TypeVar("E", Dag, Cluster, Job)


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


def wait_for_dag(
    dag_id: int,
    *,
    timeout_s: float | None = None,
    on_change: Callable[[Dag], None] | None = None,
) -> Flow[Dag]:
    """The DAG when it has ended. Raises TimedOut."""
    return (yield from _wait(lambda: dag(dag_id), f"DAG {dag_id}", timeout_s, on_change))


def wait_for_cluster(
    cluster_id: int,
    *,
    timeout_s: float | None = None,
    on_change: Callable[[Cluster], None] | None = None,
) -> Flow[Cluster]:
    """The cluster when all of its jobs have ended. Raises TimedOut."""
    found = _wait(lambda: cluster(cluster_id), f"Cluster {cluster_id}", timeout_s, on_change)
    return (yield from found)


def wait_for_job(
    job_id: int,
    *,
    timeout_s: float | None = None,
    on_change: Callable[[Job], None] | None = None,
) -> Flow[Job]:
    """The job when it has ended. Raises TimedOut."""
    return (yield from _wait(lambda: job(job_id), f"Job {job_id}", timeout_s, on_change))


def _wait(
    look: Callable[[], Flow[E]],
    name: str,
    timeout_s: float | None,
    on_change: Callable[[E], None] | None,
) -> Flow[E]:
    waited_s, pause_s = 0.0, _FIRST_PAUSE_S
    before: E | None = None
    while True:
        now: E = yield from _patient_look(look)
        if before is None or now.raw != before.raw:
            before, pause_s = now, _FIRST_PAUSE_S
            if on_change is not None:
                on_change(now)
        if now.has_ended:
            return now
        if timeout_s is not None and waited_s >= timeout_s:
            raise TimedOut(f"{name} has not ended within {timeout_s:g} s.")
        # The time that is left, so that one does not wait for longer than was asked.
        left_s = pause_s if timeout_s is None else min(pause_s, timeout_s - waited_s)
        yield Pause(left_s)
        waited_s += left_s
        pause_s = min(1.5 * pause_s, _LONGEST_PAUSE_S)


def _patient_look(look: Callable[[], Flow[E]]) -> Flow[E]:
    """The object, also when the portal is away for some minutes. Raises NoAnswer."""
    for _ in range(_SILENCES):
        try:
            return (yield from look())
        except NoAnswer:
            yield Pause(_LONGEST_PAUSE_S)
    return (yield from look())
