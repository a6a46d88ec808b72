"""Job factory: job specifications of ready nodes, or the fault for which a node has none.

Jobs are bound to the DAG's site, except those of a DAG that are bound one by one at their claims.
Bounded in time, in the number of jobs, and in the number of different needs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

from matching.descriptions.substitution import Evaluator
from matching.negotiation.unmatched_reasons import grouped_reasons
from matching.task_queues.needs import Needs
from matching.task_queues.requirements import offer_refusal
from wms.dags.engine.node_features import PLAIN, Features, features_of
from wms.dags.engine.submitting.earlier_attempts import avoided_hosts, avoided_sites
from wms.dags.engine.submitting.submission_reads import SubmissionReads
from wms.dags.engine.submitting.throttles import ReadyNode
from wms.dags.engine.submitting.workspace_texts import (
    LateDescriptions,
    NoDescription,
    Parents,
    WorkspaceFiles,
)
from wms.dags.models import Dag
from wms.dags.negotiation.requests import requests_of
from wms.dags.reading.dag_jobs import jobs_of
from wms.dags.scripts.run_requests import current_status
from wms.jobs.description.job_fields import text_length
from wms.jobs.description.needs import MAX_DIFFERENT_NEEDS
from wms.jobs.description.rendering import (
    CannotRender,
    Identity,
    NodeContext,
    Renderer,
    SiteValues,
)
from wms.jobs.description.submit_file import SubmitFile, from_dict
from wms.jobs.description.timed_evaluation import Evaluate, with_time_limit
from wms.jobs.specs import JobSpec
from wms.taskqueues.models import WaitingJob

#: How long a round makes jobs of one DAG's nodes. The rest is for its next round, so that a DAG
#: that takes long keeps no other one waiting.
LIMIT_S = 10.0
#: So many jobs are enough for a round: lists of jobs are long.
MOST_JOBS = 20_000
#: And so much text of them.
MOST_TEXT = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Fault:
    """Reason why a node cannot be submitted; `is_lasting`: no other site can run it either."""

    reason: str
    is_of_site: bool = False
    is_lasting: bool = False


Made = tuple[ReadyNode, list[JobSpec] | Fault]


def make_specs(
    dag: Dag, nodes: Sequence[ReadyNode], reads: SubmissionReads | None = None
) -> Iterator[Made]:
    """Jobs of the first of these nodes, as many as are made in `LIMIT_S`, one node's at least.

    A fault of the DAG as a whole is the last. What was yielded is not kept. `reads` is shared by
    the DAGs of a round.
    """
    if not nodes:
        return
    reads = reads or SubmissionReads()
    if _has_too_different_needs(dag, reads):
        reason = f"its jobs wait with more than {MAX_DIFFERENT_NEEDS} different needs"
        yield nodes[0], Fault(reason)
        return
    maker = _JobFactory(dag, nodes, reads)
    job_count = text = 0
    began_s = time.monotonic()
    for node in nodes:
        node_began_s = time.monotonic()
        if node_began_s - began_s > LIMIT_S or job_count >= MOST_JOBS or text >= MOST_TEXT:
            break
        made = maker.make(node)
        if isinstance(made, Fault):
            yield node, made
            if made.is_lasting:
                continue
            return
        if time.monotonic() - node_began_s > LIMIT_S:
            reason = f"node {node.name}: making a job of it takes over {LIMIT_S:g} s"
            yield node, Fault(reason)
            return
        yield node, made
        job_count += len(made)
        text += sum(map(text_length, made))


def _has_too_different_needs(dag: Dag, reads: SubmissionReads) -> bool:
    """Whether the jobs of the DAG wait in more TaskQueues than it may make.

    What is counted first, all of its owner's, is known at once.
    """
    group = dag.accounting_group.name if dag.accounting_group else ""
    if reads.task_queue_count(dag.owner_id, group) <= MAX_DIFFERENT_NEEDS:
        return False
    job_ids = jobs_of(dag.pk).values("pk")
    its = WaitingJob.objects.filter(job_id__in=job_ids).values("task_queue_id").distinct()
    return its.count() > MAX_DIFFERENT_NEEDS


class _Refused(Exception):
    """No queue of the DAG's site can run a job; the text tells why."""


