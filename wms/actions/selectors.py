"""Selector of the actions that a user can carry out on one object as it is now."""

from __future__ import annotations

from wms.actions.actions import Action
from wms.actions.kinds import Kind
from wms.core.models import User


def possible_actions(user: User, kind: Kind, object_id: int) -> list[Action]:
    """The actions that the user may carry out on one object as it is now. One query."""
    offered = {name: action for name, action in kind.actions.items() if action.offered(user)}
    obstacles = {name: action.obstacle() for name, action in offered.items()}
    rows = kind.model._default_manager.filter(pk=object_id).order_by()
    row = rows.annotate(**obstacles).values(kind.key, *obstacles).first()
    if row is None or not kind.permitted(user, {row[kind.key]}):
        return []
    return [action for name, action in offered.items() if not row[name]]
