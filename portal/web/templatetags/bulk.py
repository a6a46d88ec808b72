"""Template filter that tells a bulk operation in words: `Hold: 40 DAGs`."""

from __future__ import annotations

from django import template

from wms.actions.registry import find_kind
from wms.bulk.models import BulkOperation

register = template.Library()


@register.filter
def what(operation: BulkOperation) -> str:
    """Action and number of objects: `Hold: 40 DAGs`."""
    kind = find_kind(operation.list_name)
    return f"{kind.find_action(operation.action).label}: {kind.counted(operation.frozen_count)}"
