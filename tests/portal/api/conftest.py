"""Fixtures of API tests: the standard people, and API clients that send a token of a user."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from drf_spectacular.drainage import GENERATOR_STATS
from rest_framework.test import APIClient

from portal.api.schema import described
from tests import factories
from wms.core.models import User


@pytest.fixture
def people(db: None) -> SimpleNamespace:
    return factories.people()


@pytest.fixture
def as_user() -> Callable[[User], APIClient]:
    """A client that sends a token of the user."""

    def make(user: User) -> APIClient:
        client = APIClient(enforce_csrf_checks=True)
        client.credentials(HTTP_AUTHORIZATION=f"Token {factories.token_for(user)}")
        return client

    return make


@pytest.fixture
def alice(people: SimpleNamespace, as_user: Callable[[User], APIClient]) -> APIClient:
    """Alice at the API."""
    return as_user(people.alice)


@pytest.fixture(scope="session")
def schema() -> dict[str, Any]:
    """The OpenAPI schema, made once with its warnings: that takes half a second."""
    GENERATOR_STATS.reset()
    described.cache_clear()
    return described()
