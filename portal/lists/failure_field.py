"""Filter field by failure group: selects rows, such as jobs, that have a failure of the group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import Q

from portal.lists.filter_fields import HiddenValues, Numbers
from wms.failures.selectors import subjects_of


class FailureOccurrenceFilter(Numbers):
    """Filter of objects that have failures of the given groups."""

    def __init__(self, kind: str, **options: Any) -> None:
        super().__init__(label="Of failure group", smallest=1, widget=HiddenValues, **options)
        self.kind = kind

    def condition(self, values: Sequence[Any]) -> Q:
        """True for things of those groups; each span is a range of their numbers."""
        groups = Q()
        for span in values:
            groups |= span.condition("group")
        return Q(pk__in=subjects_of(self.kind, groups))
