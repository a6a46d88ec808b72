"""Strict query filters: an unknown or malformed parameter is an error, not ignored."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django_filters.rest_framework import DjangoFilterBackend
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.views import APIView

from portal.api.chosen_fields import FIELDS

_ALWAYS_KNOWN = frozenset({"cursor", FIELDS, "page_size"})


class StrictFilters(DjangoFilterBackend):
    """The view's `filterset_class`; a query parameter that it does not know is refused."""

    def filter_queryset(
        self, request: Request, queryset: QuerySet[Any], view: APIView
    ) -> QuerySet[Any]:
        """Return the narrowed list, or raise with a finding for each bad parameter."""
        chosen = self.get_filterset_class(view, queryset)
        known = set(chosen.base_filters) if chosen else set()
        unknown = set(request.query_params) - known - _ALWAYS_KNOWN
        if unknown:
            hint = f"unknown; known are {', '.join(sorted(known | _ALWAYS_KNOWN))}"
            raise ValidationError({name: hint for name in sorted(unknown)})
        list_filter = self.get_filterset(request, queryset, view)
        if list_filter is None:
            return queryset
        if not list_filter.is_valid():
            # Their library formats messages by %, and ours tell what was asked for.
            raise ValidationError({name: list(texts) for name, texts in list_filter.errors.items()})
        # The order is part of what was asked for, and the paginator's.
        request.list_filter = list_filter
        narrowed: QuerySet[Any] = list_filter.qs
        return narrowed
