"""Policy of DAGs: checks of who may steer them (hold, release, remove, ...), and open their gates.

Users steer their own DAGs, shifters and above everybody's. A gate is opened or closed by those whom
its line in the DAG file names, or by an admin; if it names nobody, by those who steer the DAG. Who
sees which DAGs is decided in `wms.accounting.walls`; that users submit is checked elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from wms.accounting.models import AccountingGroup
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


def may_decide(user: User, dag: Dag, who: Collection[str]) -> bool:
    """Whether the user may open or close a gate that names these people, groups and roles."""
    if not who:
        return may_steer(user, dag)
    if not has_role(user, Role.USER):
        return False
    named = [each.split(":", 1) for each in who]
    if has_role(user, Role.ADMIN) or ["user", user.get_username()] in named:
        return True
    if any(has_role(user, Role(name)) for kind, name in named if kind == "role"):
        return True
    groups = [name for kind, name in named if kind == "group"]
    return bool(groups) and AccountingGroup.objects.filter(name__in=groups, members=user).exists()


def require_decision(actor: Actor, dag: Dag, gates: Iterable[tuple[str, Collection[str]]]) -> None:
    """Raise NotPermitted unless the actor may open all of these gates: their names, and whom each
    names.
    """
    if actor.is_system:
        return
    allowed: dict[frozenset[str], bool] = {}
    for name, who in gates:
        key = frozenset(who)
        if key not in allowed:
            allowed[key] = actor.user is not None and may_decide(actor.user, dag, who)
        if not allowed[key]:
            whom = ", ".join(who) or f"its owner, or the role {Role.SHIFTER.label}"
            raise NotPermitted(
                f"{actor.name} may not open or close the gate {name} of DAG {dag.pk}: this takes "
                f"{whom}."
            )
