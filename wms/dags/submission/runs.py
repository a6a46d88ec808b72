"""Creation of a DAG's run in a workspace: the first, a further one, or one of an inner DAG.

The files are checked as they are then, and stored as a new DAG, from a rescue if one applies. Also
the check of a run's options.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from typing import Any

from django.db import transaction
from django.utils import timezone

from wms.core.actors import Actor
from wms.core.conf import conf
from wms.core.errors import Finding, InvalidInput
from wms.core.labels import changed_labels
from wms.core.loops import wake_loop
from wms.core.models import User
from wms.dags.engine.round import ENGINE
from wms.dags.growth.resumption import (
    Resumed,
    Surroundings,
    grow_from_rescue,
    record_resumed,
)
from wms.dags.language.commands.success import most_tolerated
from wms.dags.language.origin import TOP, Origin
from wms.dags.language.size_limits import MAX_DATA_ATTEMPTS, MAX_RESCUES
from wms.dags.language.spec import DagSpec, RunOptions
from wms.dags.lifecycle import NEGOTIATE_TASK
from wms.dags.models import Dag, DagEvent, Node
from wms.dags.rescue.names import rescue_stem
from wms.dags.rescue.rescue_files import (
    BY_DEFAULT,
    ResumePoint,
    Resumption,
    prepare_resume_point,
    unknown_names,
)
from wms.dags.states import Binding, DagState
from wms.dags.submission.checking import CheckedDag, FaultyDag, check_dag
from wms.dags.submission.dag_description import DagDescription
from wms.dags.submission.node_inputs import inputs_of_nodes, stored_inputs
from wms.dags.submission.node_needs import stored_needs
from wms.dags.submission.storing import store_nodes
from wms.dags.submission.workspaces import WorkspaceFiles
from wms.jobs.models import Workspace

SUBMIT_EVENT = "submit"
#: The engine reads inner DAGs in its rounds, while the outer one waits.
_LIMIT_OF_INNER_S = 10.0
_DEFAULTS = asdict(RunOptions())
#: The least and the greatest value of options, where they are not 0 and what a column holds.
_OPTION_RANGES = {
    "priority": (-(2**31), 2**31 - 1),
    "data_attempts": (1, MAX_DATA_ATTEMPTS),
    "max_rescue": (0, MAX_RESCUES),
}


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Request for a run of DAG files in a workspace.

    `options` are those of RunOptions that are given explicitly; they win over CONFIG files.
    `keeps_files`: a second run is refused while files of an earlier one exist, unless it resumes
    from a rescue. `takes_any_request`: DATA nodes may name schemes that no module transfers, as
    where transfers are simulated.
    """

    workspace: Workspace
    owner: User
    dag_files: list[str]
    origin: Origin = TOP
    options: Mapping[str, Any] = field(default_factory=dict)
    resumption: Resumption = BY_DEFAULT
    parent_node: Node | None = None
    previous: Dag | None = None
    allow_missing_files: bool = False
    keeps_files: bool = False
    takes_any_request: bool = False
    #: More than those of the description; and what wins over its priority.
    labels: tuple[str, ...] = ()
    priority: int | None = None
    #: The file that `checked.description` was read from.
    description_file: str = ""
    #: The DAG, in another workspace, of which the files are an edited copy.
    made_from: Dag | None = None
    #: What the event of the submission tells beside the usual.
    reason: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


def create_run(request: RunRequest, *, actor: Actor) -> Dag:
    """Check the files as they are now, and store a new DAG of them, which is idle then.

    Raises InvalidInput with every fault; then nothing was stored.
    """
    with WorkspaceFiles(request.workspace.pk) as files:
        checked = check_dag(
            request.dag_files,
            files=files,
            owner=request.owner,
            origin=request.origin,
            allow_missing_files=request.allow_missing_files,
            binding=_inherited_binding(request),
            limit_s=None if request.parent_node is None else _LIMIT_OF_INNER_S,
            takes_any_request=request.takes_any_request,
        )
    if checked.findings:
        raise FaultyDag(checked)
    return store_run(request, checked, actor=actor)


def _inherited_binding(request: RunRequest) -> Binding | None:
    """Binding of the run before, or of the DAG around it; None for a DAG of its own."""
    outer = request.parent_node.dag if request.parent_node is not None else None
    known = request.previous or outer
    return Binding(known.binding) if known is not None else None


