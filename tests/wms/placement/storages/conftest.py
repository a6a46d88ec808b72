from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from types import SimpleNamespace

import pytest
from django.utils import timezone

from tests import factories


@pytest.fixture
def people(db: None) -> SimpleNamespace:
    """The usual people."""
    return factories.people()


@pytest.fixture
def days() -> Callable[[float], datetime]:
    """A time so many days from now."""
    return lambda count: timezone.now() + timedelta(days=count)