class _JobFactory:
    """Factory of the jobs of nodes, for pilots of the DAG's site, or of those that accept it."""

    def __init__(self, dag: Dag, nodes: Sequence[ReadyNode], reads: SubmissionReads) -> None:
        features = {node.pk: features_of(node.features) for node in nodes if node.features}
        self._dag = dag
        self._status = current_status(dag)
        self._features = features
        self._identity = Identity(
            owner=dag.owner.username,
            group=dag.accounting_group.name if dag.accounting_group else "",
            cpu_segments_s=reads.cpu_segments_s,
            batch_name=dag.name,
        )
        self._surroundings = SiteValues(dag.environment, dag.match_attributes, site_evaluator(dag))
        self._bind = None if dag.binds_jobs else _binder(dag, reads)
        self._parents = Parents(nodes)
        self._renderers: dict[tuple[object, str], Renderer] = {}
        late = [n for n in nodes if n.submit_description_id is None and n.pk in features]
        self._descriptions = reads.descriptions_of(nodes)
        changed = [
            self._descriptions[pk].name
            for pk in {n.submit_description_id for n in nodes if n.submit_description_id}
            if self._descriptions[pk].is_changed
        ]
        self._late = LateDescriptions(dag, {*changed, *(features[n.pk].source for n in late)})
        avoiding = [n for n in nodes if n.pk in features and features[n.pk].avoids_sites]
        self._avoided = avoided_sites(dag, [node for node in avoiding if node.retry_number])
        self._hosts = avoided_hosts([node for node in nodes if node.retry_number])

    def make(self, node: ReadyNode) -> list[JobSpec] | Fault:
        """The jobs of one node."""
        features = self._features.get(node.pk, PLAIN)
        try:
            specs = self._renderer(node, features.source).jobs(self._context(node, features))
        except NoDescription as error:
            return Fault(f"node {node.name}: {error}", is_lasting=True)
        except CannotRender as error:
            return Fault(str(error), is_lasting=self._is_read_now(node))
        except _Refused as error:
            reason = f"node {node.name}: no queue of {self._dag.site} can run it: {error}"
            return Fault(reason, is_of_site=True)
        if self._dag.priority is None:
            return specs
        return [replace(spec, priority=self._dag.priority) for spec in specs]

    def _context(self, node: ReadyNode, features: Features) -> NodeContext:
        return NodeContext(
            node_name=node.name,
            dag_id=self._dag.pk,
            retry_number=node.retry_number,
            variables=node.variables,
            appended=features.appended,
            dag_status=self._status,
            failed_count=self._dag.failed_count,
            parent_names=partial(self._parents.names, node.pk),
            directory=node.directory,
            changes=features.changes,
            avoided_sites=self._avoided.get(node.pk, ()),
            avoided_hosts=self._hosts.get(node.pk, ()),
        )

    def _renderer(self, node: ReadyNode, source: str) -> Renderer:
        """The renderer of the node's description. Raises NoDescription."""
        # What a queue statement reads is looked up from where the node runs.
        key = node.submit_description_id or source, node.directory
        if key not in self._renderers:
            self._renderers[key] = Renderer(
                self._description(node, source),
                self._identity,
                self._surroundings,
                files=WorkspaceFiles(self._dag.workspace_id, node.directory),
                bind=self._bind,
                is_late=self._dag.binds_jobs,
                scope_id=self._dag.scope_id,
            )
        return self._renderers[key]

    def _description(self, node: ReadyNode, source: str) -> SubmitFile:
        if node.submit_description_id is None:
            return self._late.read(source)
        stored = self._descriptions[node.submit_description_id]
        return self._late.read(stored.name) if stored.is_changed else from_dict(stored.content)

    def _is_read_now(self, node: ReadyNode) -> bool:
        """Whether its description could not be checked with the DAG."""
        pk = node.submit_description_id
        return pk is None or self._descriptions[pk].is_changed


def _binder(dag: Dag, reads: SubmissionReads) -> Callable[[Needs], Needs]:
    """Function that binds needs to the DAG's site, whatever sites the description allows.

    Raises _Refused where no queue of the site can meet them.
    """
    refusal_of = _refusals_at(dag, reads)
    sites = (dag.site.name,) if dag.site else ()

    @cache
    def bound(needs: Needs) -> Needs:
        refusal = refusal_of(needs)
        if refusal:
            raise _Refused(refusal)
        return replace(needs, sites=sites)

    return bound


def _refusals_at(dag: Dag, reads: SubmissionReads) -> Callable[[Needs], str]:
    """Function from needs to why no queue of the DAG's site meets them; empty if one does."""
    offers = reads.offers_at(dag.site) if dag.site else {}

    def refusal_of(needs: Needs) -> str:
        refusals = {name: offer_refusal(offer, needs) for name, offer in offers.items()}
        if not all(refusals.values()):
            return ""
        return grouped_reasons(refusals.items()) or "it has no queue"

    return refusal_of


def site_evaluator(dag: Dag) -> Evaluate:
    """Evaluator of `$$([expression])`; the DAG's ad is read with the first expression."""

    @cache
    def made() -> Evaluator:
        [request] = requests_of(Dag.objects.filter(pk=dag.pk))
        return Evaluator(request.expressions, request.values, dag.match_attributes)

    return with_time_limit(lambda text, own: made()(text, own))
