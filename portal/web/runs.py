"""What the page of a DAG tells about the run: DAGs around it, its limits, files to be had of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from portal.web.run_forms import LABELS
from wms.dags.files.exports import EXPORTS, export_name
from wms.dags.models import Dag
from wms.dags.run_selectors import (
    categories_of,
    inner_of,
    next_runs,
    options_seen,
    rescues_of,
    shared_limits_of,
)
from wms.dags.waiting import room_now

_INNER_SHOWN = 20
_RESCUES_SHOWN = 20
_RUNS_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Download:
    """A file that can be made of the DAG now."""

    kind: str
    title: str
    name: str


def facts_of(dag: Dag) -> Mapping[str, Any]:
    """What the overview tells of the run, by name."""
    inner = list(inner_of(dag)[: _INNER_SHOWN + 1])
    return {
        "inner": inner[:_INNER_SHOWN],
        "inner_cut": len(inner) > _INNER_SHOWN,
        "next_runs": list(next_runs(dag)[:_RUNS_SHOWN]),
        "options": [
            (LABELS[each.name][0], each)
            for each in options_seen(dag)
            if each.is_live or each.value != each.default
        ],
        "categories": categories_of(dag),
        "shared_limits": list(shared_limits_of(dag)),
    }


def records_of(dag: Dag) -> Mapping[str, Any]:
    """The files that were made of the DAG, or can be made of it now."""
    rescues = list(rescues_of(dag)[: _RESCUES_SHOWN + 1])
    return {
        "rescues": rescues[:_RESCUES_SHOWN],
        "rescues_cut": len(rescues) > _RESCUES_SHOWN,
        "downloads": [
            Download(kind, each.title, export_name(dag, kind)) for kind, each in EXPORTS.items()
        ],
    }


def kept_back(dag: Dag) -> Sequence[str]:
    """Which limits keep ready nodes from being submitted now."""
    room = room_now(dag)
    if room is None:
        return ()
    full = [room.reasons[name] for name, left in room.categories.items() if not left]
    return [*([room.reason] if not room.nodes else []), *full]
