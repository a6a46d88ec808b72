"""Dry run of DAG files on disk: outcome, duration, critical path, and nodes that never ran.

Also its settings, read from the behaviour file, and its result as JSON values.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction

from wms.core.errors import Finding, InvalidInput
from wms.dags.language.origin import TOP, Origin
from wms.dags.models import Dag, Edge, Node
from wms.dags.simulation.behaviour import (
    US_PER_S,
    Behaviour,
    DefaultDurations,
    node_names_in,
    read_behaviour,
)
from wms.dags.simulation.dry_run.critical_path import NodeSpan, PathStep, critical_path
from wms.dags.simulation.dry_run.local_folder import LocalFolder, contents
from wms.dags.simulation.dry_run.never_ran import NeverRan, failed_ancestors, reason_not_run
from wms.dags.simulation.options import SimulationOptions, read_options
from wms.dags.simulation.outcome import Outcome, finding_as_dict
from wms.dags.simulation.simulation import TellProgress
from wms.dags.simulation.simulator import simulate_submission
from wms.dags.simulation.site_offer import SiteOffer, read_site_offer, with_placeholders
from wms.dags.simulation.testbed import create_testbed
from wms.dags.states import COUNTED_KINDS, NodeKind
from wms.dags.submission.runs import RunRequest

#: Durations of components that the behaviour file does not give.
DEFAULT_DURATIONS = DefaultDurations(job_s=60, script_s=1, transfer_s=10, service_s=60, gate_s=60)
_SECTIONS = ("behaviour", "duration", "options", "site")


@dataclass(frozen=True, slots=True)
class DryRunSettings:
    """Settings of a dry run: the contents of its behaviour file."""

    behaviour: Behaviour
    options: SimulationOptions
    site: SiteOffer


def read_dry_run_settings(given: Mapping[str, Any]) -> DryRunSettings:
    """Settings from a behaviour file: sections as in a case; other keys are components.

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
    return DryRunSettings(
        read_behaviour(
            {**components, **behaviour}, duration, defaults=DEFAULT_DURATIONS, is_cooperative=True
        ),
        read_options(options),
        read_site_offer(site),
    )


@dataclass(frozen=True, slots=True)
class DryRunResult:
    """Outcome, warnings and analysis of a dry run; `spans` are the times of its nodes."""

    outcome: Outcome
    warnings: list[Finding]
    spans: Mapping[str, NodeSpan] = field(default_factory=dict)
    critical_path: list[PathStep] = field(default_factory=list)
    never_ran: list[NeverRan] = field(default_factory=list)

    @property
    def duration_us(self) -> int:
        """Duration of the run."""
        return max((span.end_us for span in self.spans.values()), default=0)

    def as_dict(self) -> dict[str, Any]:
        """Dry run as JSON values."""
        return {
            **self.outcome.as_dict(),
            "warnings": [finding_as_dict(each) for each in self.warnings],
            "duration_s": self.duration_us / US_PER_S,
            "critical_path": [
                {
                    "node": step.name,
                    "seconds": step.duration_us / US_PER_S,
                    "waited_s": step.waited_us / US_PER_S,
                }
                for step in self.critical_path
            ],
            "never_ran": [
                {"node": each.name, "state": each.state, "why": each.why} for each in self.never_ran
            ],
        }


def dry_run(
    folder: LocalFolder,
    dag_files: list[str],
    settings: DryRunSettings,
    origin: Origin = TOP,
    *,
    tell: TellProgress | None = None,
) -> DryRunResult:
    """Simulate a submission of DAG files of a folder, in a transaction that is rolled back."""
    site, placeholders = with_placeholders(settings.site, folder.texts.values())
    with transaction.atomic():
        testbed = create_testbed(site)
        outcome = simulate_submission(
            RunRequest(
                workspace=testbed.workspace(contents(folder.files)),
                owner=testbed.owner,
                dag_files=dag_files,
                origin=origin,
                options=settings.options.run_options,
                resumption=settings.options.resumption,
                keeps_files=settings.options.keeps_files,
                allow_missing_files=True,
            ),
            settings.behaviour,
            settings.options,
            testbed,
            tell=tell,
        )
        result = _analysed(outcome, [*folder.warnings, *placeholders, *outcome.warnings], settings)
        transaction.set_rollback(True)
    return result


def _analysed(outcome: Outcome, warnings: list[Finding], settings: DryRunSettings) -> DryRunResult:
    if outcome.dag is None:
        return DryRunResult(outcome, warnings)
    parents = _parents(outcome.dag)
    spans = _spans(outcome)
    return DryRunResult(
        outcome,
        warnings + _unknown_names(outcome, settings),
        spans,
        critical_path(spans, parents),
        _never_ran(outcome, spans, parents),
    )


def _parents(dag: Dag) -> dict[str, list[str]]:
    parents: dict[str, list[str]] = defaultdict(list)
    rows = Edge.objects.filter(parent__dag=dag).values_list("child__name", "parent__name")
    for child, parent in rows.iterator():
        parents[child].append(parent)
    final = Node.objects.filter(dag=dag, kind=NodeKind.FINAL).first()
    if final is not None:
        # It has no edges, and runs after all others.
        others = Node.objects.filter(dag=dag, kind__in=COUNTED_KINDS)
        parents[final.name] = list(others.values_list("name", flat=True))
    return parents


def _spans(outcome: Outcome) -> dict[str, NodeSpan]:
    """Times of the nodes of the outer DAG."""
    dag_id = outcome.dag.pk if outcome.dag is not None else None
    times: dict[str, list[int]] = defaultdict(list)
    for run in outcome.trace.runs:
        if run.dag_id == dag_id:
            times[run.name] += [
                run.started_us,
                run.started_us if run.ended_us is None else run.ended_us,
            ]
    return {name: NodeSpan(min(moments), max(moments)) for name, moments in times.items()}


def _unknown_names(outcome: Outcome, settings: DryRunSettings) -> list[Finding]:
    names = {node.name for node in outcome.nodes}
    named = node_names_in([*settings.behaviour.results, *settings.behaviour.durations_s])
    return [
        Finding(f"there is no node {name}: what is said of it has no effect", field="behaviour")
        for name in dict.fromkeys(named)
        if name not in names
    ]


def _never_ran(
    outcome: Outcome, spans: Mapping[str, NodeSpan], parents: Mapping[str, list[str]]
) -> list[NeverRan]:
    dag_id = outcome.dag.pk if outcome.dag is not None else None
    own = {node.name: node for node in outcome.nodes if node.dag_id == dag_id}
    states = {name: node.state for name, node in own.items()}
    failed = failed_ancestors(states, parents)
    return [
        NeverRan(
            name,
            node.state,
            reason_not_run(name, node.reason, failed.get(name, []), states, parents)
            or outcome.reason,
        )
        for name, node in own.items()
        if name not in spans and node.state != "done"
    ]
