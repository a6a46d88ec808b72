"""Policy of DAGs: check of who may steer them (hold, release, remove, ...).

Users steer their own DAGs, shifters and above everybody's. Who sees which DAGs is decided in
`wms.accounting.walls`; that users submit is checked elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable

from wms.core.actors import Actor
from wms.core.errors import NotPermitted
from wms.core.models import Role, User
from wms.core.policy import has_role
from wms.dags.models import Dag


def may_steer(user: User, dag: Dag) -> bool:
    """Whether the user may hold, release or remove this DAG."""
    if has_role(user, Role.SHIFTER):
        return True
    return has_role(user, Role.USER) and dag.owner_id == user.pk


def require_steering(actor: Actor, dags: Iterable[Dag]) -> None:
    """Raise NotPermitted unless the actor may steer all of these DAGs."""
    if actor.is_system:
        return
    refused = [dag.pk for dag in dags if actor.user is None or not may_steer(actor.user, dag)]
    if refused:
        raise NotPermitted(
            f"{actor.name} may not steer DAG {', '.join(map(str, refused))}: it belongs to another "
            f"user, and this needs the role {Role.SHIFTER.label}."
        )
