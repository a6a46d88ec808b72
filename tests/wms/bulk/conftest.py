"""Fixtures of tests of bulk operations: people, a confirmed operation, its run and its outcomes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from django.db.models import Model, QuerySet

from tests import factories
from wms.bulk import execution
from wms.bulk.models import BulkItem, BulkOperation
from wms.bulk.services import Confirmation, Selection, confirm, freeze
from wms.core.actors import Actor
from wms.core.models import User


@pytest.fixture
def people(db: None) -> SimpleNamespace:
    return factories.people()


@pytest.fixture
def order() -> Callable[..., BulkOperation]:
    """A confirmed operation of a user on rows of a list."""

    def make(
        user: User,
        list_name: str,
        rows: QuerySet[Any] | Sequence[Model],
        action: str,
        *,
        reason: str = "maintenance",
        **arguments: Any,
    ) -> BulkOperation:
        if not isinstance(rows, QuerySet):
            rows = type(rows[0])._default_manager.filter(pk__in=[row.pk for row in rows])
        actor = Actor.person(user)
        made = freeze(Selection(list_name, rows), action=action, actor=actor, arguments=arguments)
        return confirm(made.pk, Confirmation(typed=made.frozen_count, reason=reason), actor=actor)

    return make


def finish(operation: BulkOperation) -> BulkOperation:
    """Run all batches of an operation."""
    while execution.run_batch(operation.pk):
        pass
    operation.refresh_from_db()
    return operation


def outcomes(operation: BulkOperation) -> dict[int, tuple[str, str]]:
    """What became of each object."""
    items = BulkItem.objects.filter(operation=operation)
    return {item.object_id: (item.outcome, item.reason) for item in items}
