"""Finding of a built-in check: whether the node is fit, what was measured, what is published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Given = Mapping[str, Any]


@dataclass(frozen=True)
class Finding:
    """Finding of a check; without a `reason` the node is fit."""

    reason: str = ""
    kind: str = "node"
    metrics: dict[str, Any] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)
