"""Bulk action bar above the rows of a list: possible actions, and a token for all rows of the list.

The token stands for all pages of the filtered list, as it is at this moment.
"""

from __future__ import annotations

from dataclasses import dataclass

from portal.lists.base_filter import ListFilter
from portal.lists.list_spec import ListSpec
from portal.lists.selection import token_of
from wms.actions.kinds import Kind
from wms.actions.registry import KINDS
from wms.bulk.policy import may_act
from wms.core.database.counting import Count
from wms.core.models import User


@dataclass(frozen=True, slots=True)
class BulkBar:
    """The actions on a list's rows. `token` stands for all rows that the list shows."""

    kind: Kind
    total: Count
    token: str


def bulk_bar_of(
    kind: ListSpec, list_filter: ListFilter, total: Count, user: User
) -> BulkBar | None:
    """Bulk actions of a list; None if there are none that the user may take."""
    found = KINDS.get(kind.name)
    if found is None or not (may_act(user) and found.offered(user)):
        return None
    return BulkBar(found, total, token_of(kind, list_filter, total, user))
