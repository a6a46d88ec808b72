"""The audit trail of people's actions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from wms.core.actors import Actor
from wms.core.models import AuditEntry


def record_action(
    action: str,
    *,
    target: str,
    actor: Actor,
    reason: str = "",
    facts: Mapping[str, Any] | None = None,
) -> None:
    """Write one audit entry, inside the caller's transaction."""
    AuditEntry.objects.create(
        actor=actor.name, action=action, target=target, reason=reason, facts=dict(facts or {})
    )


def record_actions(
    action: str,
    *,
    targets: Iterable[str],
    actor: Actor,
    reason: str = "",
    facts: Mapping[str, Any] | None = None,
) -> None:
    """Write one audit entry for each target, inside the caller's transaction."""
    told = dict(facts or {})
    AuditEntry.objects.bulk_create(
        [
            AuditEntry(actor=actor.name, action=action, target=target, reason=reason, facts=told)
            for target in targets
        ],
        batch_size=1000,
    )
