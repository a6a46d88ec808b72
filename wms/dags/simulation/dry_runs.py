"""A dry run of DAG files on disk: what would run, how long it would take, and what never would."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction

from wms.core.errors import Finding, InvalidInput
from wms.dags.language.origin import TOP, Origin
from wms.dags.models import Dag, Edge, Node
from wms.dags.simulation.behaviour import US_PER_S, Behaviour, Usual, names_in, read_behaviour
from wms.dags.simulation.critical import Leg, Span, critical_path
from wms.dags.simulation.folder import Folder, contents
from wms.dags.simulation.never import NeverRan, failed_above, reason_of
from wms.dags.simulation.options import Options, read_options
from wms.dags.simulation.outcomes import Outcome
from wms.dags.simulation.sites import SiteGiven, read_site, with_stand_ins
from wms.dags.simulation.submitting import submit_and_run
from wms.dags.simulation.surroundings import make_surroundings
from wms.dags.states import COUNTED_KINDS, NodeKind
from wms.dags.submission.runs import RunRequest

#: What is taken where nothing was said.
USUAL = Usual(job_s=60, script_s=1, try_s=10, service_s=60)
_SECTIONS = ("behaviour", "duration", "options", "site")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a dry run is told beside the DAG files."""

    behaviour: Behaviour
    options: Options
    site: SiteGiven


def read_wanted(given: Mapping[str, Any]) -> Wanted:
    """What a behaviour file says: sections as in a case; other keys are components.

    Raises InvalidInput with every fault.
    """
    components = {name: value for name, value in given.items() if name not in _SECTIONS}
    behaviour, duration, options, site = (given.get(name, {}) for name in _SECTIONS)
    faults = [
        Finding("must be an object", field=name)
        for name in _SECTIONS
        if not isinstance(given.get(name, {}), dict)
    ]
    if faults:
        raise InvalidInput(faults)
    return Wanted(
        read_behaviour({**components, **behaviour}, duration, usual=USUAL, is_obliging=True),
        read_options(options),
        read_site(site),
    )


@dataclass(frozen=True, slots=True)
class DryRun:
    """What a dry run came to; `spans` are when its nodes ran."""

    outcome: Outcome
    warnings: list[Finding]
    spans: Mapping[str, Span] = field(default_factory=dict)
    path: list[Leg] = field(default_factory=list)
    never_ran: list[NeverRan] = field(default_factory=list)

    @property
    def lasts_us(self) -> int:
        """How long the run would take."""
        return max((span.end_us for span in self.spans.values()), default=0)

    def as_dict(self) -> dict[str, Any]:
        """The dry run for programs."""
        return {
            **self.outcome.as_dict(),
            "warnings": [_as_dict(each) for each in self.warnings],
            "duration_s": self.lasts_us / US_PER_S,
            "critical_path": [
                {
                    "node": leg.name,
                    "seconds": leg.lasts_us / US_PER_S,
                    "waited_s": leg.waited_us / US_PER_S,
                }
                for leg in self.path
            ],
            "never_ran": [
                {"node": each.name, "state": each.state, "why": each.why} for each in self.never_ran
            ],
        }


def _as_dict(finding: Finding) -> dict[str, Any]:
    return {"message": finding.message, "file": finding.file, "line": finding.line}


def dry_run(folder: Folder, dag_files: list[str], wanted: Wanted, origin: Origin = TOP) -> DryRun:
    """Submit DAG files of a folder and run them by the virtual clock; nothing of it is left."""
    site, stand_ins = with_stand_ins(wanted.site, folder.texts.values())
    with transaction.atomic():
        surroundings = make_surroundings(site)
        outcome = submit_and_run(
            RunRequest(
                workspace=surroundings.workspace(contents(folder.files)),
                owner=surroundings.owner,
                dag_files=dag_files,
                origin=origin,
                options=wanted.options.of_run,
                resumption=wanted.options.resumption,
                keeps_files=wanted.options.keeps_files,
                allow_missing_files=True,
            ),
            wanted.behaviour,
            wanted.options,
            surroundings,
            has_all_programs=True,
        )
        found = _described(outcome, [*folder.warnings, *stand_ins, *outcome.warnings], wanted)
        transaction.set_rollback(True)
    return found


def _described(outcome: Outcome, warnings: list[Finding], wanted: Wanted) -> DryRun:
    if outcome.dag is None:
        return DryRun(outcome, warnings)
    parents = _parents(outcome.dag)
    spans = _spans(outcome)
    return DryRun(
        outcome,
        warnings + _unknown_names(outcome, wanted),
        spans,
        critical_path(spans, parents),
        _never_ran(outcome, spans, parents),
    )


def _parents(dag: Dag) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    rows = Edge.objects.filter(parent__dag=dag).values_list("child__name", "parent__name")
    for child, parent in rows.iterator():
        found[child].append(parent)
    final = Node.objects.filter(dag=dag, kind=NodeKind.FINAL).first()
    if final is not None:
        # It comes after all others.
        others = Node.objects.filter(dag=dag, kind__in=COUNTED_KINDS)
        found[final.name] = list(others.values_list("name", flat=True))
    return found


def _spans(outcome: Outcome) -> dict[str, Span]:
    """When the nodes of the outer DAG ran."""
    dag_id = outcome.dag.pk if outcome.dag is not None else None
    times: dict[str, list[int]] = defaultdict(list)
    for run in outcome.record.runs:
        if run.dag_id == dag_id:
            times[run.name] += [
                run.started_us,
                run.started_us if run.ended_us is None else run.ended_us,
            ]
    return {name: Span(min(each), max(each)) for name, each in times.items()}


def _unknown_names(outcome: Outcome, wanted: Wanted) -> list[Finding]:
    names = {node.name for node in outcome.nodes}
    given = names_in([*wanted.behaviour.results, *wanted.behaviour.durations_s])
    return [
        Finding(f"there is no node {name}: what is said of it has no effect", field="behaviour")
        for name in dict.fromkeys(given)
        if name not in names
    ]


def _never_ran(
    outcome: Outcome, spans: Mapping[str, Span], parents: Mapping[str, list[str]]
) -> list[NeverRan]:
    dag_id = outcome.dag.pk if outcome.dag is not None else None
    own = {node.name: node for node in outcome.nodes if node.dag_id == dag_id}
    states = {name: node.state for name, node in own.items()}
    failed = failed_above(states, parents)
    return [
        NeverRan(
            name,
            node.state,
            reason_of(name, node.reason, failed.get(name, []), states, parents) or outcome.reason,
        )
        for name, node in own.items()
        if name not in spans and node.state != "done"
    ]
