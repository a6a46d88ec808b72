"""Fixtures of tests of the pages: the standard people, their browsers, a job that a pilot runs."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from django.test import Client

from tests import factories
from wms.core.models import User


@pytest.fixture
def people(db: None) -> SimpleNamespace:
    return factories.people()


@pytest.fixture
def browser_of() -> Callable[[User], Client]:
    """A client that is logged in as the user."""

    def make(user: User) -> Client:
        client = Client()
        client.force_login(user)
        return client

    return make


@pytest.fixture
def alice(people: SimpleNamespace, browser_of: Callable[[User], Client]) -> Client:
    """Alice at her browser."""
    return browser_of(people.alice)


@pytest.fixture
def claimed(people: SimpleNamespace) -> factories.Claimed:
    """Alice's job, which runs in a pilot."""
    worker = factories.pilot(factories.site().queues.get())
    factories.job(people.alice)
    made = factories.claim(worker)
    assert made is not None
    return made.start()
