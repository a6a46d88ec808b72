"""Start of nodes without jobs: inner DAGs of SUBDAG nodes, placement requests of DATA nodes.

Also the binding of inner DAGs to the site of their outer DAG, and the inner DAGs at any depth that
have not ended.
"""

from __future__ import annotations

from dataclasses import replace

from matching.descriptions.substitution import OwnAttributes
from wms.core.errors import InvalidInput, PilotageError
from wms.dags import lifecycle
from wms.dags.engine.node_features import features_of
from wms.dags.engine.node_work import work_of, write_work
from wms.dags.engine.round import NodeOutcome, Round
from wms.dags.engine.settling.decisions import after_failed_submit
from wms.dags.engine.settling.settle import attempt_of
from wms.dags.engine.submitting.job_factory import site_evaluator
from wms.dags.engine.submitting.space_steps import plan_space
from wms.dags.lifecycle import DATA_TOPIC
from wms.dags.models import Dag, Node
from wms.dags.rescue.rescue_files import Resumption
from wms.dags.scripts.run_requests import current_status
from wms.dags.states import DAG_TERMINAL, DagState, NodeCause
from wms.dags.submission.request_texts import NodeValues, SiteReferences, final_text
from wms.dags.submission.workspaces import read_file
from wms.placement.submission import submit_requests

#: DAGs in DAGs, no deeper than this: one that contains itself would never end.
MAX_DEPTH = 10
#: Placement requests are ads of a few lines, thousands at most.
MAX_REQUEST_BYTES = 8 * 1024 * 1024
_SITE = ("site_id", "matched_at", "match_attributes", "environment", "substitutions")


def start_inner(round_: Round, node: Node) -> NodeOutcome | None:
    """Begin the inner DAG of a node, at the site of the outer one; a outcome if it cannot be.

    Its file is read now: a parent or a PRE script may have written it. A run that failed before
    left a rescue, from which this one goes on.
    """
    from wms.dags.submission.runs import RunRequest, create_run

    outer, features = round_.dag, features_of(node.features)
    try:
        _check_depth(outer, node)
        inner = create_run(
            RunRequest(
                workspace=outer.workspace,
                owner=outer.owner.within(outer.workspace.limited_to),
                dag_files=[features.source],
                origin=replace(outer.origin, directory=node.directory),
                options={**outer.options, "priority": node.priority},
                parent_node=node,
                resumption=Resumption(takes_newest=not work_of(node).is_fresh),
                allow_missing_files=True,
            ),
            actor=round_.actor,
        )
    except PilotageError as error:
        return _failed_submit(round_, node, f"{features.source}: {error}")
    bind_inner(outer, [inner.pk], round_)
    round_.move("submit", [node.pk], facts={"inner": inner.pk}, job_id=None)
    work_of(node).inner_dag = inner
    write_work([work_of(node)], "inner_dag")
    return None


def bind_inner(outer: Dag, dag_ids: list[int], round_: Round) -> None:
    """Let inner DAGs begin, or go on, where their outer DAG is."""
    site = {name: getattr(outer, name) for name in _SITE}
    lifecycle.apply_to_dags("begin", dag_ids, actor=round_.actor, **site)


def start_request(round_: Round, node: Node) -> NodeOutcome | None:
    """Hand a node's placement requests over; a outcome if they are not understood.

    The first one stands for all: its end, of which the engine hears, is the end of the last.
    """
    try:
        text = _filled_text(round_.dag, node)
        request_id, *_ = submit_requests(
            text,
            workspace=round_.dag.workspace,
            directory=node.directory,
            owner=round_.dag.owner,
            topic=DATA_TOPIC,
            topic_key=round_.dag.pk,
            max_attempts=round_.options.data_attempts,
            site_id=round_.dag.site_id,
            actor=round_.actor,
        )
    except PilotageError as error:
        return _failed_submit(round_, node, str(error))
    plan_space(round_, text, _filled_text)
    round_.move("submit", [node.pk], facts={"request": request_id}, job_id=None)
    work_of(node).request_id = request_id
    write_work([work_of(node)], "request")
    return None


def inner_dags(dag_ids: list[int]) -> list[int]:
    """Ids of inner DAGs of these, at any depth, that have not ended."""
    found: list[int] = []
    outer = dag_ids
    while outer:
        inner = Dag.objects.filter(parent_node__dag_id__in=outer).exclude(state__in=DAG_TERMINAL)
        outer = list(inner.order_by("pk").values_list("pk", flat=True))
        found += outer
    return found


def go_on_at_site(round_: Round) -> None:
    """Bind the inner DAGs again that were left without a site when the outer one lost its own."""
    inner = Dag.objects.filter(parent_node__dag=round_.dag, state=DagState.IDLE)
    ids = list(inner.values_list("pk", flat=True))
    if ids:
        bind_inner(round_.dag, ids, round_)


def _check_depth(outer: Dag, node: Node) -> None:
    depth, dag = 1, outer
    while dag.parent_node_id is not None:
        depth += 1
        dag = Dag.objects.select_related("parent_node").get(nodes=dag.parent_node_id)
        if depth > MAX_DEPTH:
            raise InvalidInput.of(f"DAGs may be nested {MAX_DEPTH} deep", field=node.name)


def _filled_text(dag: Dag, node: Node) -> str:
    """The node's requests with its macros, and the values of the site at which the DAG is."""
    evaluate = site_evaluator(dag)
    values = NodeValues(node.name, node.variables, features_of(node.features).appended)
    late = {
        "DAGManJobId": str(dag.pk),
        "RETRY": str(node.retry_number),
        "DAG_STATUS": str(int(current_status(dag))),
        "FAILED_COUNT": str(dag.failed_count),
    }
    site = SiteReferences(
        dag.environment, dag.match_attributes, lambda text: evaluate(text, OwnAttributes())
    )
    return final_text(_request_text(dag, node), values, late, site)


def _request_text(dag: Dag, node: Node) -> str:
    if node.submit_description is not None:
        return str(node.submit_description.content["request"])
    source = features_of(node.features).source
    content = read_file(dag.workspace_id, source, limit_bytes=MAX_REQUEST_BYTES)
    if content is None:
        raise InvalidInput.of(f"there is no file {source}")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput.of("not UTF-8 text", file=source) from error


def _failed_submit(round_: Round, node: Node, reason: str) -> NodeOutcome:
    attempt = attempt_of(round_, node, features_of(node.features))
    decision, told = after_failed_submit(attempt), f"submit failed: {reason}"
    return NodeOutcome(node, decision, told, NodeCause.SUBMISSION, has_jobs=False)
