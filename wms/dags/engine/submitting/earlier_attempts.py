"""Sites and hosts of the earlier attempts of nodes, for jobs of a retry to avoid.

Both are those where jobs failed; where all jobs of an attempt ended well, its POST script failed
the node, and all sites of these jobs count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from matching.task_queues.rescheduling import Avoids, with_host
from wms.core.conf import conf
from wms.dags.engine.submitting.throttles import ReadyNode
from wms.dags.models import Dag, NodeEvent
from wms.jobs.binding.scopes import sites_of
from wms.jobs.models import Attempt, Job
from wms.jobs.selectors import of_clusters

_OUTCOME = Attempt.Outcome
_FAILED = (_OUTCOME.FAILED, _OUTCOME.NOT_RUN, _OUTCOME.LOST)
#: These were stopped for no fault of the worker node.
_STOPPED = (Attempt.StoppedBy.SERVER, Attempt.StoppedBy.PREEMPTION)


def avoided_sites(dag: Dag, nodes: Iterable[ReadyNode]) -> dict[int, tuple[str, ...]]:
    """Sites where earlier attempts of nodes failed, except the site where the DAG is now.

    Of a list of jobs all that failed count. Where each job is bound at its claim, a node that has
    failed at all sites avoids none of them. For all at once: two queries and those for the sites,
    or none.
    """
    node_by_job = _nodes_by_job(nodes)
    here = dag.site.name if dag.site else ""
    sites: dict[int, set[str]] = defaultdict(set)
    for first_job, names in _sites_of_failure(list(node_by_job)).items():
        sites[node_by_job[first_job]] |= names - {here}
    sites = {node_id: names for node_id, names in sites.items() if names}
    open_sites = _accepting(dag) if sites else frozenset()
    return {
        node_id: tuple(sorted(names))
        for node_id, names in sites.items()
        if not open_sites or not open_sites <= names
    }


def _sites_of_failure(first_jobs: list[int]) -> dict[int, set[str]]:
    """Sites that are to blame, by the first job of each cluster."""
    if not first_jobs:
        return {}
    jobs = Job.objects.filter(of_clusters(first_jobs))
    attempts = Attempt.objects.filter(job__in=jobs.values("pk")).exclude(
        stopped_by=Attempt.StoppedBy.PREEMPTION
    )
    failed: dict[int, set[str]] = defaultdict(set)
    ended_well: dict[int, set[str]] = defaultdict(set)
    rows = attempts.values_list("job_id", "job__cluster_id", "site_name", "outcome")
    for job_id, cluster_id, site, outcome in rows:
        by_cluster = ended_well if outcome == _OUTCOME.DONE else failed
        by_cluster[cluster_id or job_id].add(site)
    return ended_well | failed


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