@transaction.atomic
def store_run(request: RunRequest, checked: CheckedDag, *, actor: Actor) -> Dag:
    """Store a DAG without faults. Raises InvalidInput for a rescue that does not fit."""
    if request.keeps_files:
        _refuse_repeated_run(request)
    resume_point = prepare_resume_point(request.workspace, request.dag_files, request.resumption)
    grown: Sequence[Resumed] = ()
    if resume_point is not None:
        around = Surroundings(request.workspace, request.owner, request.origin)
        lines = resume_point.text.growth
        grown, faults = grow_from_rescue(checked, lines, resume_point.path, around)
        faults = faults or unknown_names(resume_point, set(checked.dag.nodes))
        if faults:
            raise InvalidInput(faults)
    dag = _create(request, checked, resume_point)
    store_nodes(
        dag,
        checked.dag,
        checked.submit_files,
        done=resume_point.text.done if resume_point else (),
        retries=resume_point.text.retries if resume_point else {},
        outcomes=resume_point.text.outcomes if resume_point else {},
        done_reason=f"DONE in {resume_point.path}" if resume_point else "DONE in the DAG file",
        actor=ENGINE,
    )
    _record_submission(dag, checked, resume_point, request, actor)
    record_resumed(dag, grown, actor=ENGINE)
    if request.parent_node is None:
        transaction.on_commit(partial(wake_loop, NEGOTIATE_TASK))
    return dag


def check_options(options: Mapping[str, Any]) -> dict[str, int | bool]:
    """Checked options. Raises InvalidInput with every fault."""
    kinds = {each.name: type(_DEFAULTS[each.name]) for each in fields(RunOptions)}
    faults = []
    for name, value in options.items():
        if name not in kinds:
            faults.append((name, "there is no such option"))
        elif kinds[name] is bool and not isinstance(value, bool):
            faults.append((name, "must be true or false"))
        elif kinds[name] is int and (isinstance(value, bool) or not isinstance(value, int)):
            faults.append((name, "must be a whole number"))
        elif kinds[name] is int:
            least, most = _OPTION_RANGES.get(name, (0, 2**31 - 1))
            if not least <= value <= most:
                faults.append((name, f"must be from {least} to {most}"))
    if faults:
        raise InvalidInput([Finding(message, field=name) for name, message in faults])
    return dict(options)


def site_options() -> dict[str, int | bool]:
    """Options of DAGs that say nothing else, from the settings. Raises InvalidInput."""
    try:
        return check_options(conf().dag_options)
    except InvalidInput as error:
        raise InvalidInput(
            [replace(each, field=f"PILOTAGE_DAG_OPTIONS {each.field}") for each in error.findings]
        ) from None


def _refuse_repeated_run(request: RunRequest) -> None:
    earlier = Dag.objects.filter(workspace=request.workspace, dag_files=request.dag_files).last()
    resumes = (
        prepare_resume_point(request.workspace, request.dag_files, request.resumption) is not None
    )
    if earlier is not None and not resumes and not request.resumption.is_fresh:
        raise InvalidInput.of(
            f"files of an earlier run of {request.dag_files[0]} exist (DAG {earlier.pk}): start "
            "afresh, or say that they may be written anew",
            file=request.dag_files[0],
        )


def _create(request: RunRequest, checked: CheckedDag, resume_point: ResumePoint | None) -> Dag:
    spec, parent = checked.dag, request.parent_node
    outer = parent.dag if parent is not None else None
    return Dag.objects.create(
        name=rescue_stem(request.dag_files).removesuffix(".dag")[:255],
        owner=request.owner,
        workspace=request.workspace,
        dag_files=request.dag_files,
        directory=request.origin.directory,
        root_path=request.origin.root,
        uses_dag_dir=request.origin.uses_dag_dir,
        parent_node=parent,
        root=(outer.root or outer) if outer is not None else None,
        previous_run=request.previous or request.made_from or _previous_inner(parent),
        rescue_number=resume_point.number if resume_point is not None else 0,
        options={**_site_options(outer), **spec.options, **request.options},
        category_limits=spec.categories,
        success_rule=spec.success_rule,
        tolerances=_tolerances(spec),
        script_environment=spec.environment,
        exports=_exports(checked),
        **_needs_of_nodes(checked, resume_point, is_inner=parent is not None),
        **_inputs_of_nodes(request, checked, resume_point),
        **_description(request, checked.description),
    )


