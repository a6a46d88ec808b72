"""Sites and hosts of the earlier attempts of nodes, for jobs of a retry to avoid.

The sites are all that were tried, the hosts those on which jobs failed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from matching.task_queues.rescheduling import Avoids, with_host
from wms.core.conf import conf
from wms.dags.engine.throttles import ReadyNode
from wms.dags.models import Dag, NodeEvent
from wms.jobs.binding.scopes import sites_of
from wms.jobs.models import Attempt, Job
from wms.jobs.selectors import of_clusters

_OUTCOME = Attempt.Outcome
_FAILED = (_OUTCOME.FAILED, _OUTCOME.NOT_RUN, _OUTCOME.LOST)
#: These were stopped for no fault of the worker node.
_STOPPED = (Attempt.StoppedBy.SERVER, Attempt.StoppedBy.PREEMPTION)


def avoided_sites(dag: Dag, nodes: Iterable[ReadyNode]) -> dict[int, tuple[str, ...]]:
    """Sites of earlier attempts by node, except the site where the DAG is now.

    Where each job is bound at its claim, a node that has tried all sites avoids none of them. For
    all at once: two queries and those for the sites, or none.
    """
    node_by_job = _nodes_by_job(nodes)
    attempts = (
        Attempt.objects.filter(job_id__in=node_by_job) if node_by_job else Attempt.objects.none()
    )
    here = dag.site.name if dag.site else ""
    sites: dict[int, set[str]] = defaultdict(set)
    for job_id, site in attempts.values_list("job_id", "site_name"):
        if site != here:
            sites[node_by_job[job_id]].add(site)
    open_sites = _accepting(dag) if sites else frozenset()
    return {
        node_id: tuple(sorted(names))
        for node_id, names in sites.items()
        if not open_sites or not open_sites <= names
    }


def _accepting(dag: Dag) -> frozenset[str]:
    """Sites at which the DAG's jobs may run, if these are bound at the claim."""
    if dag.scope_id is None:
        return frozenset()
    return frozenset(sites_of([dag.scope_id]).get(dag.scope_id, ()))


def avoided_hosts(nodes: Iterable[ReadyNode]) -> dict[int, tuple[str, ...]]:
    """Hosts on which earlier jobs failed by node, the latest few of each.

    Of a list of jobs all that failed count. For all at once: two queries, or none.
    """
    if Avoids(conf().reschedule_avoids) is Avoids.NOTHING:
        return {}
    node_by_job = _nodes_by_job(nodes)
    if not node_by_job:
        return {}
    # The jobs first, by their indexes: a condition on both tables would read the whole of both.
    jobs = Job.objects.filter(of_clusters(list(node_by_job)))
    failed = Attempt.objects.filter(job__in=jobs.values("pk"), outcome__in=_FAILED).exclude(
        stopped_by__in=_STOPPED
    )
    hosts: dict[int, tuple[str, ...]] = defaultdict(tuple)
    rows = failed.order_by("pk").values_list("job_id", "job__cluster_id", "host")
    for job_id, cluster_id, host in rows:
        node_id = node_by_job[cluster_id or job_id]
        hosts[node_id] = with_host(hosts[node_id], host)
    return dict(hosts)


def _nodes_by_job(nodes: Iterable[ReadyNode]) -> dict[int, int]:
    """Nodes by the first job of each earlier cluster."""
    ids = [node.pk for node in nodes]
    if not ids:
        return {}
    events = NodeEvent.objects.filter(node_id__in=ids, event="submit")
    named = events.values_list("node_id", "facts")
    return {facts["job"]: node for node, facts in named if facts.get("job") is not None}
