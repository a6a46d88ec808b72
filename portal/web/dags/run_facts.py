"""Facts of a run on the DAG page: inner and further DAGs, options, limits, rescues, downloads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from portal.web.dags.run_forms import LABELS
from wms.core.models import User
from wms.dags.exports.catalogue import EXPORTS, export_name
from wms.dags.models import Dag, Rescue, SharedLimit
from wms.dags.reading.run_selectors import categories_of, options_seen, related_runs

_INNER_SHOWN = 20
_RESCUES_SHOWN = 20
_RUNS_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Download:
    """Link to a file that can be exported from the DAG now."""

    kind: str
    title: str
    name: str


def facts_of(dag: Dag, user: User, limits: Sequence[SharedLimit]) -> Mapping[str, Any]:
    """Template context of the overview about the run, as a user sees it, under shared limits."""
    others = related_runs(dag, user, inner=_INNER_SHOWN + 1, further=_RUNS_SHOWN)
    return {
        "inner": others.inner[:_INNER_SHOWN],
        "inner_cut": len(others.inner) > _INNER_SHOWN,
        "next_runs": [each for each in others.further if each.workspace_id == dag.workspace_id],
        "copies": [each for each in others.further if each.workspace_id != dag.workspace_id],
        "options": [
            (LABELS[each.name][0], each)
            for each in options_seen(dag)
            if each.is_live or each.value != each.default
        ],
        "categories": categories_of(dag),
        "shared_limits": limits,
    }


def records_of(dag: Dag, rescues: Sequence[Rescue]) -> Mapping[str, Any]:
    """Template context of these rescues of the DAG, and of files that can be exported now."""
    return {
        "rescues": rescues[:_RESCUES_SHOWN],
        "rescues_cut": len(rescues) > _RESCUES_SHOWN,
        "downloads": [
            Download(kind, each.title, export_name(dag, kind)) for kind, each in EXPORTS.items()
        ],
    }