def _site_options(outer: Dag | None) -> dict[str, int | bool]:
    """Options that the settings give to every DAG; an inner one has those of the outer."""
    return {} if outer is not None else site_options()


def _needs_of_nodes(
    checked: CheckedDag, resume_point: ResumePoint | None, *, is_inner: bool
) -> dict[str, Any]:
    """Columns for the needs of the nodes; none for an inner DAG, which goes where the outer is."""
    if is_inner:
        return {}
    return stored_needs(
        checked.nodes_by_needs, done=resume_point.text.done if resume_point is not None else ()
    )


def _inputs_of_nodes(
    request: RunRequest, checked: CheckedDag, resume_point: ResumePoint | None
) -> dict[str, Any]:
    """Columns for the input data of the nodes; none for an inner DAG, and none for one whose jobs
    are bound one by one: each of them goes where its own are.
    """
    binding = _inherited_binding(request) or checked.description.binding
    if request.parent_node is not None or binding is Binding.JOB:
        return {}
    found = inputs_of_nodes(
        checked.nodes_by_inputs,
        checked.dag,
        checked.placed,
        owner=request.owner,
        done=resume_point.text.done if resume_point is not None else (),
    )
    return stored_inputs(*found)


def _tolerances(spec: DagSpec) -> dict[str, dict[str, Any]]:
    """Column for the tolerances of categories; percentages are those of their nodes in the DAG."""
    if not spec.tolerances:
        return {}
    sizes = Counter(node.category for node in spec.nodes.values())
    return {
        category: {"given": each.given, "most": most_tolerated(each, sizes[category])}
        for category, each in spec.tolerances.items()
    }


def _exports(checked: CheckedDag) -> dict[str, str]:
    spec = checked.dag
    named = {"status": spec.status_file, "jobstate": spec.jobstate_log, "dot": spec.dot_file}
    return {kind: name for kind, name in named.items() if name}


def _previous_inner(parent: Node | None) -> Dag | None:
    if parent is None:
        return None
    return Dag.objects.filter(parent_node=parent).order_by("-pk").first()


def _description(request: RunRequest, description: DagDescription) -> dict[str, Any]:
    """Columns of the DAG for the negotiation, from its description or from the previous run."""
    if request.previous is not None:
        names = (
            "ad_attributes", "accounting_group", "concurrency_limits", "rematch_expression",
            "environment_template", "binding", "labels", "priority", "description_file",
        )  # fmt: skip
        return {name: getattr(request.previous, name) for name in names}
    if request.parent_node is not None:
        outer = request.parent_node.dag
        inherited = ("accounting_group", "binding", "labels", "priority")
        return {name: getattr(outer, name) for name in inherited}
    known = {
        "ad_attributes": description.attributes,
        "accounting_group": description.group,
        "concurrency_limits": description.limits,
        "rematch_expression": description.rematch_expression,
        "binding": description.binding,
        "labels": all_labels(request.labels, description),
        "priority": description.priority if request.priority is None else request.priority,
        "description_file": request.description_file,
    }
    if description.environment is not None:
        known["environment_template"] = description.environment
    return known


def all_labels(given: Sequence[str], description: DagDescription) -> list[str]:
    """Labels that are given with a DAG and by its description. Raises InvalidInput."""
    return changed_labels(description.labels, add=given, remove=())


def _record_submission(
    dag: Dag,
    checked: CheckedDag,
    resume_point: ResumePoint | None,
    request: RunRequest,
    actor: Actor,
) -> None:
    facts: dict[str, Any] = {**request.facts}
    if checked.warnings:
        facts["warnings"] = [warning.stored() for warning in checked.warnings]
    if resume_point is not None:
        facts["begins_from"] = resume_point.path
    if dag.previous_run_id is not None:
        facts["previous_run"] = dag.previous_run_id
    DagEvent.objects.create(
        dag=dag,
        event=SUBMIT_EVENT,
        to_state=DagState.IDLE,
        actor=actor.name,
        reason=request.reason,
        facts={**facts, **actor.facts},
        created_at=timezone.now(),
    )
