"""Filter of a list by the labels of its objects."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Q

from portal.lists.filter_fields import Words


class Labels(Words):
    """A list of words that has any of some."""

    def condition(self, values: Sequence[str]) -> Q:
        """True for objects with any of the labels."""
        return Q(labels__overlap=list(values))
