"""Fixtures of tests of the administration: the standard people, and browsers logged in as them."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from django.test import Client

from tests import factories

AsPerson = Callable[[str], Client]


@pytest.fixture
def people(db: None) -> SimpleNamespace:
    return factories.people()


@pytest.fixture
def as_person(people: SimpleNamespace) -> AsPerson:
    """A browser in which a standard person is logged in."""

    def make(name: str) -> Client:
        client = Client()
        client.force_login(getattr(people, name))
        return client

    return make


@pytest.fixture
def olga(as_person: AsPerson) -> Client:
    """The operator's browser."""
    return as_person("olga")


@pytest.fixture
def ada(as_person: AsPerson) -> Client:
    """The administrator's browser."""
    return as_person("ada")
