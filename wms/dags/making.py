"""Making jobs of a DAG's ready nodes, within bounds of time and of different needs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

from matching.needs import Needs
from matching.reasons import each_told
from matching.resources import offer_refusal
from matching.substitution import Evaluator
from wms.dags.checking import MAX_DIFFERENT_NEEDS
from wms.dags.demand import requests_of
from wms.dags.lifecycle import JOB_TOPIC
from wms.dags.models import Dag, Node
from wms.dags.references import bounded
from wms.dags.rendering import CannotRender, Identity, NodeContext, render_job
from wms.dags.submitfile import from_dict
from wms.jobs.models import Job
from wms.jobs.specs import JobSpec
from wms.sites.selectors import offered_resource, queues_of
from wms.taskqueues.models import TaskQueue, WaitingJob
from wms.taskqueues.policies import task_queue_policy

#: How long a round makes jobs of one DAG's nodes. The rest is for its next round, so that a DAG
#: that takes long keeps no other one waiting.
LIMIT_S = 10.0


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a node cannot be submitted, and whether another site might run it."""

    reason: str
    is_of_site: bool = False
    is_lasting: bool = False


Made = tuple[Node, list[JobSpec] | Fault]


def make_specs(dag: Dag, nodes: Sequence[Node]) -> list[Made]:
    """The jobs of the first of these nodes, as many as can be made in time, one at least.

    A fault of the DAG as a whole is the last.
    """
    specs: list[Made] = []
    if nodes and _has_too_different_needs(dag):
        reason = f"its jobs wait with more than {MAX_DIFFERENT_NEEDS} different needs"
        return [(nodes[0], Fault(reason))]
    make = _maker(dag)
    began_s = time.monotonic()
    for node in nodes:
        node_began_s = time.monotonic()
        if node_began_s - began_s > LIMIT_S:
            break
        made = make(node)
        if isinstance(made, Fault):
            specs.append((node, made))
            if made.is_lasting:
                continue
            break
        if time.monotonic() - node_began_s > LIMIT_S:
            reason = f"node {node.name}: making a job of it takes over {LIMIT_S:g} s"
            specs.append((node, Fault(reason)))
            break
        specs.append((node, [made]))
    return specs


def _has_too_different_needs(dag: Dag) -> bool:
    """Whether the jobs of the DAG wait in more TaskQueues than it may make.

    What is counted first, all of its owner's, is known at once.
    """
    group = dag.accounting_group.name if dag.accounting_group else ""
    owners = TaskQueue.objects.filter(owner=dag.owner, owner_group=group)
    if owners.count() <= MAX_DIFFERENT_NEEDS:
        return False
    job_ids = Job.objects.filter(topic=JOB_TOPIC, topic_key=dag.pk).values("pk")
    its = WaitingJob.objects.filter(job_id__in=job_ids).values("task_queue_id").distinct()
    return its.count() > MAX_DIFFERENT_NEEDS


def _maker(dag: Dag) -> Callable[[Node], JobSpec | Fault]:
    """Makes the job of a node, for pilots of the DAG's site."""
    identity = Identity(
        owner=dag.owner.username,
        group=dag.accounting_group.name if dag.accounting_group else "",
        cpu_segments_s=task_queue_policy().cpu_segments_s,
    )
    refusal_of = _refusals_at(dag)
    evaluator = _evaluator(dag)

    def make(node: Node) -> JobSpec | Fault:
        context = NodeContext(
            node_name=node.name,
            dag_id=dag.pk,
            retry_number=node.retry_number,
            variables=node.variables,
            environment=dag.environment,
            match_attributes=dag.match_attributes,
            evaluator=evaluator,
        )
        if node.submit_description is None:
            return Fault("its description is not there", is_lasting=True)
        try:
            spec = render_job(from_dict(node.submit_description.content), context, identity)
        except CannotRender as error:
            return Fault(str(error))
        refusal = refusal_of(spec.needs)
        if refusal:
            reason = f"node {node.name}: no queue of {dag.site} can run it: {refusal}"
            return Fault(reason, is_of_site=True)
        return _bound(spec, dag)

    return make


def _refusals_at(dag: Dag) -> Callable[[Needs], str]:
    """Tells why no queue of the DAG's site can run a job with some needs; empty when one can."""
    queues = queues_of(dag.site) if dag.site else []
    offers = {queue.name: offered_resource(queue) for queue in queues}

    @cache
    def refusal_of(needs: Needs) -> str:
        refusals = {name: offer_refusal(offer, needs) for name, offer in offers.items()}
        if not all(refusals.values()):
            return ""
        return each_told(refusals.items()) or "it has no queue"

    return refusal_of


def _bound(spec: JobSpec, dag: Dag) -> JobSpec:
    """The job for pilots of the DAG's site only, whatever else its description allows."""
    sites = (dag.site.name,) if dag.site else ()
    return replace(spec, needs=replace(spec.needs, sites=sites))


def _evaluator(dag: Dag) -> Callable[[str], str]:
    """Evaluates `$$([expression])`; the DAG's own ad is read when the first one is met."""

    @cache
    def made() -> Evaluator:
        [request] = requests_of(Dag.objects.filter(pk=dag.pk))
        return Evaluator(request.expressions, request.values, dag.match_attributes)

    return bounded(lambda text: made()(text))
