"""Warnings and statistics of a checked DAG, serialized."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from wms.dags.submission.checking import CheckedDag

_WIDTHS_TOLD = 1000


def told_of(checked: CheckedDag) -> dict[str, Any]:
    """Warnings and statistics, as an answer has them."""
    statistics = checked.dag.statistics
    return {
        "warnings": [asdict(warning) for warning in checked.warnings],
        "statistics": {**asdict(statistics), "widths": statistics.widths[:_WIDTHS_TOLD]},
    }
